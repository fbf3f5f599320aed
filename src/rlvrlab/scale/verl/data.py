"""The problems as verl reads them. Without a protocol verl shuffles them itself; with one the file holds every step's
problems in their order, since the protocol alone decides them, and verl only reads on.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

from rlvrlab.data.files import parquet, write_bytes
from rlvrlab.data.rows import write_problems
from rlvrlab.errors import UserError
from rlvrlab.randomness import shuffled
from rlvrlab.scale.verl.plan import DEV, TRAIN
from rlvrlab.train.guards.bank import Bank
from rlvrlab.train.lab import Lab
from rlvrlab.train.phases.online import OnlinePhase
from rlvrlab.types import Problem


def write_data(lab: Lab, phase: OnlinePhase, folder: Path) -> None:
    """train.parquet and dev.parquet."""
    if len(lab.train) < phase.batch_size:
        raise UserError(f"data.train_size: {len(lab.train)} problems are less than one batch of {phase.batch_size}")
    write_problems(folder / DEV, lab.dev)
    write_problems(folder / TRAIN, lab.train)
    if lab.rules.protocol is not None:
        place = {problem.id: index for index, problem in enumerate(lab.train)}
        table = parquet().read_table(folder / TRAIN).take([place[p.id] for p in in_order(lab, phase)])
        buffer = io.BytesIO()
        parquet().write_table(table, buffer, compression="zstd")
        write_bytes(folder / TRAIN, buffer.getvalue())


def in_order(lab: Lab, phase: OnlinePhase) -> list[Problem]:
    """Every step's problems under the recipe's protocol, each step exactly one batch."""
    protocol = lab.rules.protocol
    assert protocol is not None
    found: list[Problem] = []
    for stage in lab.rules.stages(lab, phase):
        pool = [problem for problem in lab.train if problem.skill in stage.skills]
        for step in range(stage.last - stage.first):
            chosen = protocol.problems(lab, stage, phase.name, step, phase.batch_size)
            found += _filled(chosen, pool, phase.batch_size, (lab.recipe.seed, stage.name, step))
    return found


def memory(lab: Lab) -> dict[str, list[tuple[str, str]]]:
    """Prompts and gold answers of the skills that the guard protects."""
    guard = lab.recipe.guard
    if guard is None:
        return {}
    bank = Bank({}, guard["memory_per_skill"], guard["memory_total"])
    found = {}
    for skill in guard["protected"]:
        pairs = [(problem.prompt, lab.env.gold(problem)) for problem in bank.problems(lab, skill)]
        known = [(prompt, gold) for prompt, gold in pairs if gold is not None]
        if not known:
            why = "its problems have no reference answer" if pairs else "no training problem has this skill"
            raise UserError(f"guard.protected: skill {skill!r} cannot be protected on verl: {why}")
        found[skill] = known
    return found


def _filled(chosen: Sequence[Problem], pool: Sequence[Problem], size: int, key: tuple[object, ...]) -> list[Problem]:
    """Over the edge of an epoch a draw may be short; verl wants full batches."""
    there = {problem.id for problem in chosen}
    more = [problem for problem in shuffled(pool, *key, "filled") if problem.id not in there]
    row = [*chosen, *more]
    while len(row) < size:
        row += row
    return row[:size]
