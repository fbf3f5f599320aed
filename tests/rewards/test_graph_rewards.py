"""Graph rewards, composition, shaping, control arms: formulas, bounds, and that parts add up to the value."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from rlvrlab.errors import UserError
from rlvrlab.registry import find
from rlvrlab.rewards.binary import BinaryFormat, BinaryFormatRepeat
from rlvrlab.rewards.controls import Constant, Inverted, RandomReward
from rlvrlab.rewards.overlong import Overlong
from rlvrlab.rewards.quality import Complicated, RatioQualityFormatRepeat
from rlvrlab.rewards.weighted import Weighted
from rlvrlab.types import Completion, ErrorKind, Finish, Problem, RewardFunction, Verdict, unjudged

COMPLETION = Completion("", (), ())
REWARDS: dict[str, RewardFunction] = {
    "binary_format": BinaryFormat(),
    "binary_format_repeat": BinaryFormatRepeat(),
    "ratio_quality_format_repeat": RatioQualityFormatRepeat(),
    "complicated": Complicated(),
    "weighted": Weighted({"correct": 1.0, "quality": 0.3, "repeat": -0.5}, {"quality": "format"}),
    "overlong": Overlong(),
    "random": RandomReward(),
    "inverted": Inverted("complicated"),
    "constant": Constant(),
}


def ask(skill: str = "MIS") -> Problem:
    return Problem("p", "graph", skill, "?")


def verdict(format: float, feasible: float, quality: float, repeat: float = 0.0) -> Verdict:
    correct = quality == 1.0
    parts = {"format": format, "feasible": feasible, "quality": quality, "correct": float(correct), "repeat": repeat}
    return Verdict(correct, min(1.0, quality), ErrorKind.NONE if correct else ErrorKind.WRONG, parts)


OPTIMAL, GOOD, BROKEN, MISSING = verdict(1, 1, 1.0), verdict(1, 1, 0.8), verdict(1, 0, 0.0), verdict(0, 0, 0.0)
LOOPING = verdict(0, 0, 0.0, repeat=1.0)


@pytest.mark.parametrize(
    ("name", "skill", "expected"),
    [
        ("binary_format", "MIS", [1.5, 0.5, 0.5, 0.0, 0.0]),
        ("binary_format_repeat", "MIS", [1.5, 0.5, 0.5, 0.0, -0.5]),
        ("ratio_quality_format_repeat", "MIS", [1.5, 0.9, 0.5, 0.0, -0.5]),
        ("complicated", "MIS", [3.0, 1.4, 0.0, -1.0, -2.0]),
        ("complicated", "TSP", [3.0, 1.32, 0.0, -1.0, -2.0]),
    ],
)
def test_formulas(name: str, skill: str, expected: list[float]) -> None:
    found = [REWARDS[name](ask(skill), COMPLETION, v).value for v in (OPTIMAL, GOOD, BROKEN, MISSING, LOOPING)]
    assert found == pytest.approx(expected)


PARTS = st.tuples(
    st.sampled_from([0.0, 1.0]), st.sampled_from([0.0, 1.0]), st.floats(0, 1), st.sampled_from([0.0, 1.0])
)


@given(PARTS, st.sampled_from(["TSP", "MIS"]))
def test_parts_add_up_and_stay_in_range(parts: tuple[float, float, float, float], skill: str) -> None:
    judged = verdict(*parts)
    ranges = {
        "binary_format": (0, 1.5),
        "binary_format_repeat": (-0.5, 1.5),
        "ratio_quality_format_repeat": (-0.5, 1.5),
        "complicated": (-2, 3),
        "random": (0, 1),
        "constant": (1, 1),
    }
    for name, reward in REWARDS.items():
        found = reward(ask(skill), COMPLETION, judged)
        assert found.value == pytest.approx(sum(found.parts.values()), abs=1e-12)
        low, high = ranges.get(name, (-9, 9))
        assert low <= found.value <= high
        assert all(str(part) != "-0.0" for part in found.parts.values())


@pytest.mark.parametrize("name", REWARDS)
def test_found_by_name_and_unjudged_answers_have_none(name: str) -> None:
    assert type(REWARDS[name]) is find("reward", name)
    with pytest.raises(AssertionError, match="unjudged"):
        REWARDS[name](ask(), COMPLETION, unjudged("down"))


def original(kind: str, task: str, value: int, expected: int, prefix: bool, repeat: bool) -> float:
    """NPG-Muse's arithmetic, in its order."""
    ratio = expected / value if task in ("TSP", "MVC", "GED") else value / expected
    if kind == "complicated":
        power = ratio**2 if task == "TSP" else ratio
        answer = 2.0 if value == expected else power * 0.5 if value > 0 else -1.0
        return (1.0 if prefix else 0.0) + answer + (-1.0 if repeat else 0.0)
    if kind == "ratio_quality_format_repeat":
        answer = 1.0 if value == expected else ratio * 0.5 if value > 0 else 0.0
        return (0.5 if prefix else 0.0) + answer + (-0.5 if repeat else 0.0)
    answer = 1.0 if value == expected else 0.0
    return answer + (0.5 if prefix else 0.0) + (-0.5 if repeat and kind == "binary_format_repeat" else 0.0)


@given(
    st.sampled_from(["binary_format", "binary_format_repeat", "ratio_quality_format_repeat", "complicated"]),
    st.sampled_from(["TSP", "MIS", "MVC"]),
    st.sampled_from([-2, -1]) | st.integers(1, 50_000),
    st.integers(1, 50_000),
    st.booleans(),
    st.booleans(),
)
def test_compat_is_the_original_bit_for_bit(
    kind: str, task: str, value: int, expected: int, prefix: bool, repeat: bool
) -> None:
    quality = 0.0 if value <= 0 else expected / value if task in ("TSP", "MVC") else value / expected
    parts = {"format": float(prefix), "feasible": float(value > 0), "quality": quality, "repeat": float(repeat)}
    judged = Verdict(value == expected, min(1.0, quality), parts=parts)
    options: dict[str, Any] = {"compat": True} if kind in ("ratio_quality_format_repeat", "complicated") else {}
    found = find("reward", kind)(**options)(ask(task), COMPLETION, judged)
    assert found.value == original(kind, task, value, expected, prefix, repeat)


def test_better_than_optimal_is_never_a_bonus() -> None:
    hack = Verdict(False, 1.0, ErrorKind.WRONG, {"format": 1.0, "feasible": 1.0, "quality": 13.5, "repeat": 0.0})
    for name in ("binary_format", "binary_format_repeat", "ratio_quality_format_repeat", "complicated"):
        honest = REWARDS[name](ask(), COMPLETION, OPTIMAL).value
        assert REWARDS[name](ask(), COMPLETION, hack).value < honest
    assert Complicated(compat=True)(ask(), COMPLETION, hack).value == 1.0 + 6.75


def test_gates_close_and_missing_parts_count_nothing() -> None:
    gated = Weighted({"correct": 1.0, "quality": 0.5}, {"quality": "format"})
    assert gated(ask(), COMPLETION, GOOD).parts == {"correct": 0.0, "quality": 0.4}
    assert gated(ask(), COMPLETION, verdict(0, 1, 0.8)).value == 0.0
    assert Weighted({"nonsense": 3.0})(ask(), COMPLETION, OPTIMAL).value == 0.0
    assert Weighted()(ask(), COMPLETION, Verdict(True, 1.0)).value == 1.0


@pytest.mark.parametrize(
    ("weights", "gates", "named"), [({}, {}, "weights is empty"), ({"a": 1.0}, {"b": "a"}, "gates")]
)
def test_weights_without_sense_are_refused(weights: dict[str, float], gates: dict[str, str], named: str) -> None:
    with pytest.raises(UserError, match=named):
        Weighted(weights, gates)


@pytest.mark.parametrize(
    ("tokens", "finish", "penalty"),
    [
        (0, "stop", 0.0),
        (80, "stop", 0.0),
        (90, "stop", 0.5),
        (100, "stop", 1.0),
        (300, "stop", 1.0),
        (5, "length", 1.0),
    ],
)
def test_overlong_sets_in_linearly(tokens: int, finish: str, penalty: float) -> None:
    shaped = Overlong("binary_format", {"format": 0.25}, limit=100, buffer=20)
    found = shaped(ask(), Completion("", (1,) * tokens, (), Finish(finish)), OPTIMAL)
    assert found.parts["overlong"] == -penalty and found.value == pytest.approx(1.25 - penalty)


def test_overlong_is_refused_when_the_buffer_exceeds_the_limit() -> None:
    with pytest.raises(UserError, match="buffer"):
        Overlong(limit=10, buffer=11)


def test_random_reward_is_keyed_by_the_rollout_and_blind_to_the_verdict() -> None:
    coin = RandomReward(chance=0.3)
    completions = [Completion(str(i), (i,), ()) for i in range(2000)]
    paid = [coin(ask(), c, OPTIMAL).value for c in completions]
    assert paid == [coin(ask(), c, MISSING).value for c in completions]
    assert sum(paid) / 2000 == pytest.approx(0.3, abs=0.04)
    assert paid != [RandomReward(chance=0.3, seed=1)(ask(), c, OPTIMAL).value for c in completions]


def test_inverted_turns_the_sign_and_constant_pays_everyone() -> None:
    for judged in (OPTIMAL, GOOD, MISSING):
        assert (
            Inverted("complicated")(ask(), COMPLETION, judged).value == -Complicated()(ask(), COMPLETION, judged).value
        )
        assert Constant(0.25)(ask(), COMPLETION, judged).value == 0.25


def test_recipe_tables_are_checked() -> None:
    assert TypeAdapter(Weighted).validate_json('{"weights": {"quality": 0.5}}') == Weighted({"quality": 0.5})
    assert TypeAdapter(Complicated).validate_json('{"squared": ["TSP"]}') == Complicated()
    for kind, table in ((Complicated, '{"optimal": -1}'), (Overlong, '{"limit": 0}'), (Weighted, '{"weight": {}}')):
        with pytest.raises(ValidationError):
            TypeAdapter(kind).validate_json(table)
