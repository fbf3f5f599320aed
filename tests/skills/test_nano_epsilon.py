"""The sweep of what a skill-safe step may cost: its numbers by hand, and its tables from the files that were kept."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from rlvrlab.study.chain import Chain
from rlvrlab.study.load import load_study

STUDIES = Path(__file__).parents[2] / "studies"
sys.path[:0] = [str(STUDIES), str(STUDIES / "interference")]
import nano_epsilon as sweep  # noqa: E402
from job_lines import rows_of  # noqa: E402

HERE = STUDIES / "interference"
RECORD = HERE / "results" / "interference_nano_epsilon.study.json"


def line(arm: str, seed: int, up: float, down: float) -> dict:
    steps = {"change": [-0.1, 0.2, 0.3], "surplus": [0.0, -0.2, -0.1], "bent": [1.0, 0.0, 0.0]}
    unwatched: dict = {name: [] for name in steps}
    success = {"up": [0.6, 0.9, up], "down": [0.6, 0.3, down]}
    return {"arm": arm, "seed": seed, "success": success, **(unwatched if arm == "plain" else steps)}


def planted() -> list[dict]:
    """Every tolerance loses 10 points more than the one before and teaches 5 more; plain training loses all."""
    arms = [("plain", 0.0, 0.8), *((arm, 0.9 - 0.1 * i, 0.5 + 0.05 * i) for i, arm in enumerate(sweep.SWEEP))]
    return [line(arm, seed, up, down + 0.01 * seed) for seed in range(3) for arm, up, down in arms]


def test_learnt_forgotten_and_bent_by_hand() -> None:
    one = sweep.kept(line("epsilon=0", 0, 0.7, 0.5))
    assert one == pytest.approx((0.9, 0.2, 0.2, 0.6))
    shown = sweep.arms_table(sweep.by_arm(planted()))
    row = next(row for row in shown.splitlines() if row.startswith("| epsilon=0.01 |"))
    assert "| 20.0 [20.0, 20.0] | 31.0 [28.5, 33.5] |" in row and "| 33.3 [33.3, 33.3] |" in row
    assert row.endswith("| -70.0 [-70.0, -70.0] | -20.0 [-20.0, -20.0] |")


def test_a_trend_is_one_slope_for_each_seed() -> None:
    found = sweep.by_arm(planted())
    assert sweep.slope(found, lambda row: sweep.kept(row).forgotten) == pytest.approx([0.1] * 3)
    assert sweep.slope(found, lambda row: sweep.kept(row).learnt) == pytest.approx([0.05] * 3)


def test_what_was_expected_of_a_step_is_held_against_the_memory_before_the_next_one() -> None:
    found = sweep.estimate(line("epsilon=0", 0, 0.7, 0.5))
    assert (found.expected, found.measured) == pytest.approx((0.1, -0.1))
    assert found.missed == pytest.approx(-0.1) and found.correlation == pytest.approx(1.0)


def test_the_kept_lines_are_those_of_the_study_and_its_record() -> None:
    chain = Chain(load_study(HERE / "nano_epsilon.toml"))
    [stage] = chain.order()
    rows, record = rows_of(sweep.LINES), json.loads(RECORD.read_text(encoding="utf-8"))
    asked = [(arm.name, trial.seed) for arm in chain.arms(stage) for trial in chain.trials(stage, arm.name, {})]
    assert [(row["arm"], row["seed"]) for row in rows] == asked
    trials = {(trial["stages"][0]["arm"], trial["seed"]): trial for trial in record["trials"].values()}
    for row in rows:
        told = trials[row["arm"], row["seed"]]["retention"]
        assert sweep.kept(row).forgotten == pytest.approx(told["forgetting"], abs=1e-4)
        assert sweep.kept(row).average == pytest.approx(told["average"], abs=1e-4)


def test_the_arm_that_watches_trained_as_plain_training_did() -> None:
    """The guard draws nothing that training would have drawn, and bends nothing."""
    found = sweep.by_arm(rows_of(sweep.LINES))
    for seed, row in found["epsilon=1"].items():
        assert row["success"] == found["plain"][seed]["success"] and not np.any(row["bent"])


def test_the_tables_come_from_the_lines() -> None:
    text = sweep.report(rows_of(sweep.LINES))
    assert text == sweep.LINES.with_suffix(".md").read_text(encoding="utf-8")
    page = (HERE / "rounds" / "08_cost_of_a_step.md").read_text(encoding="utf-8")
    assert [row for row in text.splitlines() if row.startswith("| ") and row not in page] == []
