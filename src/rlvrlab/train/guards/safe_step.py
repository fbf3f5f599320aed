"""The safe step: correct the optimiser's actual step so that no protected skill loses more than ε (first order).

    u = step(…);   d₀ = (u − κ (θ − θ*)) / (1 + κ);   min ½ |d − d₀|²  with  ⟨∇J_s, d⟩ ≥ −ε_s;   θ += d − u

(surgery/projection.py). With κ = 0 d₀ is u; without constraints a step with κ is L2's spring to θ*, where the stage
began, outside the optimiser. The gradients of protected skills come from a small memory, at the parameters before the
step; J_s is minus a loss of losses.py, or
    policy       J_s = expected reward, by policy gradient on freshly sampled answers: vanishes once a skill is mastered
A skill may have several constraints, one for each cluster of its memory: one mean gradient leaves nearly every
direction of drift free.
Where several skills are trained at once the weighted sum of their objectives is what the optimiser steps along, and the
constraints hold for each of them: no skill pays for the others' progress. They are held to what they were when the
stage began.
Correcting the gradient instead of the step would not do: Adam's rescaling breaks the constraint in half of all steps.
Engines give gradients of losses, ℓ_s = −∇J_s: ⟨∇J_s, d⟩ = −⟨ℓ_s, d⟩, and the shift is −Σ λ_s ℓ_s.
Suffixes: S constraints, A vectors (two halves of a skill's memory, or one for a cluster), then u and θ − θ*.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from rlvrlab.batch import Floats, TokenBatch
from rlvrlab.engines.base import Vector
from rlvrlab.surgery.conflict import cosines
from rlvrlab.surgery.projection import Kind, Projected, Solver, correction_norm, project, tolerances
from rlvrlab.train.batches import sort_groups
from rlvrlab.train.guards.losses import FORWARD, MemoryLoss, recalled, slope, why_unprotected
from rlvrlab.train.guards.memory import (
    KEPT_ANSWERS,
    RemembersSkills,
    anchor,
    anchored,
    answers_batch,
    clusters,
    halves,
    remembered,
    with_answers,
    without_anchors,
)
from rlvrlab.train.state import Kept, Moment
from rlvrlab.types import Rollout

STAGE = "*"
"""Names the anchor of the stage among those of skills."""


class Held(NamedTuple):
    """Gradients of one constraint's loss, kept for some steps."""

    vectors: list[Vector]
    """Of the two halves of the memory, or of one cluster of it; their sum is the gradient."""
    value: float
    """J when they were computed, moved on by the predicted changes since."""
    age: int
    """Steps since."""


class SafeStep(RemembersSkills):
    """The nearest step that does no harm; what stands here is a key of the recipe where a guard has a field for it."""

    gradient: MemoryLoss | Literal["policy"] = "likelihood"
    tolerance: Kind = "budget"
    epsilon: float = 0.0
    solver: Solver = "exact"
    refresh: int = 1
    repair: float = 0.5
    cap: float = 0.5
    kappa: float = 0.0
    constraints: int = 1
    """Of each skill: clusters of its memory."""

    needs_answers: ClassVar[bool] = True
    protects_trained: ClassVar[bool] = True

    @property
    def needs_sampling(self) -> bool:
        """False for likelihood: stored answers suffice, and references can replace them."""
        return self.gradient != "likelihood"

    @property
    def needs_distributions(self) -> bool:
        """The exact KL compares them."""
        return self.gradient == "kl_full"

    @property
    def passes(self) -> float:
        """One at every refresh, and another forward pass for the anchor's distributions."""
        return (1.0 + (FORWARD if self.needs_distributions else 0.0)) / self.refresh

    def wanted(self, now: Moment, kept: Kept) -> tuple[Kept, list[str], dict[str, float]]:
        """The skills whose constraints hold in this step, of those that have an anchor."""
        known = {self.skill_of(row) for row in kept.memory.get("anchors", {})}
        return kept, [skill for skill in now.protected if skill in known], {}

    def skill_of(self, row: str) -> str:
        """Constraints are named after their skill, and numbered where it has several."""
        return row.rpartition("#")[0] if self.constraints > 1 else row

    def begin(self, now: Moment, kept: Kept) -> Kept:
        """Fill the memory and take the anchors of what is newly protected; what is trained again is let go."""
        kept = _without_vectors(now, self.with_problems(now, kept))
        before = kept.memory.get("anchors", {}).items()
        values = {row: value for row, value in before if self.skill_of(row) not in now.stage.skills}
        kept = kept._replace(memory={**kept.memory, "anchors": values}, live={**kept.live, "parts": {}})
        kept = without_anchors(kept, {*now.stage.skills, STAGE})
        if self.kappa and now.protected:
            kept = anchored(now, kept, STAGE)
        known = {self.skill_of(row) for row in values}
        for skill in (skill for skill in now.protected if skill not in known):
            kept = self.anchor_skill(now, kept, skill)
        return kept

    def observe(self, now: Moment, kept: Kept, rollouts: Sequence[Rollout]) -> Kept:
        """Right answers of the skill being trained are what it will be remembered by."""
        if self.gradient != "likelihood":
            return kept
        known = {self.skill_of(row) for row in kept.memory.get("anchors", {})}
        fresh = [rollout for rollout in rollouts if rollout.problem.skill not in known]
        return with_answers(self.with_problems(now, kept), fresh, KEPT_ANSWERS)

    def before_step(self, now: Moment, kept: Kept) -> tuple[Kept, dict[str, float]]:
        """Gradients of the skills to be protected now, at the parameters from which the optimiser steps."""
        kept, wanted, metrics = self.wanted(now, self.with_problems(now, kept))
        held: dict[str, Held] = dict(kept.live.get("held", {}))
        for row in [row for row in held if self.skill_of(row) not in wanted]:
            now.engine.release(held.pop(row).vectors)
        for skill in wanted:
            own = {row: one for row, one in held.items() if self.skill_of(row) == skill}
            if own and all(one.age < self.refresh for one in own.values()):
                continue
            kept = self._with_parts(now, kept, skill)
            held = {row: one for row, one in held.items() if row not in own}
            if self.gradient == "policy":
                fresh = self._policy_gradients(now, kept, skill)
            else:
                fresh = {row: self._pass(now, kept, row, parts) for row, parts in kept.live["parts"][skill].items()}
            held |= fresh
            metrics |= self._agreement(now, kept, skill, fresh, own)
            now.engine.release([vector for one in own.values() for vector in one.vectors])
        metrics["guard/protected"] = float(len({self.skill_of(row) for row in held}))
        return kept._replace(live={**kept.live, "held": held}), metrics

    def after_step(self, now: Moment, kept: Kept, applied: Vector) -> tuple[Kept, dict[str, float]]:
        """Project the step and shift the parameters by the difference."""
        held: dict[str, Held] = kept.live["held"]
        anchored_now = STAGE in kept.memory.get("steps", {})
        pulls, share = [now.engine.pull(anchor(kept, STAGE))] if anchored_now else [], self.kappa / (1 + self.kappa)
        vectors = [vector for one in held.values() for vector in one.vectors]
        owner_A = [i for i, one in enumerate(held.values()) for _ in one.vectors]
        gathered = np.zeros((len(held) + 1, len(vectors) + 1 + len(pulls)))
        gathered[owner_A, np.arange(len(vectors))] = -1.0  # from gradients of losses to gradients of J
        gathered[-1, len(vectors)], gathered[-1, len(vectors) + 1 :] = 1.0, -share
        every = now.engine.gramian([*vectors, applied, *pulls])["global"]
        gramian = gathered @ every @ gathered.T
        if not np.isfinite(gramian).all():
            now.say(f"{self.name}: a protected gradient or the step is NaN or infinite; the step stays as it is")
            now.engine.release(pulls)
            return _without_vectors(now, kept), {"guard/not_finite": 1.0}
        surplus_S = np.array([one.value - kept.memory["anchors"][row] for row, one in held.items()])
        projected, metrics = self._projected(gramian, surplus_S, list(held))
        moving = [*vectors, *pulls] if projected.active_S.any() else pulls
        weights = [-float(projected.multiplier_S[i]) for i in owner_A] if projected.active_S.any() else []
        if moving:
            now.engine.shift(moving, [*weights, *([-share] * len(pulls))])
        if projected.relaxed:
            now.say(f"{self.name}: the demanded gains contradict each other; they were cut to what can be met")
        metrics |= {"guard/distance": float(every[-1, -1]) ** 0.5} if pulls else {}
        now.engine.release(pulls)
        moved = {
            row: one._replace(value=one.value + float(change), age=one.age + 1)
            for (row, one), change in zip(held.items(), projected.change_S, strict=True)
        }
        return kept._replace(live={**kept.live, "held": moved}), metrics

    def saved(self, kept: Kept) -> Kept:
        """Vectors are not in the checkpoint: a run that goes on and one that resumes must both compute them anew."""
        return kept._replace(live={**kept.live, "held": {}})

    def anchor_skill(self, now: Moment, kept: Kept, skill: str) -> Kept:
        """`kept` with the skill's anchor: the values of J that it is held to from now on."""
        if self.gradient == "policy":
            asked = self._fresh(now, kept, skill)
            values = {skill: _mean_reward(asked)} if remembered(kept, skill) else {}
        else:
            kept = self._with_parts(now, recalled(now, kept, skill, self.gradient), skill)
            rows = kept.live["parts"][skill]
            found = {row: self._pass(now, kept, row, parts) for row, parts in rows.items()}
            now.engine.release([vector for one in found.values() for vector in one.vectors])
            values = {row: one.value for row, one in found.items()}
        if not values:
            now.say(f"{self.name}: {why_unprotected(kept, skill)}")
        return kept._replace(memory={**kept.memory, "anchors": {**kept.memory["anchors"], **values}})

    def _with_parts(self, now: Moment, kept: Kept, skill: str) -> Kept:
        """`kept` with the skill's memory cut into what its constraints are computed from; none where it is empty."""
        known: dict[str, dict[str, list[TokenBatch]]] = kept.live.get("parts", {})
        if skill in known:
            return kept
        batch, rows = answers_batch(kept, skill), {}
        if batch is not None and self.constraints > 1:
            rows = {f"{skill}#{k}": [part] for k, part in enumerate(clusters(batch, self.constraints, now.seed))}
        elif batch is not None:
            rows = {skill: halves(batch)}
        return kept._replace(live={**kept.live, "parts": {**known, skill: rows}})

    def _pass(self, now: Moment, kept: Kept, row: str, parts: Sequence[TokenBatch]) -> Held:
        assert self.gradient != "policy"
        found = [slope(now, kept, self.skill_of(row), part, self.gradient) for part in parts]
        return Held([one.vector for one in found], -sum(one.value for one in found), 0)

    def _policy_gradients(self, now: Moment, kept: Kept, skill: str) -> dict[str, Held]:
        """Of the expected reward; none where every group of answers earned the same."""
        assert now.policy_loss is not None
        rollouts = self._fresh(now, kept, skill)
        live = sort_groups(rollouts).live
        if not live:
            return {}
        batch, objective = now.policy_loss(live)
        vectors = [now.engine.gradient(part, objective)[0] for part in halves(batch)]
        return {skill: Held(vectors, _mean_reward(rollouts), 0)}

    def _agreement(
        self, now: Moment, kept: Kept, skill: str, fresh: dict[str, Held], before: dict[str, Held]
    ) -> dict[str, float]:
        """How well the halves of the memory agree, and the new gradient with the one used so far."""
        if not fresh:
            return {f"guard/{skill}/no_gradient": 1.0}
        metrics = {f"guard/{skill}/memory": float(len(kept.memory.get("answers", {}).get(skill, {})))}
        if skill not in fresh:
            return metrics | {f"guard/{skill}/constraints": float(len(fresh))}
        vectors = fresh[skill].vectors
        old = before[skill].vectors if skill in before and self.refresh > 1 else []
        gramian = now.engine.gramian([*vectors, *old])["global"]
        if len(vectors) == 2:
            metrics[f"guard/{skill}/self_cosine"] = float(cosines(gramian)[0, 1])
        if old:
            sums = np.zeros((2, len(gramian)))
            sums[0, : len(vectors)], sums[1, len(vectors) :] = 1.0, 1.0
            metrics[f"guard/{skill}/stale_cosine"] = float(cosines(sums @ gramian @ sums.T)[0, 1])
            metrics[f"guard/{skill}/age"] = float(before[skill].age)
        return metrics

    def _projected(self, gramian: Floats, surplus_S: Floats, rows: list[str]) -> tuple[Projected, dict[str, float]]:
        """The correction, from the Gramian of the constraints' gradients and the step, and what is recorded of it."""
        gramian_SS, along_S, norm = gramian[:-1, :-1], gramian[:-1, -1], float(np.sqrt(max(gramian[-1, -1], 0.0)))
        size_S = np.sqrt(np.diag(gramian_SS)) * norm
        epsilon_S = tolerances(self.tolerance, self.epsilon, size_S, surplus_S, repair=self.repair, cap=self.cap)
        projected = project(gramian_SS, along_S, epsilon_S, norm, self.solver)
        if not rows:
            return projected, {}
        short_S = np.maximum(-projected.epsilon_S - projected.change_S, 0.0) / np.maximum(size_S, 1e-300)
        metrics = {
            "guard/violation": float(short_S.max()),
            "guard/correction": correction_norm(gramian_SS, projected.multiplier_S) / max(norm, 1e-300),
            "guard/relaxed": float(projected.relaxed),
            "guard/active": float(projected.active_S.sum()),
        }
        told = {
            "change": projected.change_S,
            "epsilon": projected.epsilon_S,
            "surplus": surplus_S,
            "cosine": along_S / np.maximum(size_S, 1e-300),
        }
        for i, row in enumerate(rows):  # of several constraints of a skill the lowest number counts
            for name, value_S in told.items():
                key = f"guard/{self.skill_of(row)}/{name}"
                metrics[key] = min(metrics.get(key, np.inf), float(value_S[i]))
        return projected, metrics

    def _fresh(self, now: Moment, kept: Kept, skill: str) -> list[Rollout]:
        return now.asked(remembered(kept, skill), "policy", skill)


def _mean_reward(rollouts: Sequence[Rollout]) -> float:
    return float(np.mean([r.reward.value for r in rollouts if r.reward is not None] or [0.0]))


def _without_vectors(now: Moment, kept: Kept) -> Kept:
    for held in kept.live.get("held", {}).values():
        now.engine.release(held.vectors)
    return kept._replace(live={**kept.live, "held": {}})
