"""What was examined of a run: which evaluation stands for it, and how often somebody looked at test problems.

One of its final checkpoint stands for it, on the most of its own test problems. Whatever quotes a run by one number, or
compares it with another run, asks here. An evaluation of an earlier step, or of the policy before training, stands for
the run only where it is asked for by name (RUN@STEP).

A test score is worth less the more often somebody looked at it before deciding something, so the looks are counted: one
line of looks.jsonl per examination on test problems. An examination that is resumed, or a card that is made again after
a kill, is the same look.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rlvrlab.errors import UserError
from rlvrlab.record.files import Lines, read_facts, utc_now
from rlvrlab.record.run import read_metrics
from rlvrlab.record.shapes import Record, read_records
from rlvrlab.record.summary import Summary
from rlvrlab.types import Problem

BASE, LAST, BEST = "base", "last", "best"
ALLOWED = "a step, best, last, base"
POLICY = "policy"
"""The fact of run_info.json by which a study says that it examines the best checkpoint of its runs, or the last."""
LOOKS = "looks.jsonl"


class Examined(NamedTuple):
    """A finished evaluation of a run."""

    folder: Path
    numbers: Path
    """The file with its metrics."""
    facts: dict[str, Any]
    """What decides its result: data, problems, protocol, scorer and who answered."""
    info: dict[str, Any]
    """All of run_info.json."""
    step: int | None
    """The checkpoint that answered, 0 before training; None where nobody wrote it down."""
    rank: tuple[bool, bool, int, bool, int]
    """Own data, test problems, how many, one greedy answer, how new: the highest stands for the run."""


def policy_step(step: int, phase_step: int, origin: int | None) -> int:
    """The step of the policy that a run has at a checkpoint: after a control arm, the one that the arm started from."""
    return origin if phase_step == 0 and origin is not None else step


def final_step(run: Path) -> int | None:
    """The step of `last`, the policy of the newest complete checkpoint; None where there is no checkpoint."""
    manifests = (run / "checkpoints").glob("global_step_*/manifest.json")
    numbered = {path.parent.name.removeprefix("global_step_"): path.parent for path in manifests}
    steps = [int(step) for step in numbered if step.isdigit()]
    if not steps:
        return None
    step = max(steps)
    state = read_facts(numbered[str(step)] / "trainer.json", "restore it") or {}
    return policy_step(step, state.get("phase_step", 1), state.get("origin"))


def best_step(run: Path) -> int | None:
    """The step of the best dev accuracy of the last phase, 0 before training; None before the first evaluation."""
    phases = list(Summary(read_metrics(run)).phases.values())
    return int(phases[-1]["best"]["step"]) if phases else None


def split_run(text: str) -> tuple[Path, str]:
    """`DIR@best` to the folder and which checkpoint; a folder may have an @ in its own name."""
    folder, at, which = text.rpartition("@")
    if not at or Path(text).is_dir():
        return Path(text), LAST
    return Path(folder), which


def checkpoint_words(step: object) -> str:
    """A checkpoint for people: `base`, `step 50`, or nothing where it is not known."""
    return "" if step is None else f"step {step}" if step else BASE


def own_environment(run: Path) -> str | None:
    """The environment that a run trained on; None where its record does not tell."""
    data = (read_facts(run / "run_info.json", "restore it") or {}).get("data") or {}
    name = data.get("environment")
    return None if name is None else str(name)


def examined_of(run: Path) -> list[Examined]:
    """Every finished evaluation of a run, oldest first."""
    if not (run / "evaluations").is_dir():
        return []
    from rlvrlab.record.evaluation import METRICS, evaluation_facts, evaluations_of

    own, found = own_environment(run), []
    for order, folder in enumerate(evaluations_of(run)):
        info = evaluation_facts(folder)
        facts = info["examined"]
        protocol = facts.get("protocol") or {}
        greedy = protocol.get("n", 1) == 1 and not protocol.get("budget")
        rank = (own in (None, facts["data"]), facts.get("roles") == ["test"], facts.get("problems") or 0, greedy, order)
        found.append(Examined(folder, folder / METRICS, facts, info, facts["who"].get("step"), rank))
    return found


def standing(run: Path, which: str = LAST) -> list[Examined]:
    """The evaluations that may stand for a run at a checkpoint, the best suited last; none where it was not examined.

    `last` also takes those of a study that examines the best checkpoint of its runs, where there is no other.
    """
    found = sorted(examined_of(run), key=lambda one: one.rank)
    if which != LAST:
        wanted = step_named(run, which)
        return [one for one in found if one.step == wanted]
    final = final_step(run)
    if final is None:
        final = max((one.step for one in found if one.step), default=None)
    at_end = [one for one in found if one.step is None or (one.step and one.step == final)]
    return at_end or [one for one in found if one.info.get(POLICY) == BEST]


def step_named(run: Path, which: str) -> int | None:
    """The step that `RUN@which` names: a number, best, last or base; None where the run has no such checkpoint."""
    if which == LAST:
        return final_step(run)
    if which == BASE:
        return 0
    if which == BEST:
        return best_step(run)
    if not which.isdigit():
        raise UserError(f"{run}@{which}: {which!r} is no checkpoint; allowed: {ALLOWED}")
    return int(which)


class Look(Record):
    """One line of looks.jsonl."""

    time: str
    data: str
    problems: int
    where: str


def note_look(run: Path, data: str, problems: Sequence[Problem], where: str) -> None:
    """Count an examination of a run's policy, if test problems are among those it is asked; `where` identifies it.

    A run in a folder that may only be read can be examined, too; then nothing is counted.
    """
    count = sum(problem.role == "test" for problem in problems)
    if count and os.access(run, os.W_OK) and all(row["where"] != where for row in read_looks(run)):
        with Lines(run / LOOKS) as lines:
            lines.append({"time": utc_now(), "data": data, "problems": count, "where": where})


def read_looks(run: Path) -> list[dict[str, Any]]:
    """Every look at test problems with a policy of this run, the oldest first."""
    return read_records(run / LOOKS, Look)
