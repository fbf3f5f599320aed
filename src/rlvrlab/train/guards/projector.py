"""The working part of skill_safe.py. Suffixes: S protected skills, A vectors (two halves per skill), then u."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rlvrlab.batch import Floats, TokenBatch
from rlvrlab.engines.base import Vector
from rlvrlab.objectives.sft import Sft
from rlvrlab.skills.trigger import Trigger
from rlvrlab.surgery.conflict import cosines
from rlvrlab.surgery.projection import Projected, correction_norm, project
from rlvrlab.surgery.tolerance import tolerances
from rlvrlab.train.batches import assemble, credit, score
from rlvrlab.train.groups import sort_groups
from rlvrlab.train.guards.bank import Bank, ask, halves
from rlvrlab.train.guards.base import Guard, Moment
from rlvrlab.types import Objective, Rollout

if TYPE_CHECKING:
    from rlvrlab.train.guards.skill_safe import SkillSafe


class Held(NamedTuple):
    """Gradients of one skill's loss, kept for some steps."""

    vectors: list[Vector]
    """Of the two halves of its memory; their sum is the gradient."""
    value: float
    """J_s when they were computed, moved on by the predicted changes since."""
    age: int
    """Steps since."""


class Projector(Guard):
    """Plain data in `memory`; vectors in `_held` only, computed anew after every checkpoint."""

    def __init__(self, table: SkillSafe) -> None:
        super().__init__()
        self.table = table
        self._bank = Bank(self.memory, table.memory_per_skill, table.memory_total)
        self._held: dict[str, Held] = {}

    def begin(self, now: Moment) -> None:
        """Fill the memory and take the anchors of what is newly protected; what is trained again is let go."""
        anchors: dict[str, float] = self.memory.setdefault("anchors", {})
        self._drop(now)
        for skill in [name for name in anchors if name in now.stage.skills]:
            for kept in ("anchors", "right", "triggers"):
                self.memory.get(kept, {}).pop(skill, None)
        for skill in now.protected:
            if skill not in anchors:
                self._anchor(now, skill)

    def observe(self, now: Moment, rollouts: Sequence[Rollout]) -> None:
        """Right answers of the skill being trained are what it will be remembered by."""
        if self.table.gradient == "likelihood":
            self._bank.keep(now.lab, [r for r in rollouts if r.problem.skill not in self.memory.get("anchors", {})])

    def before_step(self, now: Moment) -> dict[str, float]:
        """Gradients of the skills to be protected now, at the parameters from which the optimiser steps."""
        metrics = self._check_triggers(now)
        wanted = [skill for skill in now.protected if skill in self.memory.get("anchors", {}) and self._is_on(skill)]
        for skill in [name for name in self._held if name not in wanted]:
            now.lab.engine.release(self._held.pop(skill).vectors)
        for skill in wanted:
            if skill not in self._held or self._held[skill].age >= self.table.refresh:
                metrics |= self._refresh(now, skill)
        return metrics | {"guard/protected": float(len(self._held))}

    def after_step(self, now: Moment, applied: Vector) -> dict[str, float]:
        """Project the step and shift the parameters by the difference."""
        if not self._held:
            return {}
        vectors = [vector for held in self._held.values() for vector in held.vectors]
        owner_A = [i for i, held in enumerate(self._held.values()) for _ in held.vectors]
        gathered = np.zeros((len(self._held) + 1, len(vectors) + 1))
        gathered[owner_A, np.arange(len(vectors))] = -1.0  # from gradients of losses to gradients of J
        gathered[-1, -1] = 1.0
        gramian = gathered @ now.lab.engine.gramian([*vectors, applied])["global"] @ gathered.T
        if not np.isfinite(gramian).all():
            now.say("skill_safe: a protected gradient or the step is NaN or infinite; the step stays as it is")
            self._drop(now)
            return {"guard/not_finite": 1.0}
        found, metrics = self._project(gramian)
        if found.active_S.any():
            now.lab.engine.shift(vectors, [-float(found.multiplier_S[i]) for i in owner_A])
        if found.relaxed:
            now.say("skill_safe: the demanded gains contradict each other; they were cut to what can be met")
        for skill, change in zip(self._held, found.change_S, strict=True):
            held = self._held[skill]
            self._held[skill] = held._replace(value=held.value + float(change), age=held.age + 1)
        return metrics

    def saved(self) -> None:
        """Vectors are not in the checkpoint: a run that goes on and one that resumes must both compute them anew."""
        self._held = {}

    def _project(self, gramian: Floats) -> tuple[Projected, dict[str, float]]:
        gramian_SS, along_S, norm = gramian[:-1, :-1], gramian[:-1, -1], float(np.sqrt(max(gramian[-1, -1], 0.0)))
        size_S = np.sqrt(np.diag(gramian_SS)) * norm
        surplus_S = np.array([held.value - self.memory["anchors"][skill] for skill, held in self._held.items()])
        table = self.table
        epsilon_S = tolerances(table.tolerance, table.epsilon, size_S, surplus_S, repair=table.repair, cap=table.cap)
        found = project(gramian_SS, along_S, epsilon_S, norm, table.solver)
        short_S = np.maximum(-found.epsilon_S - found.change_S, 0.0) / np.maximum(size_S, 1e-300)
        metrics = {
            "guard/violation": float(short_S.max()),
            "guard/correction": correction_norm(gramian_SS, found.multiplier_S) / max(norm, 1e-300),
            "guard/relaxed": float(found.relaxed),
            "guard/active": float(found.active_S.sum()),
        }
        for i, skill in enumerate(self._held):
            metrics |= {
                f"guard/{skill}/change": float(found.change_S[i]),
                f"guard/{skill}/epsilon": float(found.epsilon_S[i]),
                f"guard/{skill}/surplus": float(surplus_S[i]),
                f"guard/{skill}/cosine": float(along_S[i] / max(size_S[i], 1e-300)),
            }
        return found, metrics

    def _anchor(self, now: Moment, skill: str) -> None:
        if self.table.gradient == "kl":
            self._bank.sample(now, skill)
        elif self.table.gradient == "likelihood":
            asked = self._bank.fill(now, skill)
            if asked:
                now.say(f"skill_safe: {asked} answers were drawn to fill the memory of skill {skill!r}")
        problems = self._bank.problems(now.lab, skill)
        batch = self._bank.batch(skill)
        if not problems or (batch is None and self.table.gradient != "policy"):
            why = "its memory holds no verified answer" if problems else "there is no room for it in the memory"
            now.say(f"skill_safe: skill {skill!r} is not protected: {why}; raise memory_total or train it longer")
            return
        self.memory["anchors"][skill] = self._value(now, skill, batch)
        if self.table.trigger == "drop":
            self.memory.setdefault("right", {})[skill] = self._right(now, skill)
            self.memory.setdefault("triggers", {})[skill] = Trigger().to_json()

    def _value(self, now: Moment, skill: str, batch: TokenBatch | None) -> float:
        if batch is None or self.table.gradient == "policy":
            judged = [r.reward.value for r in self._fresh(now, skill) if r.reward is not None]
            return float(np.mean(judged)) if judged else 0.0
        return -Sft()(*now.lab.engine.logprobs(batch), batch).value

    def _refresh(self, now: Moment, skill: str) -> dict[str, float]:
        """New gradients of a skill, by halves of its memory, with their agreement and that with the old ones."""
        before = self._held.pop(skill, None)
        old = before if self.table.refresh > 1 else None
        objective: Objective = Sft()
        batch, value = self._bank.batch(skill), None
        if self.table.gradient == "policy":
            rollouts = self._fresh(now, skill)
            value = float(np.mean([r.reward.value for r in rollouts if r.reward is not None] or [0.0]))
            live = sort_groups(rollouts).live
            batch = _policy_batch(now, live) if live else None
            objective = now.phase._objective(now.lab)
        if batch is None:
            return {f"guard/{skill}/no_gradient": 1.0}
        parts = [now.lab.engine.gradient(part, objective) for part in halves(batch)]
        value = -sum(part[1] for part in parts) if value is None else value
        held = Held([part[0] for part in parts], value, 0)
        self._held[skill] = held
        metrics = {f"guard/{skill}/memory": float(self._bank.covered(skill)), **self._agreement(now, skill, old)}
        if before is not None:
            now.lab.engine.release(before.vectors)
        return metrics

    def _agreement(self, now: Moment, skill: str, before: Held | None) -> dict[str, float]:
        vectors, old = self._held[skill].vectors, before.vectors if before else []
        gramian = now.lab.engine.gramian([*vectors, *old])["global"]
        found: dict[str, float] = {}
        if len(vectors) == 2:
            found[f"guard/{skill}/self_cosine"] = float(cosines(gramian)[0, 1])
        if before is not None:
            sums = np.zeros((2, len(gramian)))
            sums[0, : len(vectors)], sums[1, len(vectors) :] = 1.0, 1.0
            found[f"guard/{skill}/stale_cosine"] = float(cosines(sums @ gramian @ sums.T)[0, 1])
            found[f"guard/{skill}/age"] = float(before.age)
        return found

    def _fresh(self, now: Moment, skill: str) -> list[Rollout]:
        return ask(now, self._bank.problems(now.lab, skill), "policy", skill)

    def _check_triggers(self, now: Moment) -> dict[str, float]:
        """The same problems, answered greedily as at the anchor."""
        triggers: dict[str, Any] = self.memory.get("triggers", {})
        if self.table.trigger != "drop" or now.phase_step % self.table.trigger_every:
            return {}
        metrics: dict[str, float] = {}
        for skill in [name for name in now.protected if name in triggers]:
            before, right = set(self.memory["right"][skill]), set(self._right(now, skill))
            state = Trigger(**triggers[skill])
            after = state.checked(len(before - right), len(right - before))
            triggers[skill] = after.to_json()
            metrics[f"guard/{skill}/on"] = float(after.on)
            if after.on != state.on:
                words = "dropped significantly: protection on" if after.on else "has recovered: protection off"
                now.say(f"skill_safe: skill {skill!r} {words} ({len(before)} right at the anchor, {len(right)} now)")
        return metrics

    def _right(self, now: Moment, skill: str) -> list[str]:
        rollouts = ask(now, self._bank.problems(now.lab, skill), "check", skill, greedy=True)
        return [r.problem.id for r in rollouts if r.verdict.correct is True]

    def _is_on(self, skill: str) -> bool:
        return self.table.trigger == "always" or bool(self.memory["triggers"][skill]["on"])

    def _drop(self, now: Moment) -> None:
        for held in self._held.values():
            now.lab.engine.release(held.vectors)
        self._held = {}


def _policy_batch(now: Moment, rollouts: list[Rollout]) -> TokenBatch:
    """As the phase itself would make it."""
    recipe, engine = now.lab.recipe, now.lab.engine
    batch = assemble(rollouts, recipe.rollout.max_tokens)
    batch = score(batch, engine, recipe, reused=False, critic=now.phase.critic)
    return credit(batch, rollouts, now.phase._advantage(now.lab), recipe)[0]
