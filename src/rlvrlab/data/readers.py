"""From a row of a published data set to problems, by the environment that judges them.

The environments know their rows; here they are only asked. `content` is what makes a row the same as another one:
equal content never stands in two roles, and decides which share of a training set is held out as dev.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import singledispatch
from pathlib import Path
from typing import Any

from rlvrlab.data.files import Row
from rlvrlab.envs import gsm8k
from rlvrlab.envs.answers import role_of, squeezed
from rlvrlab.envs.arithmetic import number
from rlvrlab.envs.arithmetic_solver import MAX_NUMBERS, solve
from rlvrlab.envs.clrs import Clrs
from rlvrlab.envs.clrs import environment as clrs
from rlvrlab.envs.code.from_file import FileEnvironment
from rlvrlab.envs.code.rows import BadColumn, CodeRow, Columns
from rlvrlab.envs.countdown import Countdown, Instance
from rlvrlab.envs.graphs import nlgraph
from rlvrlab.envs.graphs.nlgraph import NLGraph
from rlvrlab.envs.gsm8k import Gsm8k
from rlvrlab.envs.mathematics import Mathematics
from rlvrlab.envs.mathematics.shapes import item_of
from rlvrlab.envs.sql import Sql
from rlvrlab.envs.sql.spider import asked_by_role
from rlvrlab.envs.zebra import Zebra
from rlvrlab.envs.zebra import environment as zebra
from rlvrlab.errors import UserError
from rlvrlab.types import Problem, Role


@dataclass(frozen=True)
class Read:
    """A row that was understood."""

    content: str
    """Equal for rows that ask the same."""
    problems: Callable[[Role], list[Problem]]
    role: Role
    """Where the environment itself would put it, by content alone; used where a data set has no split for it."""


def read_row(env: Any, row: Row, where: str) -> Read | None:
    """What a row says; None when it cannot be judged and is left out. What cannot be read names its place."""
    try:
        return _read(env, row)
    except KeyError as error:
        raise UserError(f"{where}: column {error} is missing; there are: {', '.join(row)}") from None
    except (BadColumn, TypeError, ValueError, AttributeError, IndexError) as error:
        raise UserError(f"{where}: {error}") from None


def _by_text(text: str, problems: Callable[[Role], list[Problem]]) -> Read:
    content = squeezed(text)
    return Read(content, problems, role_of(content))


@singledispatch
def _read(env: Any, row: Row) -> Read | None:
    raise UserError(f"environment {env.name!r} makes its problems itself and reads no rows; try `rlvr data make`")


@_read.register
def _(env: Gsm8k, row: Row) -> Read:
    story = gsm8k._story(row)
    return _by_text(story.question, lambda role: [env._problem(story, role)])


@_read.register
def _(env: Mathematics, row: Row) -> Read | None:
    item = item_of(row)
    return item and _by_text(item.question, lambda role: [env._problem(item, role)])


@_read.register
def _(env: Clrs, row: Row) -> Read:
    run = clrs._read(row)
    # Sorting is asked under several names: the role belongs to the inputs.
    role = role_of(squeezed(run.question.split("\n")[1]))
    return Read(squeezed(run.question), lambda role: [env._problem(run, role)], role)


@_read.register
def _(env: Zebra, row: Row) -> Read:
    grid = zebra._row(row)
    return _by_text(grid[0], lambda role: [env._given(grid, role)])


@_read.register
def _(env: Countdown, row: Row) -> Read | None:
    """Rows of Countdown-Tasks: `nums` and `target`; what cannot be solved under the settings is left out."""
    instance = Instance(tuple(sorted(int(value) for value in row["nums"])), int(row["target"]))
    numbers, target = instance
    solvable = 2 <= len(numbers) <= MAX_NUMBERS and numbers[0] > 0
    solution = solve(numbers, target, env.operators, env.use_all) if solvable else None
    if solution is None:
        return None

    def problems(role: Role) -> list[Problem]:
        problem = env._problem(instance, number(target), role)
        return [replace(problem, meta={**problem.meta, "solution": solution})]

    return Read(str(instance), problems, instance.role)


@_read.register
def _(env: FileEnvironment, row: Row) -> Read | None:
    found = _code_row(env, Columns(row))
    if found.left_out or (found.inprocess and not env.inprocess):
        return None
    return _by_text(found.text + (found.buggy or ""), lambda role: env.problems_of(found, role))


def _code_row(env: FileEnvironment, columns: Columns) -> CodeRow:
    if env.shape != "auto":
        return env.shapes[env.shape](columns)
    reasons = []
    for name, shape in env.shapes.items():
        try:
            return shape(columns)
        except BadColumn as error:
            reasons.append(f"{name} ({error})")
    raise ValueError(f"none of the shapes {', '.join(reasons)}")


@singledispatch
def problems_in_folder(env: Any) -> dict[Role, list[Problem]]:
    """All problems of an environment whose data set is a folder of its own kind, by role."""
    raise UserError(f"environment {env.name!r} reads rows, not a folder")


@problems_in_folder.register
def _(env: Sql) -> dict[Role, list[Problem]]:
    sizes = {role: len(rows) for role, rows in asked_by_role(Path(env.path)).items()}
    return {role: env.problems(role, size, seed=0) for role, size in sizes.items() if size}


@problems_in_folder.register
def _(env: NLGraph) -> dict[Role, list[Problem]]:
    there = {role: _tasks_with(env, role) for role in nlgraph.FILES}
    found: dict[Role, list[Problem]] = {}
    for role, tasks in there.items():
        if tasks:
            size = sum(len(nlgraph._load(env.folder, task, role)) for task in tasks)
            found[role] = replace(env, tasks=tasks).problems(role, size, seed=0)
    if not found:
        raise UserError(f"{env.folder}: no task's {', '.join(nlgraph.FILES.values())} in it, e.g. cycle/test.json")
    return found


def _tasks_with(env: NLGraph, role: Role) -> tuple[str, ...]:
    return tuple(task for task in env.tasks if (Path(env.folder) / task / nlgraph.FILES[role]).is_file())
