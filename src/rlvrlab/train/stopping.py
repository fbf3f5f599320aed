"""When a run ends before its last step: somebody asks it to stop, or a step or an evaluation takes too long.

SIGTERM, SIGHUP and SIGINT ask once for an orderly end; a second SIGINT ends at once. A signal the parent chose to
ignore stays ignored: `nohup rlvr train …` outlives its terminal. Outside the main thread Python lets nobody set a
handler, so there the signals stay with whoever has them.

A thread beside the training says what is waited for, and ends the wait. Training stays in the main thread, where
verifiers may use alarms. A wait that is too long, or one that goes on after somebody asked the run to stop, is ended by
an exception that a signal raises there. Code that swallows even this, or never comes back from C, is left behind: the
record is closed from this thread, and the process ends.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NamedTuple

from rlvrlab.errors import DeadlineExceeded
from rlvrlab.notes import running, watching
from rlvrlab.record.files import utc_now

GRACE_S = 5.0
"""What a step may still take after somebody asked the run to stop."""
LAST_S = 3.0
"""What it may take after it was broken off; then the process ends around it."""
LOOK_S = 0.2
TELL = 0.1
"""The share of the deadline after which a wait is worth an event."""
WAKE = signal.SIGURG
"""Raises in the main thread; where nobody listens, the system ignores it."""
STATUS = {signal.SIGTERM: "preempted", signal.SIGINT: "interrupted", signal.SIGHUP: "preempted"}


class Interrupts:
    """Within the block, a signal only sets `received`; the loop looks at it between steps."""

    def __init__(self, heeded: Collection[signal.Signals] = tuple(STATUS)) -> None:
        self.received: signal.Signals | None = None
        self._heeded = heeded

    def __enter__(self) -> Interrupts:
        main = threading.current_thread() is threading.main_thread()
        heeded = [number for number in self._heeded if main and signal.getsignal(number) is not signal.SIG_IGN]
        self._before: dict[signal.Signals, Any] = {}
        for number in heeded:
            self._before[number] = signal.getsignal(number)
            signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.received is signal.SIGINT and number == signal.SIGINT:
            before = self._before[signal.SIGINT]  # whoever had it knows how often it is to raise
            (before if callable(before) else signal.default_int_handler)(number, frame)
            return
        self.received = signal.Signals(number)

    @property
    def status(self) -> str:
        """Status of a run that was asked to stop; `finished` when nobody asked."""
        return STATUS[self.received] if self.received else "finished"

    @property
    def exit_code(self) -> int:
        """128 + signal, as shells have it; 0 when nothing came."""
        return 128 + self.received if self.received else 0


class Abandoned(BaseException):
    """The step in progress is given up; no `except Exception` of a plug-in may stop this."""


class Unit(NamedTuple):
    """A step, an evaluation or a preparation in progress."""

    name: str
    began: float
    since: str


class Patience:
    """Within the block, units of work are watched; outside the main thread they can only be talked about."""

    def __init__(
        self,
        tell: Callable[[str, str], None],
        interrupts: Interrupts,
        deadline_s: float,
        close: Callable[[str, str], None],
        remedy: str = "mend it or raise stop.deadline_s, then --resume",
    ) -> None:
        """`tell` gets (kind, words) of what is waited for, `close` (status, words) where the process must end."""
        self._tell, self._interrupts, self._deadline_s, self._close = tell, interrupts, deadline_s, close
        self._remedy = remedy
        self._unit: Unit | None = None
        self._told, self._asked = "", 0.0
        self._over = threading.Event()
        self._broken_off: tuple[float, str] | None = None

    def __enter__(self) -> Patience:
        self._main = threading.current_thread() is threading.main_thread()
        self._before = signal.signal(WAKE, self._wake) if self._main else None
        self._thread = threading.Thread(target=self._look, daemon=True, name="patience")
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        if self._main:
            signal.signal(WAKE, self._before)

    @contextmanager
    def over(self, name: str) -> Iterator[None]:
        """Watch one unit of work. Raises Abandoned when asked to stop, DeadlineExceeded when it took too long."""
        try:
            with watching(keep=True):
                self._unit = Unit(name, time.monotonic(), utc_now())
                yield
        except Abandoned:
            if self._interrupts.received:
                raise
            assert self._broken_off is not None
            raise DeadlineExceeded(f"{self._broken_off[1]}; {self._remedy}") from None
        finally:
            self._unit, self._broken_off = None, None

    def alive(self) -> None:
        """The unit in progress has got on: its time begins anew. Raises Abandoned where somebody asked to stop."""
        if self._interrupts.received:
            raise Abandoned
        if self._unit is not None:
            self._unit, self._told = Unit(self._unit.name, time.monotonic(), utc_now()), ""

    def _wake(self, number: int, frame: FrameType | None) -> None:
        if self._unit is not None:
            raise Abandoned

    def _look(self) -> None:
        while not self._over.wait(LOOK_S):
            unit, now = self._unit, time.monotonic()
            if self._interrupts.received and not self._asked:
                self._asked = now
            if unit is None:
                continue
            late = self._deadline_s and now - unit.began > self._deadline_s
            if self._broken_off is not None:
                if now - self._broken_off[0] > LAST_S:
                    self._leave(self._broken_off[1])
            elif late or (self._asked and now - max(self._asked, unit.began) > GRACE_S):
                words = self._words(unit, now)
                self._tell("waiting", f"{words}; it is given up")
                self._broken_off = now, words
                if self._main:
                    signal.pthread_kill(threading.main_thread().ident or 0, WAKE)
            elif self._deadline_s and now - unit.began > TELL * self._deadline_s and self._told != unit.name:
                self._told = unit.name
                self._tell("waiting", self._words(unit, now))

    def _words(self, unit: Unit, now: float) -> str:
        part = running()
        what = f" for {part[0]} ({now - part[1]:.0f} s)" if part else ""
        return f"{unit.name} has waited since {unit.since}, {now - unit.began:.0f} s by now{what}"

    def _leave(self, words: str) -> None:
        """The main thread does not come back: close the record from here and end the process."""
        if not self._main:
            return
        status, code = (self._interrupts.status, self._interrupts.exit_code) if self._asked else ("failed", 1)
        self._close(status, f"{words} and could not be broken off; go on with --resume")
        print(f"error: {words} and could not be broken off", file=sys.stderr, flush=True)
        os._exit(code)
