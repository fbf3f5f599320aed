"""Which answers form a group for surgery: the recipe's strategy, and the pass rates that difficulty needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from rlvrlab.skills import groups as strategies
from rlvrlab.surgery.base import Surgery
from rlvrlab.types import Problem, Rollout


class Asked(NamedTuple):
    """A problem of a collection and how many of its judged answers were right."""

    problem: Problem
    pass_rate: float


class Difficulty(NamedTuple):
    """Pass rates of the whole run and the borders between groups of equal difficulty."""

    rates: Mapping[str, float] = {}
    edges: Sequence[float] = ()
    observed: int = 0
    """Collections seen."""


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
