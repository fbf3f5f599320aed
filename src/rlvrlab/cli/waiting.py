"""Examinations do not wait for ever: each reports what it waits for, gives up in time, and heeds SIGTERM.
Other work that takes longer than a moment says what it does (how far it has come, where that is counted: printing.py).

An evaluation may take hours, so its time begins anew whenever answers were drawn or judged: the deadline is for
silence.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from rlvrlab.cli.printing import MOMENT_S, REMINDER_S, printable
from rlvrlab.errors import AskedToStop
from rlvrlab.notes import noting


@contextmanager
def patient(what: str, deadline_s: float) -> Iterator[Callable[[], None]]:
    """Within the block the wait is watched; call what this yields whenever answers have come.

    Raises DeadlineExceeded after so many seconds of silence, and AskedToStop within 10 s of SIGTERM or SIGHUP. Ctrl-C
    interrupts at once, as everywhere. What the engine has to say meanwhile is said on stderr.
    """
    from rlvrlab.train.stopping import Abandoned, Interrupts, Patience

    def tell(kind: str, words: str) -> None:
        click.echo(f"{kind}: {printable(words)}", err=True)

    with Interrupts((signal.SIGTERM, signal.SIGHUP)) as interrupts:
        remedy = "mend what does not answer, or raise --deadline"
        watched = Patience(tell, interrupts, deadline_s, lambda status, words: None, remedy)
        with watched as patience, noting(tell):
            try:
                with patience.over(what):
                    yield patience.alive
            except Abandoned:
                raise AskedToStop(f"{what} was asked to stop", interrupts.exit_code) from None


@contextmanager
def busy(what: str) -> Iterator[None]:
    """Within the block, work that takes longer than a moment says on stderr what it does, and that it still does."""
    over, began = threading.Event(), time.monotonic()

    def tell() -> None:
        if over.wait(MOMENT_S):
            return
        click.echo(printable(f"{what} …"), err=True)
        while not over.wait(REMINDER_S):
            click.echo(printable(f"{what} … {time.monotonic() - began:.0f} s so far"), err=True)

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        over.set()
        teller.join()
