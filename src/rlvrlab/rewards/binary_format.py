"""1 for a correct answer, and half as much again for the demanded form.

The trap is that form is easier than truth: a policy that cannot yet answer first learns to be well-formed. Whether the
form is worth anything is up to the environment: a graph verdict grants it only for a list of existing nodes.
"""

from __future__ import annotations

from dataclasses import dataclass

from rlvrlab.registry import register
from rlvrlab.rewards.total import judged, total
from rlvrlab.types import Completion, Fraction01, Problem, Reward, Verdict


@register("reward", "binary_format")
@dataclass(frozen=True)
class BinaryFormat:
    """correct + 0.5 format, from 0 to 1.5."""

    format: Fraction01 = 0.5
    """What the form is worth."""

    def __call__(self, problem: Problem, completion: Completion, verdict: Verdict) -> Reward:
        """The parts `correct` and `format`, the latter as far as the verdict grants it."""
        return total({"correct": float(judged(verdict)), "format": self.format * verdict.parts.get("format", 0.0)})
