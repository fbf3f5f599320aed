"""Skill-safe training: correct the optimiser's actual step so that no protected skill loses more than ε (first order).

    u = step(…);   min ½ |d − u|²  with  ⟨∇J_s, d⟩ ≥ −ε_s;   θ += d − u          (surgery/projection.py)

The gradients of protected skills come from a small memory, at the parameters before the step:
    likelihood   J_s = mean log-probability of stored verified answers: needs no sampling, does not vanish
    policy       J_s = expected reward, by policy gradient on freshly sampled answers: vanishes once a skill is mastered
    kl           J_s = mean log-probability of the anchor's own answers, right or wrong: −KL(anchor ‖ policy) + constant
Where several skills are trained at once the weighted sum of their objectives is what the optimiser steps along, and the
constraints hold for each of them: no skill pays for the others' progress. They are held to what they were when the
stage began.
Correcting the gradient instead of the step would not do: Adam's rescaling breaks the constraint in half of all steps.
Engines give gradients of losses, ℓ_s = −∇J_s: ⟨∇J_s, d⟩ = −⟨ℓ_s, d⟩, and the shift is −Σ λ_s ℓ_s.
Suffixes: S protected skills, A vectors (two halves per skill), then u.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
from annotated_types import Ge

from rlvrlab.batch import Floats
from rlvrlab.engines.base import Vector
from rlvrlab.objectives.sft import Sft
from rlvrlab.registry import register
from rlvrlab.skills.trigger import Trigger
from rlvrlab.surgery.conflict import cosines
from rlvrlab.surgery.projection import Kind, Projected, Solver, correction_norm, project, tolerances
from rlvrlab.train.batches import sort_groups
from rlvrlab.train.guards.base import Kept, Moment
from rlvrlab.train.guards.memory import (
    KEPT_ANSWERS,
    RemembersSkills,
    answers_batch,
    halves,
    refilled,
    remembered,
    sampled,
    with_answers,
)
from rlvrlab.types import Count, NonNegative, Objective, Rollout


class Held(NamedTuple):
    """Gradients of one skill's loss, kept for some steps."""

    vectors: list[Vector]
    """Of the two halves of its memory; their sum is the gradient."""
    value: float
    """J_s when they were computed, moved on by the predicted changes since."""
    age: int
    """Steps since."""


@register("guard", "skill_safe")
@dataclass(frozen=True)
class SkillSafe(RemembersSkills):
    """The nearest step that does no harm."""

    protected: tuple[str, ...] = ()
    """Skills to protect when they are not trained alone; empty: those of earlier stages and those trained together."""
    gradient: Literal["likelihood", "policy", "kl"] = "likelihood"
    """Whose gradient protects a skill: likelihood of stored right answers, policy (reward), or kl to the anchor."""
    tolerance: Kind = "budget"
    """What ε counts: a budget over the run, or a loss per step, relative (a cosine) or absolute."""
    epsilon: Annotated[float, Ge(-1)] = 0.0
    """What a skill may lose; negative asks for gains."""
    solver: Solver = "exact"
    """sequential and dykstra are approximations, for comparison."""
    memory_per_skill: Count = 32
    """Problems remembered of each skill."""
    memory_total: Count = 256
    """For all skills together; skills that find no room get none, which is reported."""
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

    needs_answers: ClassVar[bool] = True
    protects_trained: ClassVar[bool] = True

    @property
    def needs_sampling(self) -> bool:
        """False for likelihood without the drop trigger: stored answers suffice, and references can replace them."""
        return self.gradient != "likelihood" or self.trigger == "drop"

    def begin(self, now: Moment, kept: Kept) -> Kept:
        """Fill the memory and take the anchors of what is newly protected; what is trained again is let go."""
        kept = _without_vectors(now, self.with_problems(now, kept))
        memory = {**kept.memory, "anchors": kept.memory.get("anchors", {})}
        for part in {"anchors", "right", "triggers"} & memory.keys():
            memory[part] = {skill: one for skill, one in memory[part].items() if skill not in now.stage.skills}
        kept = kept._replace(memory=memory)
        for skill in now.protected:
            if skill not in kept.memory["anchors"]:
                kept = self._anchored(now, kept, skill)
        return kept

    def observe(self, now: Moment, kept: Kept, rollouts: Sequence[Rollout]) -> Kept:
        """Right answers of the skill being trained are what it will be remembered by."""
        if self.gradient != "likelihood":
            return kept
        anchored = kept.memory.get("anchors", {})
        fresh = [rollout for rollout in rollouts if rollout.problem.skill not in anchored]
        return with_answers(self.with_problems(now, kept), fresh, KEPT_ANSWERS)

    def before_step(self, now: Moment, kept: Kept) -> tuple[Kept, dict[str, float]]:
        """Gradients of the skills to be protected now, at the parameters from which the optimiser steps."""
        kept, metrics = self._checked_triggers(now, self.with_problems(now, kept))
        on = {s: self.trigger == "always" or kept.memory["triggers"][s]["on"] for s in kept.memory.get("anchors", {})}
        wanted = [skill for skill in now.protected if on.get(skill)]
        held: dict[str, Held] = dict(kept.live.get("held", {}))
        for skill in [name for name in held if name not in wanted]:
            now.engine.release(held.pop(skill).vectors)
        for skill in wanted:
            if skill not in held or held[skill].age >= self.refresh:
                before = held.pop(skill, None)
                fresh, more = self._gradients(now, kept, skill, before)
                held |= {skill: fresh} if fresh else {}
                metrics |= more
                now.engine.release(before.vectors if before else [])
        metrics["guard/protected"] = float(len(held))
        return kept._replace(live={**kept.live, "held": held}), metrics

    def after_step(self, now: Moment, kept: Kept, applied: Vector) -> tuple[Kept, dict[str, float]]:
        """Project the step and shift the parameters by the difference."""
        held: dict[str, Held] = kept.live["held"]
        if not held:
            return kept, {}
        vectors = [vector for one in held.values() for vector in one.vectors]
        owner_A = [i for i, one in enumerate(held.values()) for _ in one.vectors]
        gathered = np.zeros((len(held) + 1, len(vectors) + 1))
        gathered[owner_A, np.arange(len(vectors))] = -1.0  # from gradients of losses to gradients of J
        gathered[-1, -1] = 1.0
        gramian = gathered @ now.engine.gramian([*vectors, applied])["global"] @ gathered.T
        if not np.isfinite(gramian).all():
            now.say("skill_safe: a protected gradient or the step is NaN or infinite; the step stays as it is")
            return _without_vectors(now, kept), {"guard/not_finite": 1.0}
        surplus_S = np.array([one.value - kept.memory["anchors"][skill] for skill, one in held.items()])
        projected, metrics = self._projected(gramian, surplus_S, list(held))
        if projected.active_S.any():
            now.engine.shift(vectors, [-float(projected.multiplier_S[i]) for i in owner_A])
        if projected.relaxed:
            now.say("skill_safe: the demanded gains contradict each other; they were cut to what can be met")
        moved = {
            skill: one._replace(value=one.value + float(change), age=one.age + 1)
            for (skill, one), change in zip(held.items(), projected.change_S, strict=True)
        }
        return kept._replace(live={**kept.live, "held": moved}), metrics

    def saved(self, kept: Kept) -> Kept:
        """Vectors are not in the checkpoint: a run that goes on and one that resumes must both compute them anew."""
        return kept._replace(live={**kept.live, "held": {}})

    def _projected(self, gramian: Floats, surplus_S: Floats, names: list[str]) -> tuple[Projected, dict[str, float]]:
        gramian_SS, along_S, norm = gramian[:-1, :-1], gramian[:-1, -1], float(np.sqrt(max(gramian[-1, -1], 0.0)))
        size_S = np.sqrt(np.diag(gramian_SS)) * norm
        epsilon_S = tolerances(self.tolerance, self.epsilon, size_S, surplus_S, repair=self.repair, cap=self.cap)
        projected = project(gramian_SS, along_S, epsilon_S, norm, self.solver)
        short_S = np.maximum(-projected.epsilon_S - projected.change_S, 0.0) / np.maximum(size_S, 1e-300)
        metrics = {
            "guard/violation": float(short_S.max()),
            "guard/correction": correction_norm(gramian_SS, projected.multiplier_S) / max(norm, 1e-300),
            "guard/relaxed": float(projected.relaxed),
            "guard/active": float(projected.active_S.sum()),
        }
        for i, skill in enumerate(names):
            metrics |= {
                f"guard/{skill}/change": float(projected.change_S[i]),
                f"guard/{skill}/epsilon": float(projected.epsilon_S[i]),
                f"guard/{skill}/surplus": float(surplus_S[i]),
                f"guard/{skill}/cosine": float(along_S[i] / max(size_S[i], 1e-300)),
            }
        return projected, metrics

    def _anchored(self, now: Moment, kept: Kept, skill: str) -> Kept:
        """`kept` with the skill's anchor: the value of J_s that it is held to from now on."""
        if self.gradient == "kl":
            kept = sampled(now, kept, skill)
        elif self.gradient == "likelihood":
            kept, asked = refilled(now, kept, skill)
            if asked:
                now.say(f"skill_safe: {asked} answers were drawn to fill the memory of skill {skill!r}")
        batch = answers_batch(kept, skill)
        if self.gradient == "policy":
            value = _mean_reward(self._fresh(now, kept, skill)) if remembered(kept, skill) else None
        elif batch is None:
            value = None
        else:
            vector, loss, _ = now.engine.gradient(batch, Sft())  # every trainer can do this; not all give log-probs
            now.engine.release([vector])
            value = -loss
        if value is None:
            room = remembered(kept, skill)
            why = "its memory holds no verified answer" if room else "there is no room for it in the memory"
            now.say(f"skill_safe: skill {skill!r} is not protected: {why}; raise memory_total or train it longer")
            return kept
        memory = {**kept.memory, "anchors": {**kept.memory["anchors"], skill: value}}
        if self.trigger == "drop":
            memory["right"] = {**memory.get("right", {}), skill: self._right(now, kept, skill)}
            memory["triggers"] = {**memory.get("triggers", {}), skill: Trigger().to_json()}
        return kept._replace(memory=memory)

    def _gradients(
        self, now: Moment, kept: Kept, skill: str, before: Held | None
    ) -> tuple[Held | None, dict[str, float]]:
        """New gradients of a skill, by halves of its memory, with their agreement and that with the old ones."""
        objective: Objective = Sft()
        batch, value = answers_batch(kept, skill), None
        if self.gradient == "policy":
            assert now.policy_loss is not None
            rollouts = self._fresh(now, kept, skill)
            value, live = _mean_reward(rollouts), sort_groups(rollouts).live
            batch, objective = now.policy_loss(live) if live else (None, objective)
        if batch is None:
            return None, {f"guard/{skill}/no_gradient": 1.0}
        parts = [now.engine.gradient(part, objective) for part in halves(batch)]
        value = -sum(part[1] for part in parts) if value is None else value
        vectors = [part[0] for part in parts]
        metrics = {f"guard/{skill}/memory": float(len(kept.memory.get("answers", {}).get(skill, {})))}
        old = before.vectors if before is not None and self.refresh > 1 else []
        gramian = now.engine.gramian([*vectors, *old])["global"]
        if len(vectors) == 2:
            metrics[f"guard/{skill}/self_cosine"] = float(cosines(gramian)[0, 1])
        if before is not None and old:
            sums = np.zeros((2, len(gramian)))
            sums[0, : len(vectors)], sums[1, len(vectors) :] = 1.0, 1.0
            metrics[f"guard/{skill}/stale_cosine"] = float(cosines(sums @ gramian @ sums.T)[0, 1])
            metrics[f"guard/{skill}/age"] = float(before.age)
        return Held(vectors, value, 0), metrics

    def _checked_triggers(self, now: Moment, kept: Kept) -> tuple[Kept, dict[str, float]]:
        """The same problems, answered greedily as at the anchor: once in a step, however many updates it has."""
        at = [now.phase, now.phase_step]
        if self.trigger != "drop" or now.phase_step % self.trigger_every or kept.memory.get("checked") == at:
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

    def _fresh(self, now: Moment, kept: Kept, skill: str) -> list[Rollout]:
        return now.asked(remembered(kept, skill), "policy", skill)

    def _right(self, now: Moment, kept: Kept, skill: str) -> list[str]:
        rollouts = now.asked(remembered(kept, skill), "check", skill, greedy=True)
        return [rollout.problem.id for rollout in rollouts if rollout.verdict.correct is True]


def _mean_reward(rollouts: Sequence[Rollout]) -> float:
    return float(np.mean([r.reward.value for r in rollouts if r.reward is not None] or [0.0]))


def _without_vectors(now: Moment, kept: Kept) -> Kept:
    for held in kept.live.get("held", {}).values():
        now.engine.release(held.vectors)
    return kept._replace(live={**kept.live, "held": {}})
