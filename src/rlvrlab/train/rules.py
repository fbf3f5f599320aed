"""The rules of a run's updates: protocol, surgery and guard, with everything they remember from step to step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rlvrlab.batch import TokenBatch
from rlvrlab.errors import UserError
from rlvrlab.recipe import Resolved
from rlvrlab.skills import groups as grouping
from rlvrlab.surgery.base import Scene, Surgery
from rlvrlab.train.guards.base import Guard, Moment, protected_in
from rlvrlab.train.protocols.base import Stage, TrainingProtocol, check_skills, skills_of
from rlvrlab.train.update import Applied, careful_update, gradients, operate, shares, update
from rlvrlab.types import Objective, Problem, Rollout, Sampling

if TYPE_CHECKING:
    from rlvrlab.train.lab import Lab
    from rlvrlab.train.phases.online import OnlinePhase

Owners = list[tuple[Problem, float]]
"""Problem and pass rate of each group of answers, by its number in the batch."""


class Rules:
    """Built once per run; without the three tables it changes nothing."""

    def __init__(self, resolved: Resolved) -> None:
        self.protocol: TrainingProtocol | None = resolved.build("protocol")
        self.surgery: Surgery | None = resolved.build("surgery")
        table = resolved.build("guard")
        self.listed: tuple[str, ...] = table.protected if table else ()
        self.guard: Guard | None = table.build() if table else None
        self.step = 0
        """Updates done in the whole run; the loop sets it."""
        self._memory: dict[str, Any] = {"stage": None, "surgery": {}, "rates": {}, "edges": [], "observed": 0}
        self._known: dict[str, str] | None = None
        self._now: Moment | None = None

    @property
    def active(self) -> bool:
        """Is there anything to remember?"""
        return not (self.protocol is None and self.surgery is None and self.guard is None)

    def check_phases(self, lab: Lab) -> None:
        """Whatever cannot work in an on-line phase is said before anything is trained."""
        phases = [lab.resolved.phase(name) for name in lab.recipe.phases] if self.active else []
        for phase in phases:
            if hasattr(phase, "default_objective"):  # the mark of on-line phases, which import this file
                self.check(lab, phase)

    def check(self, lab: Lab, phase: OnlinePhase) -> None:
        """Stages must fit the phase and the data, and a guard must have something to protect."""
        stages = self.stages(lab, phase)
        check_skills("guard.protected", self.listed, lab.train)
        if self.guard is not None and not any(self._protected(stages, stage) for stage in stages):
            raise UserError(
                f"guard: nothing to protect: {phase.name} trains {', '.join(stages[-1].skills)} in one stage; "
                'list other skills in guard.protected, or set protocol.type = "sequential"'
            )

    def stages(self, lab: Lab, phase: OnlinePhase) -> list[Stage]:
        """The stages of a phase; without a protocol, one with everything."""
        if self.protocol is None:
            return [Stage(0, "all", tuple(skills_of(lab.train)), 0, phase.steps)]
        return self.protocol.stages(lab.train, phase.steps)

    def enter(self, lab: Lab, phase: OnlinePhase, phase_step: int) -> Moment:
        """Where this step stands; begins a stage where one is due."""
        stages = self.stages(lab, phase)
        stage = next((s for s in stages if s.first <= phase_step < s.last), stages[-1])
        self._now = Moment(lab, phase, stage, phase_step, self.step, self._protected(stages, stage))
        begun = [phase.name, stage.index]
        if self._memory["stage"] != begun:
            if stage.index > 0 and not stage.carry:
                lab.engine.fresh_optimizer()
                lab.engine.freeze_reference()
            if self.guard:
                self.guard.begin(self._now)
            self._memory["stage"] = begun
            if len(stages) > 1:
                self._now.events.append(("stage", f"stage {stage.index + 1} of {len(stages)} begins: {stage.name}"))
        return self._now

    def stage_ended(self, lab: Lab, phase: OnlinePhase, phase_step: int) -> bool:
        """Is a stage over after so many steps?"""
        return any(stage.last == phase_step for stage in self.stages(lab, phase))

    def facts(self) -> dict[str, float]:
        """For the record of a step."""
        return {"stage/index": float(self._now.stage.index)} if self._now and self.protocol else {}

    def problems(self, lab: Lab, stream: str, phase_step: int, size: int) -> list[Problem]:
        """What is asked in this step."""
        now = self._now
        if now is None or not self.active:
            return lab.problems_at(stream, phase_step, size)
        if self.protocol is None:
            chosen = lab.problems_at(stream, phase_step, size)
        else:
            chosen = self.protocol.problems(lab, now.stage, stream, phase_step - now.stage.first, size)
        return self.guard.mixed_in(now, chosen, stream) if self.guard else chosen

    def sampling(self, lab: Lab) -> Sampling:
        """How answers are drawn in this stage."""
        length = self._now.stage.max_tokens if self._now else None
        return lab.sampling if length is None else replace(lab.sampling, max_tokens=length)

    def observe(self, rollouts: Sequence[Rollout]) -> None:
        """Judged answers, before they are trained on."""
        if self._now and self.guard:
            self.guard.observe(self._now, rollouts)
        if self.surgery is None or self.surgery.group_strategy != "difficulty":
            return
        memory = self._memory
        found = {problem.id: rate for problem, rate in owners(rollouts)}
        memory["rates"] = grouping.running_rates(memory["rates"], found)
        if memory["observed"] % grouping.EDGES_EVERY == 0:
            memory["edges"] = grouping.difficulty_edges(list(memory["rates"].values()), self.surgery.num_groups)
        memory["observed"] += 1

    def update(
        self, batch: TokenBatch, used: Sequence[Rollout], objective: Objective, rate: float, clip: float, part: int
    ) -> Applied:
        """One optimiser step on a part of the collection; `used` are the rollouts the whole collection is made of."""
        now = self._now
        if now is None or (self.surgery is None and self.guard is None):
            assert now is not None
            return update(now.lab.engine, batch, objective, rate, clip)
        groups, owned = self._groups(batch, owners(used))
        share_S = shares(batch, list(groups.values()), objective)
        every = self.surgery.noise_every if self.surgery else 0
        halved = bool(every) and now.phase_step % every == 0
        found = gradients(now.lab.engine, groups, objective, share_S, halved=halved)
        weight_S, metrics = share_S, {f"surgery/size/{n}": float(len(p)) for n, p in owned.items() if self.surgery}
        if self.surgery:
            success_S = np.array([np.mean([rate for _, rate in members]) for members in owned.values()])
            key = (now.lab.recipe.seed, now.phase.name, now.phase_step, part)
            scene = Scene(np.zeros((0, 0)), share_S, success_S, tuple(groups), key)
            try:
                weight_S, self._memory["surgery"], more = operate(
                    now.lab.engine, self.surgery, found, scene, self._memory["surgery"]
                )
            except ValueError as error:
                now.lab.engine.release(found.vectors)
                now.events.append(("surgery", str(error)))
                return Applied(metrics, skipped=True)
            metrics |= more
        applied = careful_update(now.lab.engine, found, weight_S, share_S, rate, clip, self.guard, now)
        return Applied(applied.metrics | metrics, applied.skipped)

    def state(self) -> dict[str, Any]:
        """Plain data for a checkpoint; what it does not hold is forgotten, so that a resumed run does as this one."""
        if self.guard:
            self.guard.saved()
        return {**self._memory, "guard": self.guard.memory if self.guard else {}}

    def anchors(self) -> set[int]:
        """Steps whose checkpoints are needed to resume."""
        return self.guard.anchors() if self.guard else set()

    def restore(self, lab: Lab, state: dict[str, Any], load: Callable[[int], None]) -> None:
        """Back from a checkpoint; `load` puts the parameters of an earlier step into the engine."""
        self._memory = {key: value for key, value in state.items() if key != "guard"}
        if self.guard:
            self.guard.memory.clear()
            self.guard.memory.update(state["guard"])
            for step in sorted(self.guard.anchors()):
                load(step)
                self.guard.rebuild(lab, step)

    def _protected(self, stages: Sequence[Stage], stage: Stage) -> tuple[str, ...]:
        return protected_in(stage, stages[: stage.index], self.listed)

    def _groups(self, batch: TokenBatch, owned: Owners) -> tuple[dict[str, TokenBatch], dict[str, Owners]]:
        """The batch by group, in the groups' alphabetical order; without surgery, one group."""
        assert batch.group_B is not None
        present = np.unique(batch.group_B)
        names = self._labels([owned[i][0] for i in present]) if self.surgery else ["all"] * len(present)
        members = {n: [i for i, name in zip(present, names, strict=True) if name == n] for n in sorted(set(names))}
        rows = {name: np.flatnonzero(np.isin(batch.group_B, ids)) for name, ids in members.items()}
        parts = {name: batch.rows(index).rescaled() for name, index in rows.items()}
        return parts, {name: [owned[i] for i in ids] for name, ids in members.items()}

    def _labels(self, problems: list[Problem]) -> list[str]:
        assert self.surgery is not None and self._now is not None
        strategy, count, lab = self.surgery.group_strategy, self.surgery.num_groups, self._now.lab
        if strategy == "difficulty":
            known = grouping.by_difficulty(self._memory["rates"], self._memory["edges"])
        else:
            if self._known is None and strategy in ("embedding", "random"):
                make = grouping.by_embedding if strategy == "embedding" else grouping.at_random
                self._known = make(lab.train, count, lab.recipe.seed)
            known = self._known or {}
        return grouping.labels(strategy, problems, known)


def owners(rollouts: Sequence[Rollout]) -> Owners:
    """Numbered as train/batches.py numbers them: by first appearance of the group."""
    rights: dict[str, list[bool]] = {}
    problems: dict[str, Problem] = {}
    for rollout in rollouts:
        problems.setdefault(rollout.group_id, rollout.problem)
        rights.setdefault(rollout.group_id, [])
        if rollout.verdict.correct is not None:
            rights[rollout.group_id].append(rollout.verdict.correct)
    return [(problems[g], float(np.mean(rights[g])) if rights[g] else 0.0) for g in problems]
