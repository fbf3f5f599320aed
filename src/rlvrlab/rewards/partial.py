"""Partial credit: something for the demanded form, something for keeping the number constraint, 1 for correct.

With the defaults: nothing extractable 0, a well-formed expression 0.1, one with exactly the given numbers 0.3,
correct 1. The trap is farming: a policy that can never be right settles for the largest sure part. So the parts below
correct stay well under 1, and an environment grants a part only together with those before it.
"""

from __future__ import annotations

from dataclasses import dataclass

from rlvrlab.errors import UserError
from rlvrlab.registry import register
from rlvrlab.rewards.total import PartialCredit, judged, total
from rlvrlab.types import Completion, Fraction01, Problem, Reward, Verdict


@register("reward", "partial")
@dataclass(frozen=True)
class Partial(PartialCredit):
    """Weights over the verdict's named parts; being correct earns what they leave of 1."""

    format: Fraction01 = 0.1
    """For an answer that could be extracted and parsed."""
    numbers: Fraction01 = 0.2
    """For using the numbers as demanded."""

    def __post_init__(self) -> None:
        if min(self.format, self.numbers) < 0 or not self.format + self.numbers < 1:
            raise UserError(
                f"reward partial: format = {self.format}, numbers = {self.numbers}: "
                "both at least 0 and together below 1, or a wrong answer would be worth a right one"
            )

    def __call__(self, problem: Problem, completion: Completion, verdict: Verdict) -> Reward:
        """Weighted parts of a wrong answer; a correct one earns all of them and the rest of 1."""
        right = judged(verdict)
        formed, used = (1.0 if right else verdict.parts.get(part, 0.0) for part in ("format", "numbers"))
        rest = 1.0 - (self.format + self.numbers) if right else 0.0
        return total({"format": self.format * formed, "numbers": self.numbers * used, "correct": rest})
