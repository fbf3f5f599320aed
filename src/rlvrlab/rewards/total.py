"""What rewards share: the value is the sum of the parts, added from left to right, and only judged answers have one."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping

from rlvrlab.types import Completion, Problem, Reward, Verdict


class PartialCredit:
    """Base of rewards that are 1 for a right answer and between 0 and 1 for any other: their mean is an accuracy."""

    @abstractmethod
    def __call__(self, problem: Problem, completion: Completion, verdict: Verdict) -> Reward:
        """The reward of a judged answer."""


def total(parts: Mapping[str, float]) -> Reward:
    """A reward whose parts add up to its value; plain additions, whose rounding is the same in every Python."""
    parts = {name: part + 0.0 for name, part in parts.items()}  # + 0.0 turns -0.0 into 0.0, which reads better
    value = 0.0
    for part in parts.values():
        value += part
    return Reward(value, parts)


def judged(verdict: Verdict) -> bool:
    """Whether the answer is right; one that could not be judged is masked and never gets here."""
    assert verdict.correct is not None, "an unjudged answer has no reward; mask it"
    return verdict.correct
