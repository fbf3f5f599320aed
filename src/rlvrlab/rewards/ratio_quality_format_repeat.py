"""Partial credit for feasible answers: 1 for the optimum, half the quality below it, 0 for what breaks the rules.

quality is value/optimum where more is better and optimum/value where less is. Halving it keeps a gap of at least a half
between the best and the second best, without which a policy settles for the second best.
"""

from __future__ import annotations

from dataclasses import dataclass

from rlvrlab.registry import register
from rlvrlab.rewards.total import judged, total
from rlvrlab.types import Completion, Fraction01, Problem, Reward, Verdict


@register("reward", "ratio_quality_format_repeat")
@dataclass(frozen=True)
class RatioQualityFormatRepeat:
    """optimal 1, feasible 0.5 quality, else 0; + 0.5 format - 0.5 repeat."""

    share: Fraction01 = 0.5
    """What a feasible answer of quality 1 would be worth."""
    format: Fraction01 = 0.5
    """What the form is worth."""
    repeat: Fraction01 = 0.5
    """What a tandem repeat costs."""
    compat: bool = False
    """Bit for bit the original: with verdicts of mode npgmuse, a quality above 1 is paid as such."""

    def __call__(self, problem: Problem, completion: Completion, verdict: Verdict) -> Reward:
        """The parts `format`, `answer` and `repeat`; the answer earns 1, or its share of the quality."""
        quality = verdict.parts.get("quality", verdict.score)
        answer = 1.0 if judged(verdict) else self.share * (quality if self.compat else min(1.0, quality))
        # The original adds in this order, and floating-point sums depend on it.
        return total(
            {
                "format": self.format * verdict.parts.get("format", 0.0),
                "answer": answer,
                "repeat": -self.repeat * verdict.parts.get("repeat", 0.0),
            }
        )
