"""Which group each answer belongs to, for surgery in the actor's update: train/surgery.py, with verl's rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rlvrlab.batch import Ints
from rlvrlab.errors import InfrastructureError
from rlvrlab.record.files import write_json
from rlvrlab.scale.verl.collection import Collection
from rlvrlab.scale.verl.job import Job
from rlvrlab.surgery.base import Surgery
from rlvrlab.train.state import Difficulty
from rlvrlab.train.surgery import Grouping, asked_in


class Labels:
    """Groups by the recipe's strategy; dealt into halves where the noise of gradients is asked for.

    Pass rates of the whole run, which grouping by difficulty needs, are kept beside verl's checkpoints: one file for
    each step at which verl saves.
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        self._surgery: Surgery | None = job.resolved.build("surgery")
        self._grouping = Grouping(self._surgery, job.train, job.resolved.recipe.seed)
        self._difficulty: Difficulty | None = None

    def of(self, found: Collection, step: int, kept: Sequence[bool]) -> tuple[Ints, dict[str, Any] | None]:
        """A label per rollout and what is known of the groups; None where nothing wants groups.

        `kept` says which rollouts are trained on: a group's success is that of the problems it is updated with.
        """
        recipe = self._job.resolved.recipe
        if self._surgery is None and recipe.guard is None:
            return np.zeros(len(found.rollouts), dtype=np.int64), None
        difficulty = self._observed(found, step)
        asked = asked_in(found.rollouts)
        groups = list(dict.fromkeys(rollout.group_id for rollout in found.rollouts))
        named = self._grouping.names([one.problem for one in asked], difficulty)
        names = sorted(set(named))
        every = self._surgery.noise_every if self._surgery else 0
        halves = 2 if every and step % every == 0 else 1
        place: dict[str, int] = {}
        for s, name in enumerate(names):
            members = [group for group, own in zip(groups, named, strict=True) if own == name]
            place |= {group: s * halves + i % halves for i, group in enumerate(members)}
        rates: dict[str, list[float]] = {name: [] for name in names}
        trained = {r.group_id for r, keep in zip(found.rollouts, kept, strict=True) if keep}
        for group, one, own in zip(groups, asked, named, strict=True):
            if group in trained:
                rates[own].append(one.pass_rate)
        facts = {
            "names": names,
            "owner": [s for s in range(len(names)) for _ in range(halves)],
            "success": [float(np.mean(rates[name] or [0.0])) for name in names],
            "step": step,
            "key": [recipe.seed, self._job.phase.name, step],
        }
        return np.array([place[rollout.group_id] for rollout in found.rollouts], dtype=np.int64), facts

    def _observed(self, found: Collection, step: int) -> Difficulty:
        """The pass rates with this collection in them; after a resume, from the file of the step it goes on from."""
        if self._surgery is None or not self._surgery.needs_pass_rates:
            return Difficulty()
        if self._difficulty is None:
            if step and not self._file(step).is_file():
                why = "the pass rates that surgery groups by are missing; begin the run anew"
                raise InfrastructureError(f"{self._file(step)}: {why}")
            self._difficulty = Difficulty(**json.loads(self._file(step).read_text())) if step else Difficulty()
        self._difficulty = self._grouping.observed(self._difficulty, found.rollouts)
        if (step + 1) % self._job.resolved.recipe.checkpoint.every == 0 or step + 1 == self._job.phase.steps:
            write_json(self._file(step + 1), self._difficulty._asdict())
        return self._difficulty

    def _file(self, step: int) -> Path:
        folder = self._job.folder / "difficulty"
        folder.mkdir(exist_ok=True)
        return folder / f"step_{step}.json"
