"""A weighted sum over the verdict's named parts, with gates: a part counts only as far as its gate is open.

    weights = { correct = 1.0, quality = 0.3, format = 0.1, repeat = -0.5 }
    gates   = { quality = "feasible", format = "feasible" }

Without gates, parts are farmed one by one: form without content, content without form.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rlvrlab.errors import UserError
from rlvrlab.registry import register
from rlvrlab.rewards.total import judged, total
from rlvrlab.types import Completion, Problem, Reward, Verdict


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
