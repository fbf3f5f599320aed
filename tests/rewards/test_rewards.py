"""Rewards: what a verdict is worth, and that the logged parts add up to it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from rlvrlab.envs.countdown import Countdown
from rlvrlab.errors import UserError
from rlvrlab.registry import find
from rlvrlab.rewards.binary import Binary
from rlvrlab.rewards.partial import Partial
from rlvrlab.types import Completion, Problem, Reward, RewardFunction, Verdict, unjudged

PROBLEM = Problem("p", "countdown", "countdown", "3 7 = 21\n", {"numbers": [3, 7], "target": 21})
COMPLETION = Completion("", (), ())


def reward_of(reward: RewardFunction, verdict: Verdict) -> Reward:
    return reward(PROBLEM, COMPLETION, verdict)


def judged(text: str) -> Verdict:
    return Countdown(style="bare").verify(PROBLEM, text)


@pytest.mark.parametrize(
    ("text", "binary", "partial"),
    [("3*7", 1.0, 1.0), ("3+7", 0.0, 0.1 + 0.2), ("21", 0.0, 0.1), ("3*7=21", 0.0, 0.0), ("", 0.0, 0.0)],
)
def test_defaults_on_countdown(text: str, binary: float, partial: float) -> None:
    assert reward_of(Binary(), judged(text)).value == binary
    assert reward_of(Partial(), judged(text)).value == partial


def test_found_by_name() -> None:
    assert find("reward", "binary") is Binary
    assert find("reward", "partial") is Partial


@given(st.floats(0, 0.49), st.floats(0, 0.49), st.booleans(), st.sampled_from([(0, 0), (1, 0), (1, 1), (0.5, 0.25)]))
def test_parts_add_up_and_only_right_answers_reach_one(
    format: float, numbers: float, correct: bool, earned: tuple[float, float]
) -> None:
    parts = {"format": earned[0], "numbers": earned[1], "correct": float(correct)}
    verdict = Verdict(correct, float(correct), parts=parts)
    for reward in (Binary(), Partial(format, numbers)):
        found = reward_of(reward, verdict)
        assert found.value == sum(found.parts.values())
        assert found.value == pytest.approx(1.0, abs=1e-15) if correct else found.value < 0.99


def test_environments_without_these_parts_still_work() -> None:
    assert reward_of(Partial(), Verdict(True, 1.0)).value == 1.0
    assert reward_of(Partial(), Verdict(False, 0.5, parts={"other": 1.0})).value == 0.0


@pytest.mark.parametrize("reward", [Binary(), Partial()])
def test_an_unjudged_answer_has_no_reward(reward: RewardFunction) -> None:
    with pytest.raises(AssertionError, match="unjudged"):
        reward_of(reward, unjudged("the judge was down"))


@pytest.mark.parametrize(("format", "numbers"), [(0.5, 0.5), (-0.1, 0.2), (1.0, 0.0), (float("nan"), 0.1)])
def test_weights_that_reward_wrong_answers_are_refused(format: float, numbers: float) -> None:
    with pytest.raises(UserError, match="together below 1"):
        Partial(format, numbers)


def test_recipe_table_is_checked() -> None:
    assert TypeAdapter(Partial).validate_json('{"format": 0.2}') == Partial(format=0.2)
    with pytest.raises(ValidationError):
        TypeAdapter(Partial).validate_json('{"fromat": 0.2}')
