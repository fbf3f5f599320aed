"""The proximal safe step: the skill-safe update with a spring to where the stage began and perhaps several constraints.

    d₀ = (u − κ (θ − θ*)) / (1 + κ), then the projection of safe_step.py on d₀

First-order constraints leave nearly every direction of drift free, and drift costs ½ dᵀHd, which the spring bounds.
`kappa = 0, constraints = 1` is `skill_safe`; without anything to constrain it is L2 outside the optimiser.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge

from rlvrlab.registry import register
from rlvrlab.train.guards.losses import MemoryLoss
from rlvrlab.train.guards.safe_step import SafeStep
from rlvrlab.types import Count, NonNegative


@register("guard", "proximal")
@dataclass(frozen=True)
class Proximal(SafeStep):
    """The nearest step that does no harm, to one that is drawn back to the anchor; a budget for every constraint."""

    kappa: NonNegative = 0.01
    """Strength of the spring: every step goes κ / (1 + κ) of the way back."""
    constraints: Count = 1
    """Of each skill: its memory is cut into so many clusters of similar prompts, each with a gradient of its own."""
    gradient: MemoryLoss = "likelihood"
    """What protects a skill: stored right answers, the anchor's accepted ones, samples of kl, or the exact kl_full."""
    epsilon: Annotated[float, Ge(-1)] = 0.0
    """What every constraint may lose over the run, in nats per token; negative asks for gains."""
    repair: NonNegative = 0.5
    """Share of a deficit to be won back in one step."""
    cap: NonNegative = 0.5
    """Most that is demanded in one step, as a cosine."""
    refresh: Count = 1
    """Steps a gradient is used for before it is computed anew."""
    protected: tuple[str, ...] = ()
    """Skills to protect when they are not trained alone; empty: those of earlier stages and those trained together."""
