"""Surgery on one update: which answers form a group, how the groups' gradients are weighed, how much they disagree.

Suffixes: S groups, A vectors (a group may be given as two halves that add up to it), B rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from rlvrlab.batch import Floats, TokenBatch
from rlvrlab.engines.base import Trainable
from rlvrlab.skills import groups as strategies
from rlvrlab.surgery.base import Memory, Scene, Surgery
from rlvrlab.surgery.conflict import conflict, noise, pair_metrics
from rlvrlab.train.state import Difficulty
from rlvrlab.train.update import Gradients
from rlvrlab.types import Problem, Rollout


class Asked(NamedTuple):
    """A problem of a collection and how many of its judged answers were right."""

    problem: Problem
    pass_rate: float


@dataclass(frozen=True)
class Grouping:
    """How problems are grouped; without surgery all of them are one group."""

    surgery: Surgery | None
    train: Sequence[Problem]
    seed: int

    def names(self, problems: Sequence[Problem], difficulty: Difficulty) -> list[str]:
        """The group of each problem."""
        if self.surgery is None:
            return ["all"] * len(problems)
        known = self._fixed
        if self.surgery.needs_pass_rates:
            known = strategies.by_difficulty(difficulty.rates, difficulty.edges)
        return strategies.labels(self.surgery.group_strategy, problems, known)

    def observed(self, difficulty: Difficulty, rollouts: Sequence[Rollout]) -> Difficulty:
        """The pass rates after one more collection; the borders move every few collections."""
        if self.surgery is None or not self.surgery.needs_pass_rates:
            return difficulty
        judged_firsts = [r for r in rollouts if r.turn == 0 and r.verdict.correct is not None]
        fresh = {asked.problem.id: asked.pass_rate for asked in asked_in(judged_firsts)}
        rates, edges = strategies.running_rates(difficulty.rates, fresh), difficulty.edges
        if difficulty.observed % strategies.EDGES_EVERY == 0:
            edges = strategies.difficulty_edges(list(rates.values()), self.surgery.num_groups)
        return Difficulty(rates, edges, difficulty.observed + 1)

    def parts(
        self, batch: TokenBatch, used: Sequence[Rollout], difficulty: Difficulty
    ) -> tuple[dict[str, TokenBatch], dict[str, list[float]]]:
        """The batch by group, in alphabetical order, and the pass rates of each group's problems.

        `used` are the rollouts of the whole collection.
        """
        assert batch.group_B is not None
        asked, present = asked_in(used), np.unique(batch.group_B)
        names = self.names([asked[i].problem for i in present], difficulty)
        members = {n: [i for i, name in zip(present, names, strict=True) if name == n] for n in sorted(set(names))}
        parts = {n: batch.rows(np.flatnonzero(np.isin(batch.group_B, ids))).rescaled() for n, ids in members.items()}
        return parts, {n: [asked[i].pass_rate for i in ids] for n, ids in members.items()}

    @cached_property
    def _fixed(self) -> dict[str, str]:
        """Groups that never change; they are worked out once, from all training problems."""
        assert self.surgery is not None
        return strategies.divided(self.surgery.group_strategy, self.train, self.surgery.num_groups, self.seed)


def asked_in(rollouts: Sequence[Rollout]) -> list[Asked]:
    """The problems of a collection, numbered as in train/batches.py: by first appearance of their group."""
    rights: dict[str, list[bool]] = {}
    problems: dict[str, Problem] = {}
    for rollout in rollouts:
        problems.setdefault(rollout.group_id, rollout.problem)
        rights.setdefault(rollout.group_id, [])
        if rollout.verdict.correct is not None:
            rights[rollout.group_id].append(rollout.verdict.correct)
    return [Asked(problem, float(np.mean(rights[g])) if rights[g] else 0.0) for g, problem in problems.items()]


class Operated(NamedTuple):
    """The groups' gradients after surgery."""

    found: Gradients
    """As they were; or, where every module has weights of its own, the one vector these make of them."""
    weight_S: Floats
    """Weight of each group's vectors in the update."""
    memory: Memory
    metrics: dict[str, float]


def operate(engine: Trainable, surgery: Surgery, found: Gradients, scene: Scene, memory: Memory) -> Operated:
    """Weigh the groups, as a whole or module by module, and see how much they disagree."""
    gather_SA = found.gather_SA
    halves_AA = engine.gramian(found.vectors)["global"]
    scene = scene._replace(gramian_SS=gather_SA @ halves_AA @ gather_SA.T)
    told: dict[str, float] = {}
    if surgery.scope == "module":
        weights, memory, told = _weighed_by_module(engine, surgery, found, scene, memory)
        weight_S: Floats = np.mean(list(weights.values()), axis=0)
    else:
        weight_S, memory = surgery(scene, memory)
    metrics = _disagreement(surgery, found, scene, halves_AA) | told
    for i, name in enumerate(scene.names):
        metrics[f"surgery/weight/{name}"] = float(weight_S[i])
        metrics[f"surgery/success/{name}"] = float(scene.success_S[i])
        metrics[f"surgery/entropy/{name}"] = float(found.entropy_S[i])
    if surgery.scope == "module":
        combined = engine.combine(found.vectors, {name: list(one[found.owner_A]) for name, one in weights.items()})
        engine.release(found.vectors)
        found, weight_S = found._replace(vectors=[combined], owner_A=[0]), np.ones(len(scene.names))
    return Operated(found, weight_S, memory, metrics)


def _weighed_by_module(
    engine: Trainable, surgery: Surgery, found: Gradients, scene: Scene, memory: Memory
) -> tuple[dict[str, Floats], Memory, dict[str, float]]:
    """Each module as if it were the whole policy: its own conflicts, weights and memory (arXiv 2602.02301)."""
    weights: dict[str, Floats] = {}
    memories: Memory = {}
    metrics: dict[str, float] = {}
    for name, gramian in engine.gramian(found.vectors, "module").items():
        own = scene._replace(gramian_SS=found.gather_SA @ gramian @ found.gather_SA.T, key=(*scene.key, name))
        weights[name], memories[name] = surgery(own, memory.get(name, {}))
        if (pairs := conflict(own.gramian_SS, surgery.conflict_threshold)) is not None:
            metrics[f"surgery/conflict_rate/{name}"] = pairs.rate
    return weights, memories, metrics


def _disagreement(surgery: Surgery, found: Gradients, scene: Scene, halves_AA: Floats) -> dict[str, float]:
    """Conflicts of the groups, and where each is given as two halves, what they are worth; a step without a pair of
    groups says nothing of pairs."""
    pairs = conflict(scene.gramian_SS, surgery.conflict_threshold)
    metrics = {} if pairs is None else pairs.metrics()
    metrics |= pair_metrics(scene.gramian_SS, scene.names)
    twice = [i for i in range(len(scene.names)) if found.owner_A.count(i) == 2]
    if len(twice) > 1:
        both = np.flatnonzero(np.isin(found.owner_A, twice))
        control = noise(halves_AA[np.ix_(both, both)], *scene.key)
        metrics |= {"surgery/permutation_z": control.z, "surgery/permutation_p": control.p_lower}
        metrics["surgery/noise_floor"] = control.floor
        for i, one in zip(twice, control.self_cosine_S, strict=True):
            metrics[f"surgery/self_cosine/{scene.names[i]}"] = float(one)
    return metrics
