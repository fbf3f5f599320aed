"""1 for a correct answer, 0 for any other; with the demanded form and against going round in circles.

binary: nothing to farm, but no signal either while every answer is wrong.
binary_format: the trap is that form is easier than truth: a policy that cannot yet answer first learns to be
well-formed. Whether the form is worth anything is up to the environment: a graph verdict grants it only for a list of
existing nodes.
binary_format_repeat: a policy whose answers are cut at the length limit likes to loop until then; the deduction makes
stopping better.
"""

from __future__ import annotations

from dataclasses import dataclass

from rlvrlab.registry import register
from rlvrlab.rewards.total import AllOrNothing, judged, total
from rlvrlab.types import Completion, Fraction01, Problem, Reward, Verdict


@register("reward", "binary")
@dataclass(frozen=True)
class Binary(AllOrNothing):
    """Correct or not."""

    part = "correct"


@register("reward", "binary_format")
@dataclass(frozen=True)
class BinaryFormat:
    """correct + 0.5 format, from 0 to 1.5."""

    format: Fraction01 = 0.5
    """What the form is worth."""

    def __call__(self, problem: Problem, completion: Completion, verdict: Verdict) -> Reward:
        """The parts `correct` and `format`, the latter as far as the verdict grants it."""
        return total({"correct": float(judged(verdict)), "format": self.format * verdict.parts.get("format", 0.0)})


@register("reward", "binary_format_repeat")
@dataclass(frozen=True)
class BinaryFormatRepeat(BinaryFormat):
    """correct + 0.5 format - 0.5 repeat, from -0.5 to 1.5."""

    repeat: Fraction01 = 0.5
    """What a tandem repeat costs."""

    def __call__(self, problem: Problem, completion: Completion, verdict: Verdict) -> Reward:
        """The parts `correct` and `format`, less `repeat` for a text that goes round in circles."""
        paid = super().__call__(problem, completion, verdict).parts
        return total({**paid, "repeat": -self.repeat * verdict.parts.get("repeat", 0.0)})
