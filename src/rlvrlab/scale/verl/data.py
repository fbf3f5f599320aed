"""The problems as verl reads them. Without a protocol verl shuffles them itself; with one the file holds every step's
problems in their order, since the protocol alone decides them, and verl only reads on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from rlvrlab.data.rows import write_problems, write_table
from rlvrlab.envs.data_files import parquet
from rlvrlab.errors import UserError
from rlvrlab.scale.verl.job import DEV, TRAIN
from rlvrlab.train.guards.memory import RemembersSkills
from rlvrlab.train.lab import Lab
from rlvrlab.train.phases.base import OnlinePhase
from rlvrlab.train.protocols.base import TrainingProtocol
from rlvrlab.train.state import Place
from rlvrlab.types import Problem


def write_data(lab: Lab, phase: OnlinePhase, folder: Path) -> None:
    """train.parquet and dev.parquet."""
    if len(lab.train) < phase.batch_size:
        raise UserError(f"data.train_size: {len(lab.train)} problems are less than one batch of {phase.batch_size}")
    write_problems(folder / DEV, lab.dev)
    write_problems(folder / TRAIN, lab.train)
    if lab.protocol is not None:
        place = {problem.id: index for index, problem in enumerate(lab.train)}
        table = parquet().read_table(folder / TRAIN).take([place[p.id] for p in in_order(lab, phase, lab.protocol)])
        write_table(folder / TRAIN, table)


def in_order(lab: Lab, phase: OnlinePhase, protocol: TrainingProtocol) -> list[Problem]:
    """Every step's problems under the recipe's protocol and guard, each step exactly one batch."""
    seed, stages, order = lab.recipe.seed, lab.stages(phase.steps), []
    for stage in stages:
        protected = lab.guard.protected_in(stage, stages) if lab.guard else ()
        for step in range(stage.last - stage.first):
            chosen = protocol.problems(lab.train, seed, stage, phase.name, step, phase.batch_size)
            quota = protocol.quota(stage, step, phase.batch_size)
            wanted: dict[tuple[str, ...], int] = {(skill,): size for skill, size in quota.items()}
            wanted = wanted or {stage.skills: phase.batch_size}
            more = protocol.problems(lab.train, seed, stage, f"{phase.name}/filled", step, phase.batch_size)
            chosen = _filled(chosen, more, wanted)
            at = stage.first + step
            place = Place(stage, protected, phase.name, at, at, seed, lab.train)
            order += lab.guard.mixed_in(place, chosen, phase.name) if lab.guard else chosen
    return order


def memory(lab: Lab, phase: OnlinePhase) -> dict[str, list[tuple[str, str]]]:
    """Prompts and reference answers of every skill that the guard will protect in some stage."""
    guard = lab.guard
    if not (isinstance(guard, RemembersSkills) and guard.needs_answers):
        return {}
    stages = lab.stages(phase.steps)
    skills = dict.fromkeys(skill for stage in stages for skill in guard.protected_in(stage, stages))
    problems, answers = guard.problems(lab.train, lab.recipe.seed), {}
    for skill in skills:
        pairs = [(problem.prompt, lab.env.gold(problem)) for problem in problems.get(skill, [])]
        known = [(prompt, gold) for prompt, gold in pairs if gold is not None]
        if not known:
            why = "its problems have no reference answer" if pairs else "no training problem has this skill"
            raise UserError(f"guard.protected: skill {skill!r} cannot be protected on verl: {why}")
        answers[skill] = known
    return answers


def _filled(chosen: Sequence[Problem], more: Sequence[Problem], wanted: Mapping[tuple[str, ...], int]) -> list[Problem]:
    """Over the edge of an epoch a draw may be short; verl wants full batches, and the skills their shares of them."""
    batch: list[Problem] = []
    for skills, size in wanted.items():
        row = [problem for problem in chosen if problem.skill in skills]
        there = {problem.id for problem in row}
        row += [problem for problem in more if problem.skill in skills and problem.id not in there]
        while len(row) < size:
            row += row
        batch += row[:size]
    return batch
