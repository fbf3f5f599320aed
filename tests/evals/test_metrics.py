"""Data-set metrics on samples small enough to count by hand."""

from __future__ import annotations

import pytest

from rlvrlab.evals.metrics import Sample, at_k, dataset_metrics, majority
from rlvrlab.evals.statistics import wilson


def sample(problem: str, number: int, accepted: bool | None, error: str, **facts) -> Sample:
    given = {"pass_ratio": float(bool(accepted)), "judge_time": 0.5, "gen_tokens": 10, "truncated": False, **facts}
    return Sample(problem, number, accepted, error_type=error, **given)


SAMPLES = [
    sample("a", 0, True, "none", entropy=0.2),
    sample("b", 0, False, "wrong_answer", pass_ratio=0.5, gen_tokens=30, entropy=0.4),
    sample("c", 0, False, "syntax", truncated=True),
    sample("d", 0, None, "infra", judge_time=9.0),
]


def test_by_hand() -> None:
    found = dataset_metrics(SAMPLES, wall_s=2.0)
    assert found["accepted_at_1"] == pytest.approx(1 / 3)
    assert (found["accepted_at_1_low"], found["accepted_at_1_high"]) == pytest.approx(wilson(1, 3))
    assert found["pass_ratio_mean"] == found["mean_accuracy"] == pytest.approx(0.5)
    assert found["zero_reward_rate"] == pytest.approx(1 / 3)
    assert found["exec_success_rate"] == pytest.approx(2 / 3)
    assert found["syntax_error_rate"] == pytest.approx(1 / 3)
    assert found["wrong_answer_error_rate"] == pytest.approx(1 / 3)
    assert found["format_rate"] == pytest.approx(2 / 3)
    assert found["accuracy_given_format"] == pytest.approx(1 / 2)
    assert found["truncated_rate"] == pytest.approx(1 / 4)
    assert found["avg_judge_time"] == pytest.approx(0.5)
    assert found["avg_entropy"] == pytest.approx(0.3)
    assert found["throughput"] == pytest.approx(2.0)


def test_cost_is_paid_for_all_and_shared_by_the_solved() -> None:
    found = dataset_metrics(SAMPLES)
    assert found["cost_per_solved_tokens"] == pytest.approx(50.0)
    assert found["cost_per_solved_judge_time"] == pytest.approx(1.5)
    assert dataset_metrics(SAMPLES[1:])["cost_per_solved_tokens"] is None


def test_what_could_not_be_judged_is_bounded_not_guessed() -> None:
    found = dataset_metrics(SAMPLES)
    assert found["unjudged"] == 1
    assert found["accepted_at_1_if_unjudged_wrong"] == pytest.approx(1 / 4)
    assert found["accepted_at_1_if_unjudged_right"] == pytest.approx(2 / 4)


def test_nothing_at_all_gives_numbers() -> None:
    found = dataset_metrics([])
    assert found["problems"] == 0 and found["accepted_at_1"] == 0.0


def test_at_k_over_problems() -> None:
    samples = [sample("a", i, i == 0, "none" if i == 0 else "wrong_answer", answer=str(i)) for i in range(4)]
    samples += [sample("b", i, True, "none", answer="7") for i in range(4)]
    samples.append(sample("c", 0, None, "infra"))
    found = at_k(samples, (1, 2, 4), "test")
    assert found["pass@1"] == pytest.approx((0.25 + 1) / 2)
    assert found["pass@2"] == pytest.approx((0.5 + 1) / 2)
    assert found["pass@4"] == 1.0
    assert found["pass^2"] == pytest.approx(0.5)
    assert found["pass@1_low"] <= found["pass@1"] <= found["pass@1_high"]
    assert found["majority"] == pytest.approx((0.25 + 1) / 2)


@pytest.mark.parametrize(
    ("answers", "expected"),
    [((("3", True), ("3", True), ("4", False)), 1.0), ((("3", False), ("4", True)), 0.5), (((None, False),), 0.0)],
)
def test_majority_shares_ties(answers: tuple[tuple[str | None, bool], ...], expected: float) -> None:
    group = [sample("a", i, right, "none", answer=answer) for i, (answer, right) in enumerate(answers)]
    assert majority(group) == pytest.approx(expected)
