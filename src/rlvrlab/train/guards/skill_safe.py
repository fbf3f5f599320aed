"""Skill-safe training: the safe step of safe_step.py with one constraint for each skill and every choice open.

`trigger = "drop"` protects a skill only while its success on the remembered problems is significantly below that of the
anchor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from annotated_types import Ge

from rlvrlab.registry import register
from rlvrlab.skills.trigger import Trigger
from rlvrlab.surgery.projection import Kind, Solver
from rlvrlab.train.guards.losses import MemoryLoss
from rlvrlab.train.guards.memory import remembered
from rlvrlab.train.guards.safe_step import SafeStep
from rlvrlab.train.state import Kept, Moment
from rlvrlab.types import Count, NonNegative


@register("guard", "skill_safe")
@dataclass(frozen=True)
class SkillSafe(SafeStep):
    """The nearest step that does no harm."""

    protected: tuple[str, ...] = ()
    """Skills to protect when they are not trained alone; empty: those of earlier stages and those trained together."""
    gradient: MemoryLoss | Literal["policy"] = "likelihood"
    """What protects a skill: stored right answers (likelihood, accepted), policy (reward), kl by samples, kl_full."""
    tolerance: Kind = "budget"
    """What ε counts: a budget over the run, or a loss per step, relative (a cosine) or absolute."""
    epsilon: Annotated[float, Ge(-1)] = 0.0
    """What a skill may lose; negative asks for gains."""
    solver: Solver = "exact"
    """sequential and dykstra are approximations, for comparison."""
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

    @property
    def needs_sampling(self) -> bool:
        """Also for the drop trigger, which asks the remembered problems again."""
        return self.gradient != "likelihood" or self.trigger == "drop"

    def begin(self, now: Moment, kept: Kept) -> Kept:
        """What is trained again needs no trigger."""
        memory = dict(kept.memory)
        for part in {"right", "triggers"} & memory.keys():
            memory[part] = {skill: one for skill, one in memory[part].items() if skill not in now.stage.skills}
        return super().begin(now, kept._replace(memory=memory))

    def anchor_skill(self, now: Moment, kept: Kept, skill: str) -> Kept:
        """Also what is right at the anchor, where a drop is what protects."""
        kept = super().anchor_skill(now, kept, skill)
        if self.trigger == "always" or skill not in kept.memory["anchors"]:
            return kept
        right = {**kept.memory.get("right", {}), skill: self._right(now, kept, skill)}
        triggers = {**kept.memory.get("triggers", {}), skill: Trigger().to_json()}
        return kept._replace(memory={**kept.memory, "right": right, "triggers": triggers})

    def wanted(self, now: Moment, kept: Kept) -> tuple[Kept, list[str], dict[str, float]]:
        """Those whose trigger is on."""
        kept, wanted, metrics = super().wanted(now, kept)
        if self.trigger == "always":
            return kept, wanted, metrics
        kept, metrics = self._checked_triggers(now, kept)
        return kept, [skill for skill in wanted if kept.memory["triggers"][skill]["on"]], metrics

    def _checked_triggers(self, now: Moment, kept: Kept) -> tuple[Kept, dict[str, float]]:
        """The same problems, answered greedily as at the anchor: once in a step, however many updates it has."""
        at = [now.phase, now.phase_step]
        if now.phase_step % self.trigger_every or kept.memory.get("checked") == at:
            return kept, {}
        triggers: dict[str, Any] = dict(kept.memory.get("triggers", {}))
        metrics: dict[str, float] = {}
        for skill in [name for name in now.protected if name in triggers]:
            before, right = set(kept.memory["right"][skill]), set(self._right(now, kept, skill))
            state = Trigger(**triggers[skill])
            after = state.checked(len(before - right), len(right - before))
            triggers[skill] = after.to_json()
            metrics[f"guard/{skill}/on"] = float(after.on)
            if after.on != state.on:
                words = "dropped significantly: protection on" if after.on else "has recovered: protection off"
                now.say(f"skill_safe: skill {skill!r} {words} ({len(before)} right at the anchor, {len(right)} now)")
        return kept._replace(memory={**kept.memory, "triggers": triggers, "checked": at}), metrics

    def _right(self, now: Moment, kept: Kept, skill: str) -> list[str]:
        rollouts = now.asked(remembered(kept, skill), "check", skill, greedy=True)
        return [rollout.problem.id for rollout in rollouts if rollout.verdict.correct is True]
