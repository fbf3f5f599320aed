"""Dense: the share of tests passed, and 1 only for an accepted answer.

Partial credit invites farming: a program that hard-codes the visible example, or the unchanged buggy program of a
repair task, passes some tests. So a part of the tests is worth at most `partial` of the whole, a forged verdict is
worth nothing, and an answer that passes every test but is refused all the same (it exited early, broke a rule) stays
below 1. With `every_test = false` in a code environment the ratio is a lower bound (flag `stopped_early`).

`accepted` is its sparse control arm: it pays for nothing but the whole, so hard-coding a visible example earns nothing.
The price: while a policy solves no problem at all, every group is constant and nothing is learned.
"""

from __future__ import annotations

from dataclasses import dataclass

from rlvrlab.registry import register
from rlvrlab.rewards.total import AllOrNothing, PartialCredit, judged, total
from rlvrlab.types import Completion, ErrorKind, Fraction01, Problem, Reward, Verdict


@register("reward", "pass_ratio")
@dataclass(frozen=True)
class PassRatio(PartialCredit):
    """Tests passed over tests there are."""

    partial: Fraction01 = 1.0
    """What passing nearly all tests tends to; 0 makes it sparse."""

    def __call__(self, problem: Problem, completion: Completion, verdict: Verdict) -> Reward:
        """1 for an accepted answer; otherwise the share of tests passed, which never reaches it."""
        if judged(verdict):
            return total({"pass_ratio": 1.0})
        forged = verdict.error is ErrorKind.TAMPERED
        most = (verdict.total - 1) / verdict.total if verdict.total else 0.0
        value = 0.0 if forged else self.partial * min(verdict.score, most)
        return total({"pass_ratio": value})


@register("reward", "accepted")
@dataclass(frozen=True)
class Accepted(AllOrNothing):
    """All tests or nothing."""

    part = "accepted"
