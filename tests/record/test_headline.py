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


def evaluated(
    run: Path, name: str, step: int, accepted: float, problems: int = 9, role: str = "test", **protocol: object
) -> None:
    folder = run / "evaluations" / name
    folder.mkdir(parents=True)
    examined = {"data": "c", "roles": [role], "who": {"step": step}, "problems": problems, "protocol": protocol}
    (folder / "run_info.json").write_text(json.dumps({"schema": 1, "examined": examined, "ended": name}))
    metrics = {"accepted_at_1": accepted, "accepted_at_1_low": 0.0, "accepted_at_1_high": 1.0, "problems": problems}
    (folder / "metrics.json").write_text(json.dumps({"c": metrics}))


def ended_at(run: Path, step: int, **state: object) -> None:
    folder = run / "checkpoints" / f"global_step_{step}"
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text("{}")
    (folder / "trainer.json").write_text(json.dumps({"step": step, **state}))


def test_an_evaluation_of_the_trained_policy_on_test_problems_counts(run: Path) -> None:
    evaluated(run, "a", 30, 0.7)
    evaluated(run, "b", 30, 0.8, role="dev")
    evaluated(run, "c", 0, 0.0)
    assert headlines(run)[0][:2] == ("test", 0.7)


def test_a_smaller_or_earlier_look_does_not_replace_the_result(run: Path) -> None:
    ended_at(run, 30)
    evaluated(run, "a", 30, 0.7, 36)
    evaluated(run, "b", 30, 0.6, 10)
    evaluated(run, "c", 20, 0.9, 36)
    assert headline_words(run).startswith("Result: test 70.0 % [0.0, 100.0], 36 problems, step 30;")


@pytest.mark.parametrize("sampled", [{"n": 8}, {"n": 1, "budget": {"kind": "tokens", "most": 2000}}])
@pytest.mark.parametrize(("greedy_name", "sampled_name"), [("a", "b"), ("b", "a")])
def test_of_two_alike_the_greedy_answers_are_the_result(
    run: Path, greedy_name: str, sampled_name: str, sampled: dict[str, object]
) -> None:
    ended_at(run, 30)
    evaluated(run, greedy_name, 30, 0.7, n=1)
    evaluated(run, sampled_name, 30, 0.6, **sampled)
    assert headlines(run)[0][:2] == ("test", 0.7)


def test_a_result_of_an_earlier_step_alone_says_so(run: Path) -> None:
    ended_at(run, 30)
    evaluated(run, "c", 20, 0.9, 36)
    assert "step 20 (the last checkpoint, step 30, was not tested)" in headline_words(run)


def test_after_a_control_arm_the_final_policy_is_the_one_it_started_from(run: Path) -> None:
    ended_at(run, 40, phase_step=0, origin=30)
    evaluated(run, "a", 30, 0.7)
    evaluated(run, "b", 40, 0.9)
    assert headline_words(run).startswith("Result: test 70.0 %") and "not tested" not in headline_words(run)
