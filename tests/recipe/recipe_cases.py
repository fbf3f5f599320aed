"""What the recipe tests share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rlvrlab.errors import RecipeError
from rlvrlab.recipe import Resolved, load_recipe

SMALL = """name = "small"
phases = ["sft", "grpo"]

[env]
type = "countdown"
numbers = [2]

[rollout]
n = 4

[grpo]
steps = 3
"""
Write = Callable[[str], Path]


def load(folder: Path, text: str = "", *overrides: str) -> Resolved:
    path = folder / "recipe.toml"
    path.write_text(text, encoding="utf-8")
    return load_recipe(path, overrides)


def problems(folder: Path, text: str = "", *overrides: str) -> list[str]:
    """All lines of the error that this recipe must give, without the folder of its file."""
    with pytest.raises(RecipeError) as caught:
        load(folder, text, *overrides)
    assert all("\n" not in line for line in caught.value.problems)
    return [line.replace(f"{folder}/", "") for line in caught.value.problems]


def problem(folder: Path, text: str = "", *overrides: str) -> str:
    """The only line."""
    found = problems(folder, text, *overrides)
    assert len(found) == 1, found
    return found[0]
