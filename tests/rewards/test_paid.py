"""What a reward says is handed on when it is a finite number in a Reward, and refused with its place otherwise."""

from __future__ import annotations

import math
from typing import Any

import pytest

from rlvrlab.errors import OwnCodeError
from rlvrlab.rewards.total import paid
from rlvrlab.types import Completion, Problem, Reward, Verdict

PROBLEM, COMPLETION, VERDICT = Problem("p7", "e", "s", "1 + 1"), Completion("2", (), ()), Verdict(True, 1.0)


@pytest.mark.parametrize("value", [0.0, 1.0, -0.5])
def test_a_finite_reward_is_handed_on(value: float) -> None:
    given = Reward(value, {"all": value})
    assert paid(lambda *_: given, PROBLEM, COMPLETION, VERDICT) is given


@pytest.mark.parametrize("given", [Reward(math.nan, {}), Reward(math.inf, {}), 1.0, None], ids=str)
def test_anything_else_is_refused_with_the_problem(given: Any) -> None:
    with pytest.raises(OwnCodeError, match=r"reward of problem p7 .* is .*; a reward must be a finite number"):
        paid(lambda *_: given, PROBLEM, COMPLETION, VERDICT)


def test_a_verdict_that_counts_no_tests_has_none() -> None:
    assert (VERDICT.passed, VERDICT.total) == (0, 0)
