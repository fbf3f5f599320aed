"""Packages that programs and tests may import beside the standard library, each set in workers of its own kind.

A task names what it needs (`packages`), and what its own trusted text imports is added: set-up, preamble, tests and
checker are the data set's. The candidate's program is never asked, so no answer can choose the worker it runs in.
The text is only searched for lines that import, not parsed: a line too many costs a worker that has more than it needs.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Iterable

from rlvrlab.errors import UserError, suggestion
from rlvrlab.judge.tasks import StdioTask, SyntaxTask, Task, TestsTask

KNOWN = ("numpy", "pandas", "scipy", "sympy")
"""What a task may ask for. `Judge(packages=…)` and `rlvr serve judge --packages` take any installed package."""
IMPORT = re.compile(r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import\b|import[ \t]+([\w.,\t ]+))", re.MULTILINE)


def imported_in(*texts: str) -> tuple[str, ...]:
    """Those of KNOWN that some line of these texts imports."""
    heads: set[str] = set()
    for text in texts:
        if any(name in text for name in KNOWN):
            for source, listed in IMPORT.findall(text):
                heads.update(part.split(" as ")[0].strip().partition(".")[0] for part in (source or listed).split(","))
    return tuple(name for name in KNOWN if name in heads)


def needed_by(task: Task) -> tuple[str, ...]:
    """What the task names and what its own text imports, sorted."""
    match task:
        case SyntaxTask():
            return ()
        case TestsTask():
            found = imported_in(task.setup, task.preamble, *task.tests)
        case StdioTask():
            found = imported_in(task.checker or "")
        case _:
            found = ()
    return tuple(sorted({*task.packages, *found}))


def check_known(names: Iterable[str], where: str) -> None:
    """UserError unless every one of these is among KNOWN and installed."""
    for name in names:
        if name not in KNOWN:
            raise UserError(f"{where}: package {name!r}: unknown{suggestion(name, list(KNOWN))}")
    check_installed(names, where)


def check_installed(names: Iterable[str], where: str) -> None:
    """UserError for the first that this interpreter cannot import; nothing is imported to find out."""
    for name in names:
        if not name.isidentifier() or importlib.util.find_spec(name) is None:
            remedy = f"`pip install {name}` there, or leave it out"
            raise UserError(f"{where}: package {name!r} is not installed for {sys.executable}; {remedy}")
