"""Recipes: one TOML file that says everything a run needs."""

from rlvrlab.recipe.load import Resolved, load_recipe, resolve
from rlvrlab.recipe.schema import Recipe

__all__ = ["Recipe", "Resolved", "load_recipe", "resolve"]
