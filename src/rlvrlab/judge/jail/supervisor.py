"""Watching one child: CPU time first, wall time without the time it waited for a processor, then its end.

The report pipe tells progress: whenever its fill changed, one test is done and the next one's budget starts. A child
may lie about progress, which only moves it from the test's budget to the job's.
"""

from __future__ import annotations

import fcntl
import os
import signal
import struct
import termios
import time
from contextlib import suppress
from os import close, pidfd_open, wait4, waitstatus_to_exitcode
from pathlib import Path
from time import monotonic

from rlvrlab.judge.jail.limits import Limits

KILLED = -int(signal.SIGKILL)
REASONS = ("", "cpu", "wall", "starved", "cancelled")
ENDED = struct.Struct("=iiBddd")
INSIDE = b'["inside"]\n'
"""What a child writes into its report before anything foreign runs: a child without it never entered the jail."""
SHORTEST_NAP_S = 0.005
CORES = os.cpu_count() or 1
PATIENCE = 4
"""A child that got too little processor for this many wall limits is given up as starved, not timed out."""


class Watch:
    """One running child and its budgets; made before the child, as memory written after a fork is copied."""

    __slots__ = (
        "id", "killed", "limits", "next_look", "pid", "pidfd", "report", "seen", "started", "test_cpu", "test_started",
        "test_waited",
    )  # fmt: skip

    def __init__(self, number: int, limits: Limits, report: int, first_look_s: float) -> None:
        self.id, self.limits, self.report = number, limits, report
        self.pid = self.pidfd = -1
        self.killed = ""
        self.seen = len(INSIDE)
        self.test_cpu = self.test_waited = 0.0
        self.started = self.test_started = monotonic()
        self.next_look = self.started + first_look_s

    def follow(self, pid: int) -> int:
        """The child exists: a descriptor that becomes readable when it ends."""
        self.pid, self.pidfd = pid, pidfd_open(pid)
        return self.pidfd

    def look(self, now: float) -> None:
        """Kill the child if a budget is spent, otherwise decide when to look again."""
        cpu, waited = cpu_seconds(self.pid), waited_seconds(self.pid)
        fill = unread(self.report)
        if fill != self.seen:
            self.seen, self.test_started, self.test_cpu, self.test_waited = fill, now, cpu, waited
        wall_left = self.limits.wall_or_default_s - (now - self.test_started - (waited - self.test_waited))
        job_wall_left = self.limits.job_wall_s - (now - self.started - waited)
        cpu_left = min(self.limits.cpu_s - (cpu - self.test_cpu), self.limits.job_cpu_s - cpu)
        if cpu_left <= 0:
            self.kill("cpu")
        elif min(wall_left, job_wall_left) <= 0:
            self.kill("wall")
        elif now - self.started > PATIENCE * self.limits.job_wall_s:
            self.kill("starved")
        self.next_look = now + nap_s(cpu_left, min(wall_left, job_wall_left))

    def kill(self, reason: str) -> None:
        """End the child now; the first reason counts."""
        self.killed = self.killed or reason
        with suppress(OSError):
            signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)

    def reap(self) -> bytes:
        """Collect the ended child: its number, exit, who killed it, CPU and wall seconds, peak memory in MB."""
        _, status, usage = wait4(self.pid, 0)
        close(self.pidfd)
        close(self.report)
        code = waitstatus_to_exitcode(status)
        reason = REASONS.index(self.killed) if code == KILLED else 0
        cpu, wall = usage.ru_utime + usage.ru_stime, monotonic() - self.started
        return ENDED.pack(self.id, code, reason, cpu, wall, usage.ru_maxrss / 1024)


def nap_s(cpu_left: float, wall_left: float) -> float:
    """Longest sleep in which no budget can be overspent: several threads use CPU time faster than a clock runs."""
    return max(SHORTEST_NAP_S, min(cpu_left / CORES, wall_left))


def unread(pipe: int) -> int:
    """How many bytes wait in a pipe."""
    fill: int = struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, b"\0" * 4))[0]
    return fill


def cpu_seconds(pid: int) -> float:
    """CPU time of all threads of another process."""
    try:
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        return 0.0


def waited_seconds(pid: int) -> float:
    """How long its main thread was ready to run and had no processor; 0 where the kernel does not tell."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0
