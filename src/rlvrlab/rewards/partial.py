"""Partial credit: something for the parts of a verdict, the whole only for a correct answer.

`partial` pays for the demanded form and for keeping the number constraint: with the defaults nothing extractable earns
0, a well-formed expression 0.1, one with exactly the given numbers 0.3, correct 1. `pass_ratio` is dense: the share of
tests passed, and 1 only for an accepted answer. `weighted` is any weighted sum over the verdict's named parts, with
gates: a part counts only as far as its gate is open.

    weights = { correct = 1.0, quality = 0.3, format = 0.1, repeat = -0.5 }
    gates   = { quality = "feasible", format = "feasible" }

The trap is farming: a policy that can never be right settles for the largest sure part, and without gates parts are
farmed one by one, form without content, content without form. So the parts below correct stay well under 1, and an
environment grants a part only together with those before it. A program that hard-codes the visible example, or the
unchanged buggy program of a repair task, passes some tests: so a part of the tests is worth at most `partial` of the
whole, a forged verdict is worth nothing, and an answer that passes every test but is refused all the same (it exited
early, broke a rule) stays below 1. Set `every_test = true` in a code environment, or the ratio stops counting at the
first failure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rlvrlab.errors import UserError
from rlvrlab.registry import register
from rlvrlab.rewards.total import judged, total
from rlvrlab.types import Completion, ErrorKind, Fraction01, Problem, Reward, Verdict


@register("reward", "partial")
@dataclass(frozen=True)
class Partial:
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
        if judged(verdict):
            rest = 1.0 - (self.format + self.numbers)
            parts = {"format": self.format, "numbers": self.numbers, "correct": rest}
        else:
            earned = verdict.parts
            parts = {
                "format": self.format * earned.get("format", 0.0),
                "numbers": self.numbers * earned.get("numbers", 0.0),
                "correct": 0.0,
            }
        return total(parts)


@register("reward", "pass_ratio")
@dataclass(frozen=True)
class PassRatio:
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


@register("reward", "weighted")
@dataclass(frozen=True)
class Weighted:
    """Σ weight · part · gate."""

    weights: Mapping[str, float] = field(default_factory=lambda: {"correct": 1.0})
    """What each part is worth; negative for what is to be avoided. A part the verdict lacks counts 0."""
    gates: Mapping[str, str] = field(default_factory=dict)
    """For a part, the other part that must be granted for it to count."""

    def __post_init__(self) -> None:
        if not self.weights:
            raise UserError("reward weighted: weights is empty; give at least one, as in weights = { correct = 1.0 }")
        closed = sorted(set(self.gates) - set(self.weights))
        if closed:
            raise UserError(f"reward weighted: gates for {closed}, which have no weight; weights has {[*self.weights]}")

    def __call__(self, problem: Problem, completion: Completion, verdict: Verdict) -> Reward:
        """One part per weight, each multiplied by its gate."""
        parts = {"correct": float(judged(verdict)), **verdict.parts}
        return total(
            {
                name: weight * parts.get(name, 0.0) * (parts.get(self.gates[name], 0.0) if name in self.gates else 1.0)
                for name, weight in self.weights.items()
            }
        )
