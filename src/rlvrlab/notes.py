"""What deep code has to say to the run it works for, without knowing that there is one.

    with noting(run.event):
        …
            note("memory", "micro-batches are halved to 2048 tokens")

Nobody listening: `note` does nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Listener = Callable[[str, str], None]
_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


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
