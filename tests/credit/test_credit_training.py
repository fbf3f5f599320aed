"""Step credit inside a run: one line in a recipe, exact resume, programs on the toy engine."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from rlvrlab.batch import batch_of
from rlvrlab.credit.counterfactual import Counterfactual
from rlvrlab.credit.steps import GLUE
from rlvrlab.recipe import load_recipe
from rlvrlab.record.run import read_metrics
from rlvrlab.rollout.replay import Trajectory
from rlvrlab.rollout.segment import segment
from rlvrlab.train import session
from rlvrlab.train.credit.credited import Credited, StepCredits
from rlvrlab.types import Completion, ErrorKind, Problem, Reward, Rollout, Verdict

sys.path.insert(0, str(Path(__file__).parents[1] / "train"))
import runs

STUDY = Path(__file__).parents[2] / "studies" / "paper_a_credit_assignment"
JUDGED = Verdict(True, 1.0, ErrorKind.NONE)
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


def stored(folder: Path) -> list[dict]:
    return [json.loads(line) for path in folder.glob("rollouts/*.jsonl") for line in path.read_text().splitlines()]


def test_without_the_table_nothing_changes(tmp_path) -> None:
    folder = runs.run(tmp_path, "grpo.steps=2", text=runs.ONLINE).folder
    assert not any(key.startswith("credit/") for key in read_metrics(folder)[-1])
    assert not any("steps" in row for row in stored(folder))


def test_the_record_keeps_the_credit_of_every_step(tmp_path) -> None:
    """Its characters, its worth, and the advantage its tokens were trained with."""
    folder = runs.run(tmp_path, *COUNTDOWN, "credit.counterfactual_k=1", text=runs.ONLINE).folder
    rows = [row for row in stored(folder) if row["reward"] is not None]
    told = [(row, step) for row in rows for step in row["steps"]]
    assert all(row["completion"][step["start"] : step["end"]].strip() for row, step in told)
    assert all(sum("examined" not in step for step in row["steps"]) == 1 for row in rows if row["steps"])
    assert all(step["credit"] is None for _, step in told if "examined" in step)
    for metrics in (row for row in read_metrics(folder) if "credit/known" in row):
        lines = (folder / f"rollouts/step_{metrics['step']}.jsonl").read_text().splitlines()
        credit = [step["credit"] for line in lines for step in json.loads(line).get("steps", ())]
        known = [abs(one) for one in credit if one is not None]
        assert len(known) / len(credit) == pytest.approx(metrics["credit/known"])
        assert np.mean(known) == pytest.approx(metrics["credit/mean_abs"], abs=1e-6)
    assert any(step["credit"] for _, step in told)


def test_advantages_of_steps_are_those_the_tokens_were_trained_with() -> None:
    """add with weight 2: group advantage + 2 × credit, over the tokens of each step alone."""
    rollout = Rollout(
        "r", "g", Problem("p", "s", "k", ""), (), Completion("a b c", (1, 2, 3, 4), ()), JUDGED, Reward(1.0)
    )
    steps = segment("a b c", "words")
    one = Trajectory(rollout, steps, np.array([0, 1, 1, GLUE]), ())
    credit_S = np.array([0.25, np.nan, 0.5])
    answers = {"r": Credited(one, credit_S, credit_S, np.array([True, False, True]))}
    batch = batch_of([()], [rollout.completion.tokens], advantage_BT=np.array([[1.0, 1.0, 1.0, 7.0]]))
    credits = StepCredits(Counterfactual(weight=2.0), answers)
    rows = credits.rows(credits.on(batch, [rollout]), [rollout])["r"]
    assert [(row["credit"], row["advantage"]) for row in rows] == [(0.25, 1.5), (None, 1.0), (0.5, None)]
    assert [row.get("examined", True) for row in rows] == [True, False, True]
    assert [(row["start"], row["end"]) for row in rows] == [step.span for step in steps.steps]
    assert [row["advantage"] for row in credits.rows()["r"]] == [None] * 3, "dead groups are not trained on"


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
