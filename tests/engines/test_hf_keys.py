"""The hf engine's recipe table: what one key brings with it, where a model is looked for, keys of earlier times."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rlvrlab.errors import RecipeError
from rlvrlab.recipe import Resolved, load_recipe, resolve

SERVER = "engine.sampler=http://127.0.0.1:8000/v1"


def recipe(folder: Path, *overrides: str, engine: str = "lora_rank = 4", model: str = "nano") -> Resolved:
    folder.mkdir(exist_ok=True, parents=True)
    (folder / "r.toml").write_text(f'[engine]\ntype = "hf"\nmodel = "{model}"\n{engine}\n')
    return load_recipe(folder / "r.toml", overrides)


def test_a_served_sampler_brings_its_correction_by_one_key(tmp_path: Path) -> None:
    assert recipe(tmp_path).recipe.correction.level == "none"
    served = recipe(tmp_path, SERVER)
    assert served.recipe.correction.level == "token"
    assert served.origins["correction.level"] == "by engine"
    assert served.changed()["correction.level"] == {"value": "token", "default": "none"}
    assert recipe(tmp_path, SERVER, "correction.level=sequence").recipe.correction.level == "sequence"
    again = resolve(served.recipe.model_dump(), {}, tmp_path)
    assert again.recipe == served.recipe


def test_a_served_sampler_is_never_left_uncorrected(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=r"correction\.level: servers never compute exactly as the trainer does"):
        recipe(tmp_path, SERVER, "correction.level=none")


def test_the_seed_of_earlier_recipes(tmp_path: Path) -> None:
    assert "seed" not in recipe(tmp_path, engine="seed = 0").recipe.engine
    with pytest.raises(RecipeError, match=r"seed is no longer a key: .* remove it"):
        recipe(tmp_path, engine="seed = 3")
    with pytest.raises(RecipeError, match=r"engine\.sede: unknown key"):
        recipe(tmp_path, engine="sede = 3")


def test_a_model_lies_beside_the_recipe_or_else_where_one_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, here = tmp_path / "recipes", tmp_path / "here"
    for folder in (home / "m", here / "m", here / "n", home / "nano"):
        folder.mkdir(parents=True)
        (folder / "config.json").write_text("{}")
    monkeypatch.chdir(here)
    assert recipe(home, model="m").recipe.engine["model"] == str(home / "m")
    assert recipe(home, model="../here/n").recipe.engine["model"] == str(home / "../here/n")
    assert recipe(home, model="nano").recipe.engine["model"] == "nano"
    assert recipe(home, model="./nano").recipe.engine["model"] == str(home / "nano")
    assert recipe(home, model="owner/name").recipe.engine["model"] == "owner/name"
    found = recipe(home, model="n")
    assert found.recipe.engine["model"] == str(here / "n")
    # A run resumes from what it stored, wherever the command is given.
    stored = json.loads(json.dumps({k: v for k, v in found.recipe.model_dump().items() if v is not None}))
    monkeypatch.chdir(tmp_path)
    assert resolve(stored, {}, home).recipe == found.recipe
    assert resolve(stored, {}, tmp_path).build("engine").model == str(here / "n")
