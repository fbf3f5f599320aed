"""From fork to exit of one child: descriptors in place, walls up, then its role.

Descriptors inside: 0 standard input, 1 output, 2 errors, 3 the report, 4 a peer to talk to (where the role has one).
The job itself arrives as a file the zygote never read, so nothing of one job is in the memory the next is forked from.
"""

from __future__ import annotations

import _thread
import atexit
import builtins
import gc
import json
import marshal
import os
import sys
import threading
from _sitebuiltins import Quitter
from collections.abc import Callable
from typing import Any

from rlvrlab.judge.jail import kernel, landlock, limits
from rlvrlab.judge.jail.seccomp import Filter

REPORT, PEER = 3, 4
LOWEST_OWN, HIGHEST_OWN = 10, limits.FILES
"""The zygote's own descriptors lie between these, out of the way of a child's."""
MESSAGE_LENGTH = 500
MOST_RULESETS = 16
EXIT_FAILED = 1
OBJECTS_BETWEEN_COLLECTIONS = 20_000

Job = dict[str, Any]
Role = Callable[[Job, "Report"], None]


class Report:
    """One JSON line per thing worth telling, written past any buffer a candidate could meddle with."""

    def __init__(self) -> None:
        self._write, self._dumps = os.write, json.dumps

    def __call__(self, kind: str, *facts: object) -> None:
        """Write one line."""
        line = self._dumps([kind, *facts]).encode() + b"\n"
        while line:
            line = line[self._write(REPORT, line) :]

    def failure(self, error: BaseException) -> None:
        """What was raised, in words."""
        kind = "memory" if isinstance(error, MemoryError) else "raised"
        self(kind, type(error).__name__, message_of(error), _line(error))


def message_of(error: BaseException) -> str:
    """Its text, even when its own `__str__` fails."""
    try:
        return str(error)[:MESSAGE_LENGTH]
    except BaseException:
        return "(its message cannot be shown)"


def _line(error: BaseException) -> int | None:
    trace, line = error.__traceback__, None
    while trace:
        if trace.tb_frame.f_code.co_filename == "solution.py":
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


class Walls:
    """What every child of a worker applies to itself, prepared once."""

    def __init__(self, isolation: str, readable: list[str], scratch: str) -> None:
        self.isolation, self.readable, self.scratch = isolation, readable, scratch
        self.filter = Filter(processes=isolation == "bwrap") if isolation != "weak" else None
        self.rules: dict[tuple[str, ...], int] = {}

    def rules_for(self, extra: tuple[str, ...], writable: bool) -> int:
        """The Landlock ruleset; the usual two are built once."""
        key = (*extra, str(writable))
        if key not in self.rules:
            if len(self.rules) >= MOST_RULESETS:
                self.forget_rules()
            executable = ["/usr", "/bin", "/lib", "/lib64", sys.base_prefix] if self.isolation == "bwrap" else []
            scratch = [self.scratch] if writable else []
            self.rules[key] = landlock.ruleset([*self.readable, *extra], scratch, executable)
        return self.rules[key]

    def forget_rules(self) -> None:
        """Close them; they are built again when needed."""
        for rules in self.rules.values():
            os.close(rules)
        self.rules.clear()

    def close_behind(self, budget: limits.Limits, rules: int | None, descriptors: int) -> None:
        """Enter the jail; there is no way back."""
        limits.apply(budget)
        if self.isolation == "bwrap":
            limits.apply_to_processes()
        if rules is not None:
            landlock.restrict(rules)
        os.closerange(descriptors, HIGHEST_OWN)
        if self.filter is not None:
            self.filter.install(os.getpid())


def live(
    walls: Walls, rules: int | None, budget: limits.Limits, descriptors: list[int], roles: dict[str, Role]
) -> None:
    """The whole life of a forked child; never returns."""
    status = EXIT_FAILED
    try:
        kernel.die_with_parent()
        job = _settle(descriptors)
        walls.close_behind(budget, rules, len(descriptors) - 1)
        gc.enable()
        status = act(roles[job["role"]], job)
    finally:
        os._exit(status)


def _settle(descriptors: list[int]) -> Job:
    """Read the job, then put stdin, stdout, stderr, report and peer on 0 … 4."""
    *streams, job = descriptors
    content = os.pread(job, os.fstat(job).st_size, 0)
    for index, source in enumerate(streams):
        os.dup2(source, index)
    decoded: Job = marshal.loads(content)  # noqa: S302 - the judge wrote it, and this is the jail
    return decoded


def open_streams() -> None:
    """Text streams on 0, 1 and 2, made once by the zygote: what lies behind the numbers changes with every child."""
    sys.stdin = open(0, encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    # Started without `site`, an interpreter lacks the two words that end many a contest program.
    builtins.exit, builtins.quit = Quitter("exit", "Ctrl-D"), Quitter("quit", "Ctrl-D")
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr  # type: ignore[misc]


def act(role: Role, job: Job) -> int:
    """Run the role the way an interpreter runs a script, up to its exit status."""
    report = Report()
    status = _outcome(lambda: role(job, report), report)
    ending = _outcome(_end_like_an_interpreter, report)
    return status or ending


def _outcome(action: Callable[[], None], report: Report) -> int:
    try:
        action()
    except SystemExit as stop:
        return _exit_status(stop, report)
    except BaseException as error:
        report.failure(error)
        return EXIT_FAILED
    return 0


def _exit_status(stop: SystemExit, report: Report) -> int:
    status = (stop.code or 0) & 0xFF if isinstance(stop.code, int | None) else EXIT_FAILED
    if status:
        report("exited", status)
    return status


def _end_like_an_interpreter() -> None:
    if _thread._count():
        threading._shutdown()  # type: ignore[attr-defined]
    if atexit._ncallbacks():
        atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and not stream.closed:
            stream.flush()
