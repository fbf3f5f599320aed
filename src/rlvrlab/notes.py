"""What deep code has to say to the run it works for, without knowing that there is one.

    with noting(run.event):
        …
            note("memory", "micro-batches are halved to 2048 tokens")

Long work before the first step is counted in the same way, one problem at a time:

    with counting(bar.show), counted("train problems", 45_000):
        …
            made()                       the bar hears ("train problems", 1, 45_000)

Nobody listening: `note` and `made` do nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Listener = Callable[[str, str], None]
_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)
Counter = Callable[[str, int, int], None]
"""Hears what is made, how many there are, and of how many."""
_counter: ContextVar[Counter | None] = ContextVar("counter", default=None)
_more: ContextVar[Callable[[int], None] | None] = ContextVar("more", default=None)


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


@contextmanager
def counting(counter: Counter) -> Iterator[None]:
    """Within the block, `counter` hears how far long work has come."""
    before = _counter.set(counter)
    try:
        yield
    finally:
        _counter.reset(before)


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
