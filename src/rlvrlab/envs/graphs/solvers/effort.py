"""How long a solver may search for the proof of a graph that somebody else has made.

    with at_most(20_000_000):
        task.solve(instance)          GivenUp once its solvers have looked at so many nodes

Steps are counted, not seconds: the same rows are given up on every machine. Outside such a block nothing is counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_left: ContextVar[list[int] | None] = ContextVar("left", default=None)


class GivenUp(Exception):
    """The search has taken more steps than it was given."""


@contextmanager
def at_most(steps: int) -> Iterator[None]:
    """Within the block, solvers take this many steps together."""
    before = _left.set([steps])
    try:
        yield
    finally:
        _left.reset(before)


def spend(steps: int) -> None:
    """Count steps of a search, each about the look at one node."""
    left = _left.get()
    if left is not None:
        left[0] -= steps
        if left[0] < 0:
            raise GivenUp
