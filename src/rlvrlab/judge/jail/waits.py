"""How long the threads of a job were ready to run and had no processor, and how much of that is excused.

Whoever computes without a pause runs for a millisecond or longer once it has a processor. Whoever sleeps or waits for
others a thousand times a second runs for microseconds, and on a busy machine waits for a processor each time: such a
program would stop its clock for as long as it likes, for next to no CPU time. So its waits are excused up to a bound.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from rlvrlab.judge.jail.files import content

MOST_EXCUSED_THREADS = 4
"""Threads wait for each other too: with the waits of all of them a crowd could stop the clock for next to no CPU."""
LONG_RUN_NS = 700_000
"""Whoever runs as long as this on average, each time that it has a processor, would have gone on."""
EXCUSED_WALLS, EXCUSED_S, EXCUSED_PER_CPU = 3, 10.0, 20
"""Waits between shorter runs are excused for so many wall limits, seconds and times the CPU time together."""

Times = tuple[int, int, int]
"""Nanoseconds on a processor, those spent waiting for one, and how often it got one."""
ThreadTimes = tuple[int, Times]
Ready = Callable[[int], bool]
"""Does a thread run, or wait for a processor?"""


class Step(NamedTuple):
    """How far a thread has come since the last look, in nanoseconds."""

    ran: int
    waited: int
    short: bool
    """Does it run for a short time only whenever it has a processor?"""


class Waits:
    """The waits of all threads of a job since it began."""

    __slots__ = ("_between_short_runs", "_seen", "_share", "_short", "_under_way")

    def __init__(self) -> None:
        self._seen: dict[int, Times] = {}
        self._under_way: dict[int, int] = {}
        """By thread: what has been counted of a wait that the kernel will tell of when it is over."""
        self._short: dict[int, bool] = {}
        """By thread: did it run for a short time only when it last had a processor?"""
        self._share = (0.0, 0.0)
        """Seconds that threads ran, and waited, while they were seen."""
        self._between_short_runs = 0.0

    def since_the_last_look(self, steps: list[Step], used: float, cpu: float, wall_limit: float) -> float:
        """Seconds to be excused, of a job that used so much CPU time since the last look, and so much in all.

        The waits of threads that have ended since are not known. They are taken to have waited for their CPU time as
        long as those that were seen did for theirs.
        """
        longest = sorted(steps, key=lambda step: step.waited)[-MOST_EXCUSED_THREADS:]
        waited = sum(step.waited for step in longest) / 1e9
        ran = sum(step.ran for step in steps) / 1e9
        all_ran, all_waited = self._share
        self._share = all_ran + ran, all_waited + waited
        lost = max(0.0, used - ran)
        short = sum(step.waited for step in longest if step.short) / 1e9
        self._between_short_runs += short
        most = EXCUSED_WALLS * wall_limit + EXCUSED_S + EXCUSED_PER_CPU * cpu
        excess = min(short, max(0.0, self._between_short_runs - most))  # of the waits between short runs
        return waited - excess + (lost * self._share[1] / self._share[0] if self._share[0] else 0.0)

    def steps(self, seen: Sequence[ThreadTimes], passed: float, ready: Ready) -> list[Step]:
        """How far each thread has come since the last look, so many seconds ago.

        The kernel tells of a wait when it is over. Without what is still under way a job could be out of time in the
        middle of a long wait, as it has them behind others on a busy machine. A thread that was not there at the last
        look is excused nothing yet. One that has never run counts among those that run for a short time only, whose
        waits have a bound: otherwise a program could stop its clock by starting a thread now and then.
        """
        steps, under_way, short = [], {}, {}
        for thread, (run, waited, times) in seen:
            run_before, waited_before, times_before = self._seen.get(thread, (0, 0, 0))
            counted, wait = self._under_way.get(thread, 0), waited - waited_before
            counted, wait = max(0, counted - wait), max(0, wait - counted)
            short[thread] = self._short.get(thread, True)
            if times > times_before:
                short[thread] = run - run_before < (times - times_before) * LONG_RUN_NS
            elif self._seen.get(thread) == (run, waited, times) and ready(thread):
                wait = int(passed * 1e9)
                counted += wait
            under_way[thread] = counted
            steps.append(Step(run - run_before, wait, short[thread]))
        self._seen, self._under_way, self._short = dict(seen), under_way, short
        return steps


def thread_times(proc: int, pid: int) -> list[ThreadTimes]:
    """Each living thread with its times."""
    found = []
    with suppress(OSError):
        threads = os.open(f"{pid}/task", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=proc)
        try:
            for name in os.listdir(threads):  # noqa: PTH208 - of a descriptor
                with suppress(OSError, ValueError):  # it has ended, or the kernel does not tell
                    run, waited, times = content(f"{name}/schedstat", threads).split()
                    found.append((int(name), (int(run), int(waited), int(times))))
        finally:
            os.close(threads)
    return found
