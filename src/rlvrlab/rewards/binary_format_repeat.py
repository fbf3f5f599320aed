"""1 for a correct answer, half as much for the form, minus half for going round in circles.

A policy whose answers are cut at the length limit likes to loop until then; the deduction makes stopping better.
"""

from __future__ import annotations

from dataclasses import dataclass

from rlvrlab.registry import register
from rlvrlab.rewards.total import judged, total
from rlvrlab.types import Completion, Fraction01, Problem, Reward, Verdict


@register("reward", "binary_format_repeat")
@dataclass(frozen=True)
class BinaryFormatRepeat:
    """correct + 0.5 format - 0.5 repeat, from -0.5 to 1.5."""

    format: Fraction01 = 0.5
    """What the form is worth."""
    repeat: Fraction01 = 0.5
    """What a tandem repeat costs."""

    def __call__(self, problem: Problem, completion: Completion, verdict: Verdict) -> Reward:
        """The parts `correct` and `format`, less `repeat` for a text that goes round in circles."""
        return total(
            {
                "correct": float(judged(verdict)),
                "format": self.format * verdict.parts.get("format", 0.0),
                "repeat": -self.repeat * verdict.parts.get("repeat", 0.0),
            }
        )
