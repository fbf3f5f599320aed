"""From the thread that asks to the one that judges."""

from __future__ import annotations

import threading
from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class Outbox(Generic[T]):
    """Filled by one thread, emptied by another."""

    def __init__(self) -> None:
        self._items: deque[T] = deque()
        self._change = threading.Condition()
        self._finished = False

    def __len__(self) -> int:
        return len(self._items)

    def put(self, item: T) -> None:
        """Add one."""
        with self._change:
            self._items.append(item)
            self._change.notify()

    def finish(self) -> None:
        """Nothing more will come."""
        with self._change:
            self._finished = True
            self._change.notify_all()

    def take(self, most: int) -> list[T]:
        """At least one as soon as there is one; nothing when it is over."""
        with self._change:
            while not self._items and not self._finished:
                self._change.wait()
            return [self._items.popleft() for _ in range(min(most, len(self._items)))]

    def wait_until_finished(self, timeout_s: float) -> None:
        """Let the other side come to an end."""
        with self._change:
            self._change.wait_for(lambda: self._finished, timeout_s)
