"""GEM (Lopez-Paz and Ranzato 2017) and A-GEM (Chaudhry et al. 2019): a gradient that raises no remembered loss.

    GEM      min_d ½ |d − g|²   subject to   ⟨ℓ_s, d⟩ ≥ 0 for every skill          d = g + Σ v_s ℓ_s,  v_s ≥ margin
    A-GEM    the same with one constraint, the mean of the ℓ_s

All are gradients of losses, so a step along −d lowers every remembered loss or leaves it, to first order. As in the
reference code nothing is changed while no constraint is violated; where one is, every ℓ_s is added `margin` times at
least.
Trap: the constraint holds for the gradient, not for the step an adaptive optimiser makes of it. `skill_safe` corrects
the step itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rlvrlab.registry import register
from rlvrlab.surgery.projection import correction_norm, gem_multipliers
from rlvrlab.train.guards.base import Gradient, Terms
from rlvrlab.train.guards.losses import RemembersLosses, loss_metrics
from rlvrlab.train.state import Kept, Moment
from rlvrlab.types import NonNegative


@register("guard", "gem")
@dataclass(frozen=True)
class Gem(RemembersLosses):
    """Project the gradient on what raises no remembered loss."""

    average: bool = False
    """One constraint, the mean of the skills' gradients, instead of one for each: A-GEM."""
    margin: NonNegative = 0.0
    """How much of every remembered gradient is added at least, where one is violated: GEM's memory strength."""

    def terms(self, now: Moment, kept: Kept, gradient: Gradient) -> Terms:
        """Σ v_s ℓ_s."""
        found = self.losses(now, kept)
        if not found:
            return Terms([], [], {})
        vectors = [one.vector for one in found]
        every = now.engine.gramian([*vectors, *gradient.vectors])["global"]
        metrics = loss_metrics(found)
        if not np.isfinite(every).all():
            now.engine.release(vectors)
            now.say(f"{self.name}: a remembered gradient or the gradient itself is NaN or infinite; it stays as it is")
            return Terms([], [], metrics | {"guard/not_finite": 1.0})
        count = len(vectors)
        gather_CS = np.full((1, count), 1 / count) if self.average else np.eye(count)
        gramian_CC = gather_CS @ every[:count, :count] @ gather_CS.T
        along_C = gather_CS @ every[:count, count:] @ np.array(gradient.weights)
        multiplier_C = gem_multipliers(gramian_CC, along_C, self.margin)
        metrics |= {
            "guard/active": float((multiplier_C > 0).sum()),
            "guard/correction": correction_norm(gramian_CC, multiplier_C),
            "guard/violation": float(np.maximum(-along_C, 0.0).max()),
        }
        if not multiplier_C.any():
            now.engine.release(vectors)
            return Terms([], [], metrics)
        return Terms(vectors, [float(v) for v in multiplier_C @ gather_CS], metrics)
