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
from dataclasses import dataclass, field
from pathlib import Path

from rlvrlab.judge.jail.limits import Limits

REASONS = ("", "cpu", "wall", "starved", "cancelled")
ENDED = struct.Struct("=iiBddd")
SHORTEST_NAP_S = 0.005
PATIENCE = 4
"""A child that got too little processor for this many wall limits is given up as starved, not timed out."""


@dataclass(slots=True)
class Watch:
    """One running child and its budgets."""

    id: int
    pid: int
    limits: Limits
    report: int
    pidfd: int = -1
    killed: str = ""
    started: float = field(default_factory=time.monotonic)
    seen: int = 0
    test_started: float = 0.0
    test_cpu: float = 0.0
    test_waited: float = 0.0
    next_look: float = 0.0

    def __post_init__(self) -> None:
        self.pidfd = os.pidfd_open(self.pid)
        self.test_started = self.started
        self.next_look = self.started + self._nap(self.limits.cpu_s, self.limits.wall_or_default_s)

    def look(self, now: float) -> None:
        """Kill the child if a budget is spent, otherwise decide when to look again."""
        cpu, waited = cpu_seconds(self.pid), waited_seconds(self.pid)
        self._notice_progress(now, cpu, waited)
        wall_left = self.limits.wall_or_default_s - (now - self.test_started - (waited - self.test_waited))
        job_wall_left = self.limits.job_wall_s - (now - self.started - waited)
        cpu_left = min(self.limits.cpu_s - (cpu - self.test_cpu), self.limits.job_cpu_s - cpu)
        if cpu_left <= 0:
            self.kill("cpu")
        elif min(wall_left, job_wall_left) <= 0:
            self.kill("wall")
        elif now - self.started > PATIENCE * self.limits.job_wall_s:
            self.kill("starved")
        self.next_look = now + self._nap(cpu_left, min(wall_left, job_wall_left))

    def _notice_progress(self, now: float, cpu: float, waited: float) -> None:
        fill = unread(self.report)
        if fill != self.seen:
            self.seen, self.test_started, self.test_cpu, self.test_waited = fill, now, cpu, waited

    def _nap(self, cpu_left: float, wall_left: float) -> float:
        # Threads outside the interpreter lock spend CPU time faster than the clock runs.
        return max(SHORTEST_NAP_S, min(cpu_left / (os.cpu_count() or 1), wall_left))

    def kill(self, reason: str) -> None:
        """End the child now; the first reason counts."""
        self.killed = self.killed or reason
        with suppress(OSError):
            signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)

    def reap(self) -> bytes:
        """Collect the ended child: its number, exit, who killed it, CPU and wall seconds, peak memory in MB."""
        _, status, usage = os.wait4(self.pid, 0)
        os.close(self.pidfd)
        os.close(self.report)
        code = os.waitstatus_to_exitcode(status)
        reason = REASONS.index(self.killed) if code == -signal.SIGKILL else 0
        cpu, wall = usage.ru_utime + usage.ru_stime, time.monotonic() - self.started
        return ENDED.pack(self.id, code, reason, cpu, wall, usage.ru_maxrss / 1024)


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
