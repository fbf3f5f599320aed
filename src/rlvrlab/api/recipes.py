"""Recipes from files, texts and dicts, with functions in place of plug-ins."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any, TypeGuard

from rlvrlab.api.plugins import env_table, reward_table
from rlvrlab.api.short_errors import short_errors
from rlvrlab.errors import UserError
from rlvrlab.recipe import Resolved
from rlvrlab.recipe.explain import unnamed_env
from rlvrlab.recipe.load import Tables, extended, load_changed
from rlvrlab.recipe.parse import Tree, flatten, parse_overrides, parse_toml, place, read_toml
from rlvrlab.recipe.schema import Recipe
from rlvrlab.recipe.shipped import recipe_file
from rlvrlab.registry import name_own

RecipeLike = str | PathLike[str] | Mapping[str, Any] | Resolved
Overrides = str | Sequence[str] | Mapping[str, Any]


@short_errors
def load_recipe(recipe: RecipeLike, overrides: Overrides = ()) -> Resolved:
    """A checked recipe of a file, TOML text, dict or loaded recipe; overrides are "a.b=v" texts or a dict."""
    changes = _changes(overrides)
    if isinstance(recipe, Resolved) and not changes:
        return recipe
    tables, folder = _unchecked(recipe)
    name_own(changes, folder, Path())
    return load_changed(tables, changes, folder)


def _unchecked(recipe: RecipeLike) -> tuple[Tables, Path]:
    """A recipe's tables and folder; overrides and functions may still complete it, so nothing is checked yet."""
    if isinstance(recipe, Resolved):  # of a run folder, perhaps, which gives no word for the files it names
        origins = {key: recipe.origins[key] for key, _ in flatten(recipe.given())}
        return Tables(recipe.given(), origins), recipe.folder
    tables, folder = _written(recipe)
    name_own(tables.tree, folder, Path())
    return tables, folder


def _written(recipe: str | PathLike[str] | Mapping[str, Any]) -> tuple[Tables, Path]:
    """The same of a recipe that the caller has written."""
    if isinstance(recipe, Mapping):
        return extended(_tree(recipe), Path(), "dict"), Path()
    if is_toml_text(recipe):
        return extended(parse_toml(recipe, "text"), Path(), "text", recipe), Path()
    if not isinstance(recipe, str | PathLike):
        raise UserError(f"recipe: a file, TOML text, a dict or a loaded recipe, not {recipe!r:.60}")
    path = recipe_file(Path(fspath(recipe)))
    tree, text = read_toml(path)
    return extended(tree, path.parent, path.name, text), path.parent


def is_toml_text(recipe: object) -> TypeGuard[str]:
    """Whether it is a recipe's text and not the name of its file."""
    if not isinstance(recipe, str) or "\n" in recipe:
        return isinstance(recipe, str)
    return "=" in recipe and not recipe.endswith(".toml") and not Path(recipe).exists()


def refuse_unnamed_env(resolved: Resolved) -> Resolved:
    """The same recipe; refused where nobody has named an environment, so that nobody trains the default unaware."""
    if unnamed_env(resolved):
        allowed = 'env=rlvrlab.environment(…) or env="countdown" in the call, or "env" in the recipe'
        raise UserError(f"env: neither the recipe nor the call names an environment; give {allowed}")
    return resolved


def with_functions(recipe: RecipeLike, reward: Any, env: Any, data: Any, overrides: Overrides) -> Resolved:
    """The recipe with this reward, environment and data in place of its own; overrides come last."""
    if reward is None and env is None and data is None:
        return load_recipe(recipe, overrides)
    changes = _changes(overrides)
    (tree, origins, sources), folder = _unchecked(recipe)
    given: dict[str, Tree] = {}
    if reward is not None:
        given["reward"] = reward_table(reward, folder)
    if env is not None or data is not None:
        asked = copy.deepcopy(tree)
        for key, value in changes.items():
            place(asked, key, value)
        output = Path(str(asked.get("output_dir", Recipe().output_dir)))
        given["env"] = env_table(asked.get("env", Recipe().env) if env is None else env, data, folder, output)
    for kind, table in given.items():
        tree[kind] = table
        origins = {key: origin for key, origin in origins.items() if not key.startswith(f"{kind}.")}
        origins |= {key: "python" for key, _ in flatten({kind: table})}
    name_own([given, changes], folder, Path())
    return load_changed(Tables(tree, origins, sources), changes, folder)


def as_words(overrides: Overrides) -> list[str]:
    """Overrides as they are written on a command line."""
    if isinstance(overrides, Mapping):
        pairs = flatten(_tree(overrides))
        return [f"{key}={value if isinstance(value, str) else json.dumps(value)}" for key, value in pairs]
    return [overrides] if isinstance(overrides, str) else list(overrides)


def _changes(overrides: Overrides) -> dict[str, Any]:
    if isinstance(overrides, Mapping):
        return dict(flatten(_tree(overrides)))
    return parse_overrides(as_words(overrides))


def _tree(tables: Mapping[str, Any]) -> Tree:
    """Nested tables; `{"rollout.n": 4}` is the same as `{"rollout": {"n": 4}}`."""
    tree: Tree = {}
    for key, value in flatten(dict(tables)):
        place(tree, key, value)
    return tree
