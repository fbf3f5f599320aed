"""What every child of a worker applies to itself, prepared before it is forked.

After a fork each page a child touches is copied, and in Python that is nearly every object it looks at. So the way into
the jail is a short list of calls whose arguments already lie in memory; the child only goes through the list.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import resource
import struct
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from rlvrlab.judge.jail import kernel, landlock, limits
from rlvrlab.judge.jail.privileges import CapabilitySet
from rlvrlab.judge.jail.seccomp import SET_MODE_FILTER, Filter
from rlvrlab.judge.jail.supervisor import nap_s

MOST_RULESETS = 16
LOWEST_RULESET = 32
"""Rulesets have numbers of their own, which do not depend on what was open when they were made."""
HIGHEST_OWN = limits.FILES
"""The zygote has no descriptor from here on (RLIMIT_NOFILE), so `Way.enter` closes only those below."""

libc = ctypes.PyDLL(None)
"""Keeps the interpreter lock and errno as they are: a child has one thread, and only asks whether a call failed."""
setrlimit, prctl, syscall, closerange, own_pid = libc.setrlimit, libc.prctl, libc.syscall, os.closerange, os.getpid

Terms = tuple[tuple[Any, ...], tuple[str, ...], bool]
"""What an order asks for: the fields of Limits, further readable paths, may it write to the scratch directory."""


class Way(NamedTuple):
    """The way into the jail under one set of terms."""

    budget: limits.Limits
    first_look_s: float
    """When the supervisor looks for the first time."""
    calls: tuple[tuple[Callable[..., int], tuple[Any, ...]], ...]
    filter: Filter | None

    def enter(self, descriptors: int) -> None:
        """Go in, keeping that many descriptors; there is no way back."""
        if self.filter is not None:
            self.filter.belong_to(own_pid())
        for function, arguments in self.calls:
            if function(*arguments):
                raise OSError(f"{function.__name__} failed")
        closerange(descriptors, HIGHEST_OWN)


class Walls:
    """The ways of one worker, each prepared once."""

    def __init__(
        self,
        isolation: str,
        readable: list[str],
        scratch: str,
        rights: CapabilitySet,
        imported: Sequence[int] = (0, 0),
    ) -> None:
        self.isolation, self.readable, self.scratch = isolation, readable, scratch
        self.rights, self.imported = rights, imported
        self.filter = Filter(processes=isolation == "bwrap") if isolation != "weak" else None
        self._rules: dict[tuple[tuple[str, ...], bool], int] = {}
        self.ways: dict[Terms, Way] = {}

    def way(self, terms: Terms) -> Way:
        """The way into the jail for these terms, prepared on first use."""
        if terms not in self.ways:
            if len(self.ways) >= MOST_RULESETS:
                self.forget()
            self.ways[terms] = self._prepare(*terms)
        return self.ways[terms]

    def forget(self) -> None:
        """Close the rulesets; they are built again when needed."""
        for rules in self._rules.values():
            os.close(rules)
        self._rules.clear()
        self.ways.clear()

    def renew(self) -> None:
        """The same ways to a new scratch directory: each ruleset is replaced under its own number.

        Nothing else changes in this memory, which the next job is forked from and can read.
        """
        for key, number in self._rules.items():
            rules = self._ruleset(*key)
            os.dup2(rules, number, inheritable=False)
            os.close(rules)

    def _ruleset(self, readable: tuple[str, ...], writable: bool) -> int:
        executable = ["/usr", "/bin", "/lib", "/lib64", sys.base_prefix] if self.isolation == "bwrap" else []
        scratch = [self.scratch, os.devnull] if writable else [os.devnull]
        return landlock.ruleset([*self.readable, *readable], scratch, executable)

    def _prepare(self, budget: tuple[Any, ...], readable: tuple[str, ...], writable: bool) -> Way:
        budgets = limits.Limits(*budget)
        calls: list[tuple[Callable[..., int], tuple[Any, ...]]] = [
            (setrlimit, (kind, ctypes.create_string_buffer(struct.pack("=QQ", soft, hard), 16)))
            for kind, soft, hard in limits.in_force(budgets, *self.imported)
        ]
        if self.isolation == "bwrap":  # so that a fork bomb stays small; the kernel does not apply this limit to root
            most = ctypes.create_string_buffer(struct.pack("=QQ", limits.PROCESSES, limits.PROCESSES), 16)
            calls.append((setrlimit, (resource.RLIMIT_NPROC, most)))
        if self.filter is not None:
            restrict, filtered = kernel.NUMBERS["landlock_restrict_self"], kernel.NUMBERS["seccomp"]
            key = (readable, writable)
            if key not in self._rules:
                rules = self._ruleset(*key)
                self._rules[key] = fcntl.fcntl(rules, fcntl.F_DUPFD_CLOEXEC, LOWEST_RULESET)
                os.close(rules)
            calls.append((syscall, (kernel.NUMBERS["capset"], self.rights.header, self.rights.sets)))
            calls.append((syscall, (restrict, self._rules[key], 0)))
            calls.append((syscall, (filtered, SET_MODE_FILTER, 0, self.filter.header)))
        first_look = nap_s(budgets.cpu_s, budgets.wall_or_default_s)
        return Way(budgets, first_look, ((prctl, (kernel.PR_SET_PDEATHSIG, 9, 0, 0, 0)), *calls), self.filter)
