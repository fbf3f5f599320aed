"""A table of a phase that does not run is told, unless it stands in a file that is only built on."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlvrlab.recipe import load_recipe
from rlvrlab.recipe.explain import unusual
from rlvrlab.recipe.shipped import files, recipe_names
from rlvrlab.study.identity import identity_of
from rlvrlab.study.worker import _resolved

MINE = 'phases = ["sft", "grpo"]\n[env]\ntype = "countdown"\n[grpo]\nsteps = 5\n'
PPO = "[ppo]\nsteps = 20\nbatch_size = 4\n"


def told(folder: Path, text: str, *overrides: str) -> list[str]:
    path = folder / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return unusual(load_recipe(path, overrides))


def test_a_table_of_a_phase_that_does_not_run_is_told_with_its_place_and_what_was_meant(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    why = 'ppo is not in phases, which are sft, grpo; write grpo.steps if that was meant, or add "ppo" to phases'
    assert told(tmp_path, MINE + PPO) == [f"ppo.steps and 1 more key of [ppo] have no effect (mine.toml:7): {why}"]
    assert told(tmp_path, MINE, "ppo.steps=20") == [f"ppo.steps has no effect (override): {why}"]
    (dpo, ppo) = told(tmp_path, MINE, "ppo.steps=20", "dpo.steps=7")
    assert dpo.startswith("dpo.steps has no effect") and "write sft.steps" in dpo and ppo.startswith("ppo.steps")


@pytest.mark.parametrize(
    ("text", "overrides"),
    [
        (MINE, ["sft.steps=3"]),
        (MINE, ['phases=["sft"]']),
        (MINE + PPO, ['phases=["ppo"]', "ppo.steps=3"]),
        ('extends = "base.toml"\nphases = ["grpo"]\n', []),
    ],
)
def test_what_runs_or_is_only_built_on_is_not_told(tmp_path, text: str, overrides: list[str]) -> None:
    (tmp_path / "base.toml").write_text(MINE + PPO, encoding="utf-8")
    assert told(tmp_path, text, *overrides) == []


def test_no_shipped_recipe_has_one() -> None:
    assert [name for name in recipe_names() if load_recipe(files()[name]).idle] == []


def test_settings_of_a_study_may_be_for_arms_of_other_phases(tmp_path: Path) -> None:
    recipe = tmp_path / "mine.toml"
    recipe.write_text(MINE, encoding="utf-8")
    settings, code = {"ppo.steps": 20}, "code"
    planned = identity_of(load_recipe(recipe, ["ppo.steps=20"]), 0, code)
    job = {"recipe": str(recipe), "name": "a", "seed": 0, "settings": settings, "more": {}, "code": code}
    assert _resolved(tmp_path, tmp_path, {**job, "identity": planned}).idle == ()
