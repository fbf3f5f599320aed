"""The number a run is known by: test where there is one, else plainly dev."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rlvrlab.record.headline import headline_words, headlines


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "logs").mkdir()
    row = {"step": 30, "phase": "grpo", "val-core/c/acc": 0.875, "val-core/c/acc_low": 0.8, "val-core/c/acc_high": 0.92}
    (tmp_path / "logs" / "metrics.jsonl").write_text(json.dumps(row) + "\n")
    (tmp_path / "analysis" / "cards").mkdir(parents=True)
    return tmp_path


def card(run: Path, name: str, accepted: float, **facts: object) -> None:
    metrics = {"accepted_at_1": accepted, "accepted_at_1_low": 0.0, "accepted_at_1_high": 1.0, "problems": 120}
    text = json.dumps({"phase": "x", "step": 30, "metrics": metrics, "outcomes": {}, **facts})
    (run / "analysis" / "cards" / name).write_text(text)


def test_dev_alone_says_so(run: Path) -> None:
    card(run, "0_baseline.json", 0.1)
    assert [one.role for one in headlines(run)] == ["dev"]
    assert headline_words(run).startswith("Result: dev 87.5 %") and "No test result" in headline_words(run)


def test_test_comes_first_and_controls_are_nobodys_result(run: Path) -> None:
    card(run, "2_sft.json", 0.5)
    card(run, "10_grpo.json", 0.767)
    card(run, "11_more_sft.json", 0.9, control=True)
    assert [(one.role, one.accuracy) for one in headlines(run)] == [("test", 0.767), ("dev", 0.875)]
    assert headline_words(run).startswith("Result: test 76.7 % [0.0, 100.0], 120 problems, step 30; dev 87.5 %")


def test_an_evaluation_of_the_trained_policy_on_test_problems_counts(run: Path) -> None:
    for name, roles, step, accepted in (("a", ["test"], 30, 0.7), ("b", ["dev"], 30, 0.8), ("c", ["test"], 0, 0.0)):
        folder = run / "evaluations" / name
        folder.mkdir(parents=True)
        examined = {"data": "c", "roles": roles, "who": {"step": step}}
        (folder / "run_info.json").write_text(json.dumps({"schema": 1, "examined": examined, "ended": name}))
        metrics = {"accepted_at_1": accepted, "accepted_at_1_low": 0.0, "accepted_at_1_high": 1.0, "problems": 9}
        (folder / "metrics.json").write_text(json.dumps({"c": metrics}))
    assert headlines(run)[0][:2] == ("test", 0.7)
