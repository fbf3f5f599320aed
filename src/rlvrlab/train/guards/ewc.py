"""EWC (Kirkpatrick et al. 2017): a spring to each skill's anchor, stiff where the skill's answers depend on it.

    ½ coef Σ_s Σ_i F_s,i (θ_i − θ*_s,i)²        F_s: mean over sampled answers of the squared gradient of ONE answer

Trap: squaring the gradient of a batch's mean, as a well-known library does, is another and much smaller quantity.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlvrlab.engines.base import Snapshot, Vector
from rlvrlab.registry import register
from rlvrlab.train.guards.bank import Bank
from rlvrlab.train.guards.base import Guard, Moment
from rlvrlab.types import Count, Positive

if TYPE_CHECKING:
    from rlvrlab.train.lab import Lab


@register("guard", "ewc")
@dataclass(frozen=True)
class Ewc:
    """Elastic weight consolidation with a per-answer Fisher diagonal."""

    coef: Positive = 100.0
    """Strength."""
    protected: tuple[str, ...] = ()
    """Skills to protect when they are not trained; empty protects those of earlier stages."""
    memory_per_skill: Count = 32
    """Problems on which the Fisher diagonal is measured, rollout.n answers each."""
    memory_total: Count = 256
    """For all skills together."""

    def build(self) -> Guard:
        """The springs."""
        return Springs(self)


class Springs(Guard):
    """One anchor and one diagonal per skill."""

    def __init__(self, table: Ewc) -> None:
        super().__init__()
        self._coef = table.coef
        self._bank = Bank(self.memory, table.memory_per_skill, table.memory_total)
        self._live: dict[str, tuple[Snapshot, Vector]] = {}

    def begin(self, now: Moment) -> None:
        """Anchor what is newly protected; what is trained again is let go."""
        steps: dict[str, int] = self.memory.setdefault("steps", {})
        for skill in [name for name in steps if name in now.stage.skills]:
            del steps[skill]
            self._live.pop(skill, None)
        for skill in now.protected:
            if skill not in steps:
                answers = self._bank.sample(now, skill)
                if not answers:
                    now.say(f"ewc: no room in the memory for skill {skill!r}; it is not protected")
                    continue
                steps[skill] = now.step
                self._measure(now.lab, skill)

    def terms(self, now: Moment) -> list[tuple[Vector, float]]:
        """F (θ − θ*), skill by skill."""
        live = [self._live[skill] for skill in now.protected if skill in self._live]
        return [(now.lab.engine.pull(snapshot, diagonal), self._coef) for snapshot, diagonal in live]

    def anchors(self) -> set[int]:
        """Where the skills were anchored."""
        return set(self.memory.get("steps", {}).values())

    def rebuild(self, lab: Lab, step: int) -> None:
        """The stored answers give the same diagonal at the same parameters."""
        for skill, anchored in self.memory.get("steps", {}).items():
            if anchored == step:
                self._measure(lab, skill)

    def _measure(self, lab: Lab, skill: str) -> None:
        batch: Any = self._bank.batch(skill)
        self._live[skill] = (lab.engine.snapshot(), lab.engine.fisher(batch))
