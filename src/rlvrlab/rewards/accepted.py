"""Sparse: 1 when every hidden test passes, 0 otherwise. The control arm of `pass_ratio`.

It pays for nothing but the whole, so hard-coding a visible example earns nothing. The price: while a policy solves no
problem at all, every group is constant and nothing is learned.
"""

from __future__ import annotations

from dataclasses import dataclass

from rlvrlab.registry import register
from rlvrlab.rewards.total import PartialCredit, judged, total
from rlvrlab.types import Completion, Problem, Reward, Verdict


@register("reward", "accepted")
@dataclass(frozen=True)
class Accepted(PartialCredit):
    """All tests or nothing."""

    def __call__(self, problem: Problem, completion: Completion, verdict: Verdict) -> Reward:
        """1 for an accepted answer, 0 for any other."""
        return total({"accepted": float(judged(verdict))})
