"""What every child of a worker applies to itself, prepared before it is forked.

After a fork each page a child touches is copied, and in Python that is nearly every object it looks at. So the way into
the jail is a short list of calls whose arguments already lie in memory; the child only goes through the list. Its
budgets alone come with its job.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import resource
import sys
from collections.abc import Callable
from struct import pack
from typing import Any

from rlvrlab.judge.jail import kernel, landlock, limits
from rlvrlab.judge.jail.jobfile import BOUNDS, SCRATCH_PLACE
from rlvrlab.judge.jail.privileges import CapabilitySet
from rlvrlab.judge.jail.scratch import STAMP, Scratch
from rlvrlab.judge.jail.seccomp import SET_MODE_FILTER, Filter, programs

MOST_RULESETS = 16
LOWEST_RULESET = 32
"""Rulesets have numbers of their own, which do not depend on what was open when they were made."""
HIGHEST_OWN = limits.FILES
"""The template has no descriptor from here on (RLIMIT_NOFILE), so `Way.enter` closes only those below."""
JOB = b"rlvr-job"
"""The name of a job's process, as `ps` shows it."""
UTIME_OMIT = (1 << 30) - 2

libc = ctypes.PyDLL(None)
"""Keeps the interpreter lock and errno as they are: a child has one thread, and only asks whether a call failed."""
setrlimit, prctl, syscall, chdir, utimensat = libc.setrlimit, libc.prctl, libc.syscall, libc.chdir, libc.utimensat
closerange, own_pid = os.closerange, os.getpid

Call = tuple[Callable[..., int], tuple[Any, ...]]
Way = tuple[Call, ...]
"""Calls that lead into the jail; each returns 0 where it worked."""
Key = tuple[tuple[str, ...], bool]
"""What makes ways differ: further readable paths, may it write to the scratch directory."""


class Walls:
    """The ways of one worker, each prepared once."""

    def __init__(self, isolation: str, readable: list[str], scratch: Scratch, rights: CapabilitySet) -> None:
        self.isolation, self.readable, self.scratch, self.rights = isolation, readable, scratch, rights
        self.inherited: Filter | None = None
        self.filter: Filter | None = None
        if isolation != "weak":
            self.inherited, self.filter = (Filter(program) for program in programs(isolation == "bwrap"))
        self._rules: list[int] = []
        self._ways: dict[Key, Way] = {}

    def way(self, key: Key) -> Way:
        """The way into the jail, prepared on first use."""
        if key not in self._ways:
            if len(self._ways) >= MOST_RULESETS:
                self.forget()
            self._ways[key] = self._prepare(*key)
        return self._ways[key]

    def replace(self, ways: dict[Key, Way]) -> None:
        """Take these ways instead of those that were prepared."""
        self._ways.update(ways)

    def narrow(self) -> None:
        """Install the filter that a template's jobs inherit; they add their own to it as they enter."""
        if self.inherited is not None:
            kernel.syscall("seccomp", SET_MODE_FILTER, 0, self.inherited.header)

    def enter(self, job: bytes, readable: tuple[str, ...], descriptors: int) -> None:
        """Go in on the terms at the head of a job, keeping that many descriptors; there is no way back."""
        if self.filter is not None:
            self.filter.belong_to(own_pid())
        for kind, place in BOUNDS:
            if setrlimit(kind, job[place]):
                raise OSError("setrlimit failed")
        for function, arguments in self.way((readable, bool(job[SCRATCH_PLACE]))):
            if function(*arguments):
                raise OSError(f"{function.__name__} failed")
        closerange(descriptors, HIGHEST_OWN)

    def forget(self) -> None:
        """Close the rulesets; they are built again when needed."""
        for rules in self._rules:
            os.close(rules)
        self._rules.clear()
        self._ways.clear()

    def _ruleset(self, readable: tuple[str, ...], writable: bool) -> int:
        executable = ["/usr", "/bin", "/lib", "/lib64", sys.base_prefix] if self.isolation == "bwrap" else []
        writables = [*self.scratch.writable, os.devnull] if writable else [os.devnull]
        return landlock.ruleset([*self.readable, *readable], writables, executable)

    def _beginning(self) -> list[Call]:
        """To end with the worker, and to find the scratch directory as if nobody had ever looked into it.

        When it was last written to is set by the worker alone: of two children of a job one may have begun to write.
        Setting a time moves the time of the last change to this moment, which is the job's own. The holder was last
        changed when the last job had ended, unless it is a file system of its own.
        """
        times, all_times = pack("=qqqq", 0, STAMP, 0, UTIME_OMIT), pack("=qqqq", 0, STAMP, 0, STAMP)
        above: list[Call] = [] if self.scratch.bounded else [(utimensat, (kernel.AT_FDCWD, b"..", all_times, 0))]
        return [
            (prctl, (kernel.PR_SET_PDEATHSIG, 9, 0, 0, 0)),
            (prctl, (kernel.PR_SET_NAME, JOB, 0, 0, 0)),
            (chdir, (self.scratch.path.encode(),)),
            (utimensat, (kernel.AT_FDCWD, b".", times, 0)),
            *above,
        ]

    def _prepare(self, readable: tuple[str, ...], writable: bool) -> Way:
        calls = self._beginning()
        most = limits.PROCESSES if self.isolation == "bwrap" else limits.THREADS if self.scratch.counted_apart else 0
        if most:  # so that a fork bomb stays small; the kernel does not apply this limit to root
            most = min(most, resource.getrlimit(resource.RLIMIT_NPROC)[1] % limits.UNLIMITED)
            calls.append((setrlimit, (resource.RLIMIT_NPROC, pack("=QQ", most, most))))
        if self.filter is not None:
            restrict, filtered = kernel.NUMBERS["landlock_restrict_self"], kernel.NUMBERS["seccomp"]
            rules = self._ruleset(readable, writable)
            self._rules.append(fcntl.fcntl(rules, fcntl.F_DUPFD_CLOEXEC, LOWEST_RULESET))
            os.close(rules)
            calls.append((syscall, (kernel.NUMBERS["capset"], self.rights.header, self.rights.sets)))
            calls.append((syscall, (restrict, self._rules[-1], 0)))
            calls.append((syscall, (filtered, SET_MODE_FILTER, 0, self.filter.header)))
        return tuple(calls)
