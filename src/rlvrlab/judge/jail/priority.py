"""A job that computes for long steps back: beside others its threads get a tenth of what theirs get.

Whoever hangs would otherwise take as much of the processors as programs that are done in milliseconds. The lower
priority belongs to the threads of the job and ends with them, for only root could raise it again: the worker and its
template keep theirs, and the next job begins like any other.

A job that sleeps most of the time keeps its priority: it is in nobody's way, and each time that it wants a processor
for some microseconds it would only wait for longer.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress

LONG_S = 0.3
"""A job that has computed for this time steps back. (One that has run for it lends its place: workers/pool.py.)"""
LEAST_SHARE = 0.5
"""Of its own clock's time, which it must have spent in computing."""
STEP = 10
"""By how much nicer it gets: where others weigh 1024 for the kernel, it weighs 110."""
SLOWER = 10
"""How much longer it may take beside others, and may wait for a processor, before either counts against it."""
OWN = os.getpriority(os.PRIO_PROCESS, 0)
"""Of the worker, which may have been started with a low one."""


def step_back(threads: Iterable[int]) -> None:
    """Lower the priority of these threads; those that they start have it too."""
    for thread in threads:
        with suppress(OSError):  # it has ended
            os.setpriority(os.PRIO_PROCESS, thread, OWN + STEP)
