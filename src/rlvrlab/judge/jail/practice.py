"""A rehearsal: the template goes through its children's way into the jail with system calls that do nothing.

A template must not enter the jail itself, or no child of it could. So during the rehearsal the system calls are
replaced by one that has no effect, and a child's exit is left out; all else is what a child does, with a job that asks
for nothing.
"""

from __future__ import annotations

import ctypes
import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager

from rlvrlab.judge.jail import child, walls
from rlvrlab.judge.jail.jobfile import Terms, head
from rlvrlab.judge.jail.limits import Limits

ROLE = "practice"
BEGINNING = head(Terms(Limits(), True, False), (0, 0))
"""Of the file of a job whose role this is."""
NO_EFFECT = ctypes.PyDLL(None).sched_yield
"""It looks at no argument and returns 0, as the calls that it stands for do where they work."""


@contextmanager
def harmless(real: walls.Walls) -> Iterator[dict[str, child.Role]]:
    """While this lasts nothing that a child does on its way has an effect; the roles that it then has."""
    limited, highest, leave = walls.setrlimit, walls.HIGHEST_OWN, child.leave
    keys: tuple[walls.Key, ...] = ((), True), ((), False)
    ways = {key: real.way(key) for key in keys}
    try:
        walls.setrlimit, walls.HIGHEST_OWN, child.leave = NO_EFFECT, child.DESCRIPTORS, abs  # type: ignore[assignment]
        real.replace({key: tuple((NO_EFFECT, arguments) for _, arguments in way) for key, way in ways.items()})
        yield {ROLE: _do_nothing}
    finally:
        walls.setrlimit, walls.HIGHEST_OWN, child.leave = limited, highest, leave
        real.replace(ways)


def put_back() -> None:
    """Undo what a child does to its own process on the way: it closes what it has read, and collects garbage."""
    gc.disable()
    for place in (child.REPORT, child.PEER, child.JOB):
        os.dup2(child.LOWEST_OWN - 1, place, inheritable=False)


def _do_nothing(_: child.Job, report: child.Report) -> None:
    """A role without a part."""
