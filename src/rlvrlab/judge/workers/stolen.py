"""Processor time that a hypervisor gave to other machines.

Nothing inside a machine can tell when its processors stand still: a program seems to run, its wall clock goes on, and
part of what was taken away is even counted as its CPU time. The kernel tells only how much was taken from all.
"""

from __future__ import annotations

import os
from contextvars import ContextVar
from time import monotonic

from rlvrlab.judge.jail.files import content

READ_EVERY_S = 0.05
"""On a machine with many processors reading takes as long as a short job."""
WORKED, STOLEN = (1, 2, 3, 6, 7), 8
"""Columns of the first line of /proc/stat: its name, user, nice, system, idle, iowait, irq, softirq, steal."""
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
MOST_SLACK = 20.0
"""How much longer limits become at most."""

slack: ContextVar[float] = ContextVar("slack", default=1.0)
"""By how much the time limits of the jobs started here are longer."""

Times = tuple[float, float]
"""Seconds of all processors that were worked, and those that were wanted and taken away, since the machine started."""


def slack_for(share: float) -> float:
    """By how much limits must be longer for a job to get its time where this share of it is taken away."""
    return min(MOST_SLACK, 1 / (1 - share)) if share < 1 else MOST_SLACK


class Stretch:
    """A stretch of time that begins now."""

    __slots__ = ("_began",)
    _read_at, _read = 0.0, (0.0, 0.0)

    def __init__(self) -> None:
        self._began = self._so_far()

    def stolen(self, at_least_s: float = 0.0) -> float:
        """Which share of the processors' time that somebody wanted was taken away since it began.

        Whoever misses its time by the clock wanted all of that: where hardly anybody works, the little that is taken
        is a large share of it, and no reason why somebody slept.
        """
        worked, taken = (now - then for now, then in zip(self._so_far(), self._began, strict=True))
        wanted = max(worked + taken, at_least_s)
        return max(0.0, taken / wanted) if wanted > 0 else 0.0

    @classmethod
    def _so_far(cls) -> Times:
        now = monotonic()
        if now - cls._read_at > READ_EVERY_S:
            cls._read_at, cls._read = now, times()
        return cls._read


def times() -> Times:
    """What the kernel tells; nothing was stolen where it does not."""
    try:
        columns = content("/proc/stat").split(None, STOLEN + 1)
        return sum(int(columns[place]) for place in WORKED) / TICKS_PER_S, int(columns[STOLEN]) / TICKS_PER_S
    except (OSError, ValueError, IndexError):
        return 0.0, 0.0
