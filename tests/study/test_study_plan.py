"""A plan lists the stages that will run, and its seconds are those of whole trials."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rlvrlab.study import prices as prices_room
from rlvrlab.study.load import load_study
from rlvrlab.study.plan import plan_study
from rlvrlab.train.plan import Estimate

SMOKE = Path(__file__).resolve().parents[2] / "studies/npg_muse"


def test_every_stage_that_ran_is_in_the_plan(tmp_path) -> None:
    plan = plan_study(load_study(SMOKE / "smoke.toml"), tmp_path / "none", cost=False)
    record = json.loads((SMOKE / "results/npg_muse_smoke.study.json").read_text(encoding="utf-8"))
    assert [one.name for one in plan.stages] == [stage["name"] for stage in record["stages"]]
    assert [one.kind for one in plan.stages][-2:] == ["confirm", "final"]
    assert plan.stages[-1].new == 0 and plan.plain()["total"]["new"] == 18


def test_a_trial_is_started_loaded_trained_and_examined(tmp_path, monkeypatch) -> None:
    timed = [Estimate("sft", 0.5, 1.6, 10 * 0.5 + 2 * 1.6), Estimate("grpo", 0.5, 1.6, 20 * 0.5 + 2 * 1.6)]
    monkeypatch.setattr(prices_room, "estimate", lambda resolved: timed)
    monkeypatch.setattr(prices_room.Prices, "_start", lambda self: 7.0)
    plan = plan_study(load_study(SMOKE / "smoke.toml"), tmp_path / "none")
    volume, final = plan.stages[0], plan.stages[-1]
    answers = (100 + 80) * 1.6 / 16
    assert final.seconds == pytest.approx(3 * (7 + answers), abs=0.1), "test problems of three trials that are there"
    assert volume.seconds > 6 * (7 + answers + 15), "six trials, with all that they do beside their steps"
    assert "with their evaluations" in plan.notes[-2]
