"""1 for a correct answer, 0 for any other: nothing to farm, but no signal either while every answer is wrong."""

from __future__ import annotations

from dataclasses import dataclass

from rlvrlab.registry import register
from rlvrlab.rewards.total import PartialCredit, judged, total
from rlvrlab.types import Completion, Problem, Reward, Verdict


@register("reward", "binary")
@dataclass(frozen=True)
class Binary(PartialCredit):
    """Correct or not."""

    def __call__(self, problem: Problem, completion: Completion, verdict: Verdict) -> Reward:
        """1 for a correct answer, 0 for any other."""
        return total({"correct": float(judged(verdict))})
