"""Partial credit for feasible answers: quality is value/optimum where more is better and optimum/value where less is.

ratio_quality_format_repeat: 1 for the optimum, half the quality below it, 0 for what breaks the rules. Halving it keeps
a gap of at least a half between the best and the second best, without which a policy settles for the second best.
complicated, the earliest of the NPG-Muse line: 2 for the optimum, half the quality for feasible answers, -1 for others.
Its range is wide (-2 to 3) and an answer that dares nothing is as bad as a wrong one. TSP squares the quality, because
even a careless tour has a ratio near 0.8.
"""

from __future__ import annotations

from dataclasses import dataclass

from rlvrlab.registry import register
from rlvrlab.rewards.total import judged, total
from rlvrlab.types import Completion, Fraction01, NonNegative, Problem, Reward, Verdict


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
        return _added_up(verdict, self.format, answer, self.repeat)


@register("reward", "complicated")
@dataclass(frozen=True)
class Complicated:
    """optimal 2, feasible 0.5 quality, else -1; + format - repeat."""

    optimal: NonNegative = 2.0
    """For a correct answer."""
    share: Fraction01 = 0.5
    """What a feasible answer of quality 1 would be worth."""
    infeasible: NonNegative = 1.0
    """What an infeasible or missing answer costs."""
    format: NonNegative = 1.0
    """What the form is worth."""
    repeat: NonNegative = 1.0
    """What a tandem repeat costs."""
    squared: tuple[str, ...] = ("TSP",)
    """Skills whose quality counts squared."""
    compat: bool = False
    """Bit for bit the original: with verdicts of mode npgmuse, a quality above 1 is paid as such."""

    def __call__(self, problem: Problem, completion: Completion, verdict: Verdict) -> Reward:
        """The parts `format`, `answer` and `repeat`; the answer alone depends on optimum, feasibility and quality."""
        if judged(verdict):
            answer = self.optimal
        elif not verdict.parts.get("feasible", 0.0):
            answer = -self.infeasible
        else:
            quality = verdict.parts["quality"] if self.compat else min(1.0, verdict.parts["quality"])
            answer = self.share * (quality**2 if problem.skill in self.squared else quality)
        return _added_up(verdict, self.format, answer, self.repeat)


def _added_up(verdict: Verdict, format: float, answer: float, repeat: float) -> Reward:
    """In the order in which the original adds, since floating-point sums depend on it."""
    formed, repeated = (verdict.parts.get(part, 0.0) for part in ("format", "repeat"))
    return total({"format": format * formed, "answer": answer, "repeat": -repeat * repeated})
