"""Which group each answer belongs to, for surgery in the actor's update."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from rlvrlab.batch import Ints
from rlvrlab.scale.verl.collection import Collection
from rlvrlab.scale.verl.plan import Plan
from rlvrlab.skills import groups as grouping
from rlvrlab.train.rules import owners


class Labels:
    """Groups by the recipe's strategy; dealt into halves where the noise of gradients is asked for."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._surgery = plan.resolved.build("surgery")

    def of(self, found: Collection, step: int) -> tuple[Ints, dict[str, Any] | None]:
        """A label per rollout and what is known of the groups; None where nothing wants groups."""
        recipe = self._plan.resolved.recipe
        if self._surgery is None and recipe.guard is None:
            return np.zeros(len(found.rollouts), dtype=np.int64), None
        asked = owners(found.rollouts)
        groups = list(dict.fromkeys(rollout.group_id for rollout in found.rollouts))
        named = self._names([problem for problem, _ in asked])
        names = sorted(set(named))
        every = self._surgery.noise_every if self._surgery else 0
        halves = 2 if every and step % every == 0 else 1
        place: dict[str, int] = {}
        for s, name in enumerate(names):
            members = [group for group, own in zip(groups, named, strict=True) if own == name]
            place |= {group: s * halves + i % halves for i, group in enumerate(members)}
        rates: dict[str, list[float]] = {name: [] for name in names}
        for (_, rate), own in zip(asked, named, strict=True):
            rates[own].append(rate)
        facts = {
            "names": names,
            "owner": [s for s in range(len(names)) for _ in range(halves)],
            "success": [float(np.mean(rates[name])) for name in names],
            "step": step,
            "key": [recipe.seed, self._plan.phase.name, step],
        }
        return np.array([place[rollout.group_id] for rollout in found.rollouts], dtype=np.int64), facts

    def _names(self, problems: list[Any]) -> list[str]:
        if self._surgery is None:
            return ["all"] * len(problems)
        return grouping.labels(self._surgery.group_strategy, problems, self._known)

    @cached_property
    def _known(self) -> dict[str, str]:
        strategy = self._surgery.group_strategy
        if strategy not in ("embedding", "random"):
            return {}
        make = grouping.by_embedding if strategy == "embedding" else grouping.at_random
        trained = [problem for problem in self._plan.problems.values() if problem.role == "train"]
        return make(trained, self._surgery.num_groups, self._plan.resolved.recipe.seed)
