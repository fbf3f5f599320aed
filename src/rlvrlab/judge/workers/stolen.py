"""Processor time that a hypervisor gave to other machines.

Nothing inside a machine can tell when its processors stand still: a program seems to run, its wall clock goes on, and
part of what was taken away is even counted as its CPU time. The kernel tells only how much was taken from all.
"""

from __future__ import annotations

import os
from time import monotonic

from rlvrlab.judge.jail.files import content

READ_EVERY_S = 0.05
"""On a machine with many processors reading takes as long as a short job."""
COLUMN = 8
"""Of the first line of /proc/stat, behind its name: user, nice, system, idle, iowait, irq, softirq, steal."""
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
CORES = os.cpu_count() or 1


class Stretch:
    """A stretch of time that begins now."""

    __slots__ = ("_began", "_stolen")
    _read_at, _read = 0.0, 0.0

    def __init__(self) -> None:
        self._began, self._stolen = monotonic(), self._so_far()

    def stolen(self) -> float:
        """Which share of the processors' time was taken away since it began."""
        passed = (monotonic() - self._began) * CORES
        return max(0.0, (self._so_far() - self._stolen) / passed) if passed else 0.0

    @classmethod
    def _so_far(cls) -> float:
        """Seconds since the machine was started; none where the kernel does not tell."""
        now = monotonic()
        if now - cls._read_at > READ_EVERY_S:
            cls._read_at, cls._read = now, stolen_s()
        return cls._read


def stolen_s() -> float:
    """Seconds of all processors that a hypervisor has taken since the machine was started, as far as is known."""
    try:
        return int(content("/proc/stat").split(None, COLUMN + 1)[COLUMN]) / TICKS_PER_S
    except (OSError, ValueError, IndexError):
        return 0.0
