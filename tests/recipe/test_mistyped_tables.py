"""A mistyped name is told once, with the nearest ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlvrlab.errors import RecipeError, UserError
from rlvrlab.recipe import load_recipe
from rlvrlab.recipe.shipped import copy


def test_a_mistyped_table_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = '[envv]\ntype = "countdown"\nnumbers = [2]\nhigh = 9\n'
    (tmp_path / "mine.toml").write_text(text, encoding="utf-8")
    with pytest.raises(RecipeError) as caught:
        load_recipe(Path("mine.toml"))
    told = "mine.toml:1: envv: unknown table; its keys (type, numbers, high) are not read; did you mean [env]?"
    assert caught.value.problems == [told]


def test_a_recipe_that_is_not_there_is_not_answered_with_all_that_are(tmp_path: Path) -> None:
    for name, near in (("nosuch", ""), ("toy_countdwn", " (did you mean 'toy_countdown'?)")):
        with pytest.raises(UserError) as caught:
            copy(name, tmp_path)
        assert str(caught.value) == f"{name}: no such recipe or study{near}; `rlvr recipes` lists them"
