"""Step credit inside a run: one line in a recipe, exact resume, programs on the toy engine."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from rlvrlab.recipe import load_recipe
from rlvrlab.record.run import read_metrics
from rlvrlab.train import session

sys.path.insert(0, str(Path(__file__).parents[1] / "train"))
import runs

STUDY = Path(__file__).parents[2] / "studies" / "paper_a_credit_assignment"
COUNTDOWN = ("credit.type=counterfactual", "credit.segmentation=words", "credit.invalid=count", "grpo.steps=4")
PROGRAMS = """
name = "tiny"
phases = ["sft", "grpo"]
[env]
type = "minicode"
skills = ["gen"]
levels = [1]
[engine]
type = "toy"
buckets = 64
[data]
train_size = 6
dev_size = 4
[rollout]
n = 4
max_tokens = 40
[sft]
steps = 40
batch_size = 6
references = 6
learning_rate = 0.1
[grpo]
steps = 2
batch_size = 3
[credit]
type = "counterfactual"
counterfactual_k = 2
intervention_types = ["delete"]
"""


def test_a_run_with_credit_goes_on_exactly_after_an_interruption(tmp_path) -> None:
    whole = runs.run(tmp_path / "a", *COUNTDOWN, text=runs.ONLINE).folder
    rows = [row for row in read_metrics(whole) if "credit/replays" in row]
    assert len(rows) == 4 and all(row["credit/unbiased"] == 0 for row in rows)
    assert sum(row["credit/verifier_calls"] for row in rows) > 0
    broken = runs.run(tmp_path / "b", *COUNTDOWN, text=runs.ONLINE).folder
    for late in (broken / "checkpoints").glob("global_step_9"):
        (late / "manifest.json").unlink()
    session.resume(broken, runs.quiet)
    runs.assert_same(whole, broken)


def test_without_the_table_nothing_changes(tmp_path) -> None:
    row = read_metrics(runs.run(tmp_path, "grpo.steps=2", text=runs.ONLINE).folder)[-1]
    assert not any(key.startswith("credit/") for key in row)


def test_weight_zero_is_plain_grpo(tmp_path) -> None:
    plain = runs.run(tmp_path / "a", "grpo.steps=3", text=runs.ONLINE).folder
    weightless = runs.run(tmp_path / "b", *COUNTDOWN[:3], "credit.weight=0", "grpo.steps=3", text=runs.ONLINE).folder
    first, second = (runs.arrays(runs.last_checkpoint(folder)) for folder in (plain, weightless))
    assert all((first[name] == second[name]).all() for name in first)


@pytest.mark.slow
def test_programs_on_the_toy_engine(tmp_path) -> None:
    rows = read_metrics(runs.run(tmp_path, text=PROGRAMS).folder)
    last = rows[-1]
    assert last["credit/replays"] > 0 and last["credit/steps"] > 1
    assert (
        last["credit/valid"] + last["credit/repaired"] + last["credit/invalid"] + last["credit/unjudged"]
        == (last["credit/replays"])
    )


def test_the_recipes_of_the_study_are_sound() -> None:
    """And keep the defaults that the study names."""
    recipes = [path for path in sorted(STUDY.glob("*.toml")) if path.name != "study.toml"]
    found = {path.stem: load_recipe(path) for path in recipes}
    assert len(found) >= 12
    plugin = found["code_counterfactual"].build("credit")
    assert (plugin.counterfactual_k, plugin.intervention_types) == (4, ("delete", "truncate"))
    assert plugin.credit_normalization == "signed" and found["code_grpo"].build("credit") is None
    recipe = found["sql_counterfactual"].recipe
    assert (recipe.phase_tables["grpo"]["steps"], recipe.record.log_interval, recipe.env["type"]) == (200, 10, "sql")
