"""EWC (Kirkpatrick et al. 2017): a spring to each skill's anchor, stiff where the skill's answers depend on it.

    ½ coef Σ_s Σ_i F_s,i (θ_i − θ*_s,i)²        F_s: mean over sampled answers of the squared gradient of ONE answer

Trap: squaring the gradient of a batch's mean, as a well-known library does, is another and much smaller quantity.
Where nothing can be sampled in the middle of training (verl), F_s is measured on the reference answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rlvrlab.engines.base import Trainable
from rlvrlab.registry import register
from rlvrlab.train.guards.base import Gradient, Terms
from rlvrlab.train.guards.memory import RemembersSkills, answers_batch, sampled
from rlvrlab.train.state import Kept, Moment
from rlvrlab.types import Count, Positive


@register("guard", "ewc")
@dataclass(frozen=True)
class Ewc(RemembersSkills):
    """Elastic weight consolidation with a per-answer Fisher diagonal: one anchor and one diagonal per skill."""

    coef: Positive = 100.0
    """Strength."""
    memory_per_skill: Count = 32
    """Problems on which the Fisher diagonal is measured, rollout.n answers each."""

    needs_answers: ClassVar[bool] = True

    def begin(self, now: Moment, kept: Kept) -> Kept:
        """Anchor what is newly protected; what is trained again is let go."""
        kept = self.with_problems(now, kept)
        trained = set(now.stage.skills)
        steps = {skill: step for skill, step in kept.memory.get("steps", {}).items() if skill not in trained}
        springs = {skill: spring for skill, spring in kept.live.get("springs", {}).items() if skill not in trained}
        kept = Kept({**kept.memory, "steps": steps}, {**kept.live, "springs": springs})
        for skill in now.protected:
            if skill in steps:
                continue
            kept = sampled(now, kept, skill)
            if answers_batch(kept, skill) is None:
                now.say(f"ewc: no room in the memory for skill {skill!r}; it is not protected")
                continue
            steps = {**kept.memory["steps"], skill: now.step}
            kept = self._measured(now.engine, kept._replace(memory={**kept.memory, "steps": steps}), skill)
        return kept

    def terms(self, now: Moment, kept: Kept, gradient: Gradient) -> Terms:
        """The pulls F (θ − θ*), skill by skill."""
        springs = kept.live.get("springs", {})
        pulls = [now.engine.pull(*springs[skill]) for skill in now.protected if skill in springs]
        return Terms(pulls, [self.coef] * len(pulls), {})

    def rebuild(self, engine: Trainable, kept: Kept, step: int) -> Kept:
        """The stored answers give the same diagonal at the same parameters."""
        for skill, anchored in kept.memory.get("steps", {}).items():
            if anchored == step:
                kept = self._measured(engine, kept, skill)
        return kept

    def _measured(self, engine: Trainable, kept: Kept, skill: str) -> Kept:
        batch = answers_batch(kept, skill)
        assert batch is not None
        springs = {**kept.live.get("springs", {}), skill: (engine.snapshot(), engine.fisher(batch))}
        return kept._replace(live={**kept.live, "springs": springs})
