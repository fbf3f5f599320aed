"""Watching the children of one job: CPU time first, wall time without the time they waited for a processor.

All children of a worker belong to one job. While any of their threads is ready to run and has no processor, or the
judge has not yet taken what they reported, the job's clock stands still: neither is their doing, and a child may be
waiting for the other. The report pipes tell progress: whenever the fill of one changed, a test is done and the next
one's budget starts. A child may lie about progress, which only moves it from the test's budget to the job's.
"""

from __future__ import annotations

import fcntl
import os
import signal
import struct
import time
from contextlib import suppress
from os import P_PIDFD, WEXITED, WNOWAIT, close, wait4, waitid, waitstatus_to_exitcode
from time import monotonic

from rlvrlab.judge.jail.files import content
from rlvrlab.judge.jail.limits import Limits
from rlvrlab.judge.jail.waits import ThreadTimes, Waits, thread_times

KILLED = -int(signal.SIGKILL)
REASONS = ("", "cpu", "wall", "starved", "cancelled", "output")
ENDED = struct.Struct("=iiBddd")
SHORTEST_NAP_S, LONGEST_NAP_S = 0.005, 0.05
"""How often a job is looked at: a test's end is noticed with this precision, and no short job is looked at at all."""
SHARE_OF_LOOKING = 0.05
"""A look at thousands of threads takes long: looking takes at most this share of a worker's time."""
CORES = os.cpu_count() or 1
PATIENCE, LEAST_PATIENCE_S = 10, 60.0
"""A child that got too little processor for this many wall limits is given up as starved, not timed out."""
MOST_SWEEPS, SWEEP_EVERY_S = 2000, 0.001
PAGE = 4096
FIONREAD = 0x541B
"""Of termios, a library that nobody else needs."""


class Watch:
    """One running child and its budgets."""

    __slots__ = ("began", "cpu", "id", "killed", "limits", "pid", "pidfd", "report", "seen", "started", "test_cpu")

    def __init__(self, number: int, limits: Limits, pidfd: int, report: int, clock: float) -> None:
        self.id, self.limits, self.pidfd, self.report = number, limits, pidfd, report
        self.pid = 0
        """Its number, which nobody needs to know before the first look."""
        self.killed = ""
        self.seen = -1
        """Unlike any fill: what a child needs before its first test is not counted for that test."""
        self.cpu = self.test_cpu = 0.0
        self.began, self.started = monotonic(), clock

    def fileno(self) -> int:
        """A descriptor that becomes readable when the child ends."""
        return self.pidfd

    def look(self, now: float, clock: float, test_started: float) -> float:
        """Kill the child if a budget is spent; how long none of them can be overspent."""
        limits = self.limits
        wall_left = min(
            limits.wall_or_default_s - (clock - max(test_started, self.started)),
            limits.job_wall_s - (clock - self.started),
        )
        cpu_left = min(limits.cpu_s - (self.cpu - self.test_cpu), limits.job_cpu_s - self.cpu)
        if cpu_left <= 0:
            self.kill("cpu")
        elif wall_left <= 0:
            self.kill("wall")
        elif now - self.began > max(LEAST_PATIENCE_S, PATIENCE * limits.job_wall_s):
            self.kill("starved")
        return nap_s(cpu_left, wall_left)

    def kill(self, reason: str) -> None:
        """End the child now; the first reason counts."""
        self.killed = self.killed or reason
        with suppress(OSError):
            signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)

    def reap(self) -> bytes:
        """Collect the ended child: its number, exit, who killed it, CPU and wall seconds, peak memory in MB."""
        ended = waitid(P_PIDFD, self.pidfd, WEXITED | WNOWAIT)
        assert ended is not None  # it would be only if nobody waited
        _, status, usage = wait4(ended.si_pid, 0)
        close(self.pidfd)
        close(self.report)
        code = waitstatus_to_exitcode(status)
        cpu, wall = usage.ru_utime + usage.ru_stime, monotonic() - self.began
        reason = self.killed if code == KILLED else ""
        if not reason and cpu > self.limits.job_cpu_s:
            reason = "cpu"  # over before anybody looked, by itself or by the kernel's limit: no matter of luck
        return ENDED.pack(self.id, code, REASONS.index(reason), cpu, wall, usage.ru_maxrss / 1024)


class Crew:
    """The children of the job that a worker is busy with, and the clock they have in common."""

    __slots__ = ("_last", "_test_started", "_waits", "clock", "next_look", "proc", "watches")

    def __init__(self) -> None:
        self.proc = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        """Opened before the children's own /proc hides it, which does not know their numbers out here."""
        self.watches: list[Watch] = []
        self.clock = 0.0
        """Seconds since the first child was started, without those that are excused."""
        self._begin(0.0)

    def _begin(self, now: float) -> None:
        self._last, self.next_look = now, now + LONGEST_NAP_S
        self.clock = self._test_started = 0.0
        self._waits = Waits()

    def watch(self, number: int, limits: Limits, pidfd: int, report: int) -> Watch:
        """Watch one more child; with the first one the clock starts."""
        now = monotonic()
        if not self.watches:
            self._begin(now)
        self.next_look = min(self.next_look, now + nap_s(limits.cpu_s, limits.wall_or_default_s))
        watch = Watch(number, limits, pidfd, report, self.clock)
        self.watches.append(watch)
        return watch

    def look(self, now: float) -> None:
        """Look at every child, then decide when to look again."""
        passed, self._last = now - self._last, now
        for watch in self.watches:
            watch.pid = watch.pid or process_number(self.proc, watch.pidfd)
        used = self._used()
        # Both are asked for every time: a wait is known only by how far the count has come since the last look.
        waited = self._waited(used, passed)
        self.clock += 0.0 if self._waits_for_the_judge() else max(0.0, passed - waited)
        if self._progressed():
            self._test_started = self.clock
            for watch in self.watches:
                watch.test_cpu = watch.cpu
        nap = min(watch.look(now, self.clock, self._test_started) for watch in self.watches)
        ready = monotonic()
        self.next_look = ready + max(nap, (ready - now) / SHARE_OF_LOOKING)

    def _progressed(self) -> bool:
        """Has the fill of any report pipe changed since the last look?"""
        fills = [(watch, unread(watch.report)) for watch in self.watches]
        changed = [watch for watch, fill in fills if fill != watch.seen]
        for watch, fill in fills:
            watch.seen = fill
        return bool(changed)

    def _used(self) -> float:
        """CPU seconds of all children since the last look."""
        before = sum(watch.cpu for watch in self.watches)
        for watch in self.watches:
            watch.cpu = cpu_seconds(watch.pid) or watch.cpu
        return sum(watch.cpu for watch in self.watches) - before

    def _waited(self, used: float, passed: float) -> float:
        """Seconds since the last look in which threads were ready to run and had no processor, as far as excused."""
        seen: list[ThreadTimes] = []
        process_of: dict[int, int] = {}
        for watch in self.watches:
            times = thread_times(self.proc, watch.pid)
            seen += times
            process_of |= {thread: watch.pid for thread, _ in times}
        cpu = sum(watch.cpu for watch in self.watches)
        wall_limit = max(watch.limits.job_wall_s for watch in self.watches)
        steps = self._waits.steps(seen, passed, lambda one: state(self.proc, f"{process_of[one]}/task/{one}") == b"R")
        return self._waits.since_the_last_look(steps, used, cpu, wall_limit)

    def _waits_for_the_judge(self) -> bool:
        """Is a report pipe full? The judge empties it as soon as it has a processor itself."""
        return any(capacity(watch.report) - unread(watch.report) < PAGE for watch in self.watches)

    def end_all_but(self, spared: set[int]) -> None:
        """End all other processes of this pid namespace; where they multiply faster than that, nothing helps."""
        for _ in range(MOST_SWEEPS):
            others = [int(name) for name in os.listdir(self.proc) if name.isdigit()]  # noqa: PTH208 - of a descriptor
            living = [pid for pid in others if pid not in spared and lives(self.proc, pid)]
            if not living:
                return
            for pid in living:
                with suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(SWEEP_EVERY_S)
        raise OSError("processes that a job has left behind cannot be ended")


def lives(proc: int, pid: int) -> bool:
    """Does a process run, or could it? One that has ended and was not collected yet does not."""
    return state(proc, str(pid)) not in (b"Z", b"X")


def state(proc: int, place: str) -> bytes:
    """Of a process or thread, as the kernel calls it: R where it runs or waits for a processor; X where it is gone.

    Of a thread its place is below `task`: elsewhere the kernel adds up all threads of the process first.
    """
    try:
        return content(f"{place}/stat", proc).rpartition(b")")[2].split()[0]
    except OSError:
        return b"X"


def nap_s(cpu_left: float, wall_left: float) -> float:
    """Longest sleep in which no budget can be overspent: several threads use CPU time faster than a clock runs."""
    return max(SHORTEST_NAP_S, min(cpu_left / CORES, wall_left, LONGEST_NAP_S))


def unread(pipe: int) -> int:
    """How many bytes wait in a pipe."""
    fill: int = struct.unpack("i", fcntl.ioctl(pipe, FIONREAD, b"\0" * 4))[0]
    return fill


def capacity(pipe: int) -> int:
    """How many bytes a pipe holds: less than was asked for where its user has used up a quota."""
    return fcntl.fcntl(pipe, fcntl.F_GETPIPE_SZ)


def cpu_seconds(pid: int) -> float:
    """CPU time of all threads of another process, the ended ones included."""
    try:
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        return 0.0


def process_number(proc: int, pidfd: int) -> int:
    """The number of a process in the namespace of this /proc; 0 when it has ended and been reaped."""
    lines = content(f"self/fdinfo/{pidfd}", proc).splitlines()
    number = next(int(line.split()[1]) for line in lines if line.startswith(b"Pid:"))
    return max(0, number)
