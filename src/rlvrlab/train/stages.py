"""Where a step stands: which stage of the phase, what is protected in it, and what begins with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rlvrlab.batch import TokenBatch
from rlvrlab.errors import UserError
from rlvrlab.train.batches import assemble, score, with_advantages
from rlvrlab.train.guards.base import Moment, protected_in
from rlvrlab.train.lab import Lab
from rlvrlab.train.phases.base import Estimators, OnlinePhase, Phase
from rlvrlab.train.protocols.base import check_skills, stage_at, stages_of
from rlvrlab.train.state import Memory, State
from rlvrlab.types import Objective, Problem, Rollout


def check_phases(lab: Lab) -> None:
    """Whatever cannot work in an on-line phase is said before anything is trained.

    Stages must fit the phase and the data, and a guard must have something to protect.
    """
    for phase in (lab.resolved.phase(name) for name in lab.recipe.phases):
        if not phase.online or not lab.remembers:
            continue
        stages = stages_of(lab.protocol, lab.train, phase.steps)
        if lab.guard is None:
            continue
        check_skills("guard.protected", lab.guard.protected, lab.train)
        if not any(protected_in(stage, stages, lab.guard.protected) for stage in stages):
            raise UserError(
                f"guard: nothing to protect: {phase.name} trains {', '.join(stages[-1].skills)} in one stage; "
                'list other skills in guard.protected, or set protocol.type = "sequential"'
            )


def enter(lab: Lab, phase: OnlinePhase, estimators: Estimators, state: State, memory: Memory) -> tuple[Moment, Memory]:
    """Where this step stands; begins a stage where one is due."""
    stages = stages_of(lab.protocol, lab.train, phase.steps)
    stage = stage_at(stages, state.phase_step)

    def ask(problems: Sequence[Problem], key: tuple[object, ...], greedy: bool) -> list[Rollout]:
        if greedy:
            return lab.ask(problems, key, replace(lab.sampling, temperature=0.0), n=1)
        return lab.ask(problems, key)

    def policy_loss(rollouts: list[Rollout]) -> tuple[TokenBatch, Objective]:
        batch = score(assemble(rollouts, lab.recipe.rollout.max_tokens), lab.engine, lab.recipe,
                      reused=False, critic=phase.critic is not None)  # fmt: skip
        batch, _ = with_advantages(batch, rollouts, estimators.advantage, lab.recipe)
        return batch, estimators.objective

    now = Moment(
        stage,
        protected_in(stage, stages, lab.guard.protected) if lab.guard else (),
        phase.name,
        state.phase_step,
        state.step,
        lab.recipe.seed,
        lab.train,
        engine=lab.engine,
        answers=lab.recipe.rollout.n,
        ask=ask,
        policy_loss=policy_loss,
    )
    if memory.stage == (phase.name, stage.index):
        return now, memory
    if stage.index > 0 and not stage.carry:
        lab.engine.fresh_optimizer()
        lab.engine.freeze_reference()
    kept = lab.guard.begin(now, memory.guard) if lab.guard else memory.guard
    if len(stages) > 1:
        now.events.append(("stage", f"stage {stage.index + 1} of {len(stages)} begins: {stage.name}"))
    return now, replace(memory, stage=(phase.name, stage.index), guard=kept)


def stage_ended(lab: Lab, phase: Phase, phase_step: int) -> bool:
    """Is a stage over after so many steps?"""
    stages = stages_of(lab.protocol, lab.train, phase.steps) if phase.online else []
    return any(stage.last == phase_step for stage in stages)
