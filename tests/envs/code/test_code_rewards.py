"""The sparse and the dense reward of code."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvrlab.registry import find
from rlvrlab.rewards.pass_ratio import Accepted, PassRatio
from rlvrlab.types import Completion, ErrorKind, Problem, Verdict, unjudged

PROBLEM = Problem("p", "code", "code", "")
COMPLETION = Completion("", (), ())


def verdict(passed: int, total: int, error: ErrorKind = ErrorKind.WRONG, correct: bool = False) -> Verdict:
    return Verdict(correct, passed / total if total else 0.0, error, passed=passed, total=total)


RIGHT = verdict(8, 8, ErrorKind.NONE, True)


@pytest.mark.parametrize(
    ("judged", "sparse", "dense"),
    [
        (RIGHT, 1.0, 1.0),
        (verdict(6, 8), 0.0, 0.75),
        (verdict(0, 8), 0.0, 0.0),
        (verdict(8, 8, ErrorKind.RUNTIME), 0.0, 0.875),
        (verdict(6, 8, ErrorKind.TAMPERED), 0.0, 0.0),
        (verdict(0, 0, ErrorKind.FORMAT), 0.0, 0.0),
        (verdict(1, 1, ErrorKind.RULE), 0.0, 0.0),
        (Verdict(True, 1.0), 1.0, 1.0),
    ],
)
def test_worth_of_a_verdict(judged: Verdict, sparse: float, dense: float) -> None:
    assert Accepted()(PROBLEM, COMPLETION, judged).value == sparse
    assert PassRatio()(PROBLEM, COMPLETION, judged).value == dense
    assert PassRatio(partial=0.0)(PROBLEM, COMPLETION, judged).value == sparse
    assert PassRatio(partial=0.5)(PROBLEM, COMPLETION, judged).value == (1.0 if judged.correct else dense / 2)


@given(st.integers(0, 20), st.integers(1, 20), st.sampled_from(list(ErrorKind)), st.floats(0, 1))
def test_nothing_that_is_not_accepted_is_worth_as_much(
    passed: int, total: int, error: ErrorKind, partial: float
) -> None:
    given = PassRatio(partial)(PROBLEM, COMPLETION, verdict(min(passed, total), total, error))
    assert 0 <= given.value < 1 and sum(given.parts.values()) == given.value


@pytest.mark.parametrize("reward", [Accepted(), PassRatio()])
def test_an_unjudged_answer_has_no_reward(reward: Any) -> None:
    with pytest.raises(AssertionError, match="mask"):
        reward(PROBLEM, COMPLETION, unjudged("the judge failed"))


def test_they_are_found_by_name() -> None:
    assert find("reward", "accepted") is Accepted and find("reward", "pass_ratio") is PassRatio
