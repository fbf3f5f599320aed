"""`KEY=null` takes a key out of a recipe, so that its default holds; `TABLE.type=null` takes out the table."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlvrlab.api.recipes import load_recipe as load_from_python
from rlvrlab.errors import LabError
from rlvrlab.recipe import load_recipe

TEXT = """
[env]
type = "countdown"
numbers = [3]
[surgery]
type = "pcgrad"
group_strategy = "source"
[data]
test_file = "data/test.jsonl"
[grpo]
steps = 7
"""


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    (tmp_path / "mine.toml").write_text(TEXT)
    return tmp_path / "mine.toml"


def test_a_key_and_a_table_are_unset(recipe: Path) -> None:
    usual = load_recipe(recipe, ["surgery.type=null", "data.test_file=null", "grpo.steps=null", "env.numbers=null"])
    assert usual.recipe.surgery is None and usual.recipe.data.test_file is None
    assert usual.phase("grpo").steps != 7 and usual.recipe.env["numbers"] != [3]
    assert {usual.origins[key] for key in ("data.test_file", "env.numbers")} == {"default"}
    assert not [key for key in usual.origins if key.startswith("surgery.")]


def test_what_is_not_set_may_be_unset_and_a_word_in_quotes_is_a_word(recipe: Path) -> None:
    assert load_recipe(recipe, ["guard.type=null", "data.dev_file=null", 'name="null"']).recipe.name == "null"


def test_python_says_none(recipe: Path) -> None:
    assert load_from_python(recipe, {"data.test_file": None, "surgery": None}).recipe.surgery is None


@pytest.mark.parametrize("key", ["data.tset_file", "sugery.type", "grpo.step", "env.number"])
def test_a_key_that_there_is_not_cannot_be_unset(recipe: Path, key: str) -> None:
    with pytest.raises(LabError, match=f"override {key}: unknown key; did you mean"):
        load_recipe(recipe, [f"{key}=null"])


def test_none_is_answered_with_the_word_to_write(recipe: Path) -> None:
    with pytest.raises(LabError, match=r"unknown surgery 'none'; write `surgery.type=null` to unset it"):
        load_recipe(recipe, ["surgery.type=none"])
