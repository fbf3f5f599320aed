"""From fork to exit of one child: descriptors in place, walls up, then its role.

Descriptors inside: 0 standard input, 1 output, 2 errors, 3 the report, 4 a peer to talk to (where the role has one).
The job itself arrives as a file that only the child reads: nothing of it is in the memory that the next is forked from.
That file also takes the mark that the child has entered the jail. It is closed before anything foreign runs: whatever
a program still has a descriptor of, a pipe too, it can open again through /proc/self/fd and read empty.
"""

from __future__ import annotations

import _thread
import atexit
import builtins
import gc
import marshal
import os
import sys
import threading
from _sitebuiltins import Quitter, _Helper, _Printer
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TextIO

from rlvrlab.judge.jail import frames
from rlvrlab.judge.jail.jobfile import HEAD_SIZE, INSIDE
from rlvrlab.judge.jail.walls import Walls

REPORT, PEER, JOB, DESCRIPTORS = 3, 4, 5, 6
"""Places of descriptors; a child without a peer gets anything in its place, and closes it."""
LOWEST_OWN = 10
"""The worker's own descriptors begin here, out of the way of a child's."""
MESSAGE_LENGTH = 500
EXIT_FAILED = 1
OBJECTS_BETWEEN_COLLECTIONS = 20_000
CREDITS = "See www.python.org for more information."
LICENSE = "See https://www.python.org/psf/license/"

Job = dict[str, Any]
Role = Callable[[Job, "Report"], None]

pread, pwrite, lseek, close, dup2, own_parent = os.pread, os.pwrite, os.lseek, os.close, os.dup2, os.getppid
loads, enable, leave = marshal.loads, gc.enable, os._exit


class Released(BaseException):
    """The role is over, and nothing the program registered for its end is waited for."""


class Report:
    """One JSON line per thing worth telling, written past any buffer a candidate could meddle with."""

    __slots__ = ("_text", "_write")

    def __init__(self) -> None:
        self._write, self._text = os.write, frames.text

    def __call__(self, kind: str, *facts: object) -> None:
        """Write one line: the kind, then its facts."""
        line = self._text((kind, *facts)).encode("utf-8", frames.HALVES) + b"\n"
        while line:
            line = line[self._write(REPORT, line) :]

    def failure(self, error: BaseException) -> None:
        """Report an exception: its type, its message and the line of the solution."""
        kind = "memory" if isinstance(error, MemoryError) else "raised"
        trace, line = error.__traceback__, None
        while trace:
            if trace.tb_frame.f_code.co_filename == "solution.py":
                line = trace.tb_lineno
            trace = trace.tb_next
        self(kind, type(error).__name__, message_of(error), line)


def message_of(error: BaseException) -> str:
    """Its text, even when its own `__str__` fails."""
    try:
        return str(error)[:MESSAGE_LENGTH]
    except BaseException:
        return "(its message cannot be shown)"


def live(
    walls: Walls, readable: tuple[str, ...], descriptors: Sequence[int], roles: dict[str, Role], parent: int
) -> None:
    """The whole life of a forked child; never returns. `descriptors` are those for 0 … 4, then a file with the job."""
    status = EXIT_FAILED
    try:
        content = pread(descriptors[JOB], lseek(descriptors[JOB], 0, os.SEEK_END), 0)
        for index, source in enumerate(descriptors):
            dup2(source, index)
        walls.enter(content, readable, DESCRIPTORS)
        if own_parent() != parent:  # the worker has died before its death could end this process
            return
        peer, job = loads(memoryview(content)[HEAD_SIZE:])
        pwrite(JOB, INSIDE, 0)
        close(JOB)
        if not peer:
            close(PEER)
        enable()
        status = act(roles[job["role"]], job)
    finally:
        leave(status)


def open_streams() -> None:
    """Text streams on 0, 1 and 2, made once by the worker: what lies behind the numbers changes with every child."""
    sys.stdin = open(0, encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    add_words_of_site()
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr  # type: ignore[misc]


def add_words_of_site() -> None:
    """Started without `site`, an interpreter lacks `exit` and `quit`, which end many a contest program, and others."""
    builtins.exit, builtins.quit = Quitter("exit", "Ctrl-D"), Quitter("quit", "Ctrl-D")
    printed = {"copyright": sys.copyright, "credits": CREDITS, "license": LICENSE}
    words = {name: _Printer(name, text) for name, text in printed.items()}
    vars(builtins).update(words, help=_Helper())


def act(role: Role, job: Job) -> int:
    """Run the role the way an interpreter runs a script, up to its exit status."""
    report = Report()
    try:
        status = _outcome(role, report, job, report)
        return status or _outcome(_end_like_an_interpreter, report)
    except Released:
        return 0


def _outcome(action: Callable[..., None], report: Report, *arguments: object) -> int:
    try:
        action(*arguments)
    except Released:
        raise
    except SystemExit as stop:
        status = (stop.code or 0) & 0xFF if isinstance(stop.code, int | None) else EXIT_FAILED
        if status:
            report("exited", status)
        return status
    except BaseException as error:
        report.failure(error)
        return EXIT_FAILED
    return 0


at_last: list[Callable[[], None]] = []
"""What is done when streams have been flushed and nothing of the program runs any more: its names are let go of."""


def _end_like_an_interpreter() -> None:
    """Threads, functions for the end, streams, and only then the program's names: a stream of its own needs them."""
    if _thread._count() or threading._threading_atexits:  # type: ignore[attr-defined]
        threading._shutdown()  # type: ignore[attr-defined]
    if atexit._ncallbacks():
        atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and not _is_closed(stream):
            stream.flush()
    if at_last:
        sys.stdin, sys.stdout, sys.stderr = sys.__stdin__, sys.__stdout__, sys.__stderr__
        for act in at_last:
            act()
    with suppress(Exception):  # it may have been closed, or taken apart
        sys.__stdout__.flush()  # type: ignore[union-attr]


def _is_closed(stream: TextIO) -> bool:
    try:
        return bool(stream.closed)
    except AttributeError:  # a program's own need not have the word
        return False
