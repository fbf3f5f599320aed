"""What deep code has to say to the run it works for, without knowing that there is one: words, seconds and numbers.

    with noting(run.event), watching() as spent, measuring() as measured:
        …
            note("memory", "micro-batches are halved to 2048 tokens")
            with timed("judge"):
                …
            measure({"servers/asked": 4.0})
    spent                       # {"judge": 0.42}: where a step's time went

Of seconds the innermost name counts, so the parts never add up to more than the whole. Numbers go on the step's line of
metrics.

Long work before the first step is counted in the same way, one problem at a time:

    with counting(bar.show), counted("train problems", 45_000):
        …
            made()                       the bar hears ("train problems", 1, 45_000)

Nobody listening: `note`, `timed`, `measure` and `made` do nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

Listener = Callable[[str, str], None]
LEFT_OUT, PROGRESS, FOUND = "left out", "progress", "data"
"""Kinds of notes on data: why a row is left out, what takes long with it, and what was found in files as a whole."""
ANSWERS = "answers"
"""What is counted while an engine draws many answers abreast, which are judged and kept together."""
_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)
Counter = Callable[[str, int, int], None]
"""Hears what is made, how many there are, and of how many."""
_counter: ContextVar[Counter | None] = ContextVar("counter", default=None)
_more: ContextVar[Callable[[int], None] | None] = ContextVar("more", default=None)
_spent: ContextVar[dict[str, float] | None] = ContextVar("spent", default=None)
_measured: ContextVar[dict[str, float] | None] = ContextVar("measured", default=None)
_inner: ContextVar[list[float] | None] = ContextVar("inner", default=None)
"""Seconds that parts within the current one took: they are not its own."""
_running: list[tuple[str, float]] = []
"""Names of the parts in progress, the innermost last, and when each began (monotonic)."""


@contextmanager
def noting(listener: Listener) -> Iterator[None]:
    """Within the block, `listener` hears kind and words of every note."""
    before = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(before)


@contextmanager
def hearing(listener: Listener) -> Iterator[None]:
    """Within the block, `listener` hears every note, and so does whoever has listened before."""
    before = _listener.get()

    def both(kind: str, words: str) -> None:
        listener(kind, words)
        if before is not None:
            before(kind, words)

    with noting(both):
        yield


def note(kind: str, words: str) -> None:
    """Tell whoever listens."""
    listener = _listener.get()
    if listener is not None:
        listener(kind, words)


def running() -> tuple[str, float] | None:
    """The innermost part in progress and when it began; any thread may ask."""
    parts = tuple(_running)
    return parts[-1] if parts else None


@contextmanager
def watching(*, keep: bool = False) -> Iterator[dict[str, float]]:
    """Seconds by name of what is timed inside; with `keep`, whoever watches already goes on doing so."""
    outer = _spent.get() if keep else None
    spent = {} if outer is None else outer
    before = _spent.set(spent)
    try:
        yield spent
    finally:
        _spent.reset(before)


@contextmanager
def timed(name: str) -> Iterator[None]:
    """Count the block's seconds under this name."""
    spent = _spent.get()
    if spent is None:
        yield
        return
    within = [0.0]
    outer = _inner.get()
    token = _inner.set(within)
    started = time.perf_counter()
    part = name, time.monotonic()
    _running.append(part)
    try:
        yield
    finally:
        _running.remove(part)
        took = time.perf_counter() - started
        _inner.reset(token)
        spent[name] = spent.get(name, 0.0) + took - within[0]
        if outer is not None:
            outer[0] += took


@contextmanager
def measuring() -> Iterator[dict[str, float]]:
    """Within the block, what deep code measures is kept by name: the last value of each."""
    measured: dict[str, float] = {}
    before = _measured.set(measured)
    try:
        yield measured
    finally:
        _measured.reset(before)


def measure(values: Mapping[str, float]) -> None:
    """Metrics of the step that is being made; where nobody measures, nothing."""
    measured = _measured.get()
    if measured is not None:
        measured.update(values)


@contextmanager
def counting(counter: Counter) -> Iterator[None]:
    """Within the block, `counter` hears how far long work has come."""
    before = _counter.set(counter)
    try:
        yield
    finally:
        _counter.reset(before)


def is_counting() -> bool:
    """Does anybody want to hear how far long work has come?"""
    return _counter.get() is not None


@contextmanager
def counted(what: str, total: int) -> Iterator[None]:
    """Within the block, whatever is `made` is one of these; what is made and not kept never counts beyond the total."""
    counter, done = _counter.get(), 0

    def more(count: int) -> None:
        nonlocal done
        done = min(total, done + count)
        if counter is not None:
            counter(what, done, total)

    before = _more.set(more)
    try:
        yield
    finally:
        _more.reset(before)


def made(count: int = 1) -> None:
    """Tell whoever counts that there are so many more."""
    more = _more.get()
    if more is not None:
        more(count)
