"""Skill-safe training: correct the optimiser's actual step so that no protected skill loses more than ε (first order).

    u = step(…);   min ½ |d − u|²  with  ⟨∇J_s, d⟩ ≥ −ε_s;   θ += d − u          (surgery/projection.py)

The gradients of protected skills come from a small memory, at the parameters before the step:
    likelihood   J_s = mean log-probability of stored verified answers: needs no sampling, does not vanish
    policy       J_s = expected reward, by policy gradient on freshly sampled answers: vanishes once a skill is mastered
    kl           J_s = mean log-probability of the anchor's own answers, right or wrong: −KL(anchor ‖ policy) + constant
Correcting the gradient instead of the step would not do: Adam's rescaling breaks the constraint in half of all steps.
Engines give gradients of losses, ℓ_s = −∇J_s: ⟨∇J_s, d⟩ = −⟨ℓ_s, d⟩, and the shift is −Σ λ_s ℓ_s.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge

from rlvrlab.registry import register
from rlvrlab.surgery.projection import Solver
from rlvrlab.surgery.tolerance import Kind
from rlvrlab.train.guards.base import Guard
from rlvrlab.types import Count, NonNegative


@register("guard", "skill_safe")
@dataclass(frozen=True)
class SkillSafe:
    """The nearest step that does no harm."""

    protected: tuple[str, ...] = ()
    """Skills to protect when they are not trained; empty protects those of earlier stages."""
    gradient: Literal["likelihood", "policy", "kl"] = "likelihood"
    """What a protected skill's gradient is of."""
    tolerance: Kind = "budget"
    """What ε counts: a budget over the run, or a loss per step, relative (a cosine) or absolute."""
    epsilon: Annotated[float, Ge(-1)] = 0.0
    """What a skill may lose; negative asks for gains."""
    solver: Solver = "exact"
    """sequential and dykstra are approximations, for comparison."""
    memory_per_skill: Count = 32
    """Problems remembered of each skill."""
    memory_total: Count = 256
    """For all skills together; what is too many gets none, and that is said."""
    refresh: Count = 1
    """Steps a gradient is used for before it is computed anew."""
    repair: NonNegative = 0.5
    """Share of a deficit to be won back in one step (budget)."""
    cap: NonNegative = 0.5
    """Most that is demanded in one step, as a cosine (budget)."""
    trigger: Literal["always", "drop"] = "always"
    """drop protects a skill only while its success on remembered problems is significantly below the anchor's."""
    trigger_every: Count = 10
    """Steps between the checks of that."""

    def build(self) -> Guard:
        """The object that works."""
        from rlvrlab.train.guards.projector import Projector

        return Projector(self)
