"""What honest programs ask for and the jail gives in another way.

`multiprocessing.Lock`, `Queue` and their like want a named semaphore, a file in memory that all processes share. In
here there is one process, so a semaphore of its own threads is as good, and nothing of it is left when the job ends.
Contest programs start a thread with a stack of half a gigabyte, as much as all the memory they may have; no program
needs it, for Python's own calls take no room there.
"""

from __future__ import annotations

import _thread
import resource
import sys
import threading
from types import ModuleType
from typing import Any

RECURSIVE_MUTEX = 0


class SemLock:
    """`_multiprocessing.SemLock` for the threads of one process."""

    SEM_VALUE_MAX = 0x7FFFFFFF
    name, handle = None, 0

    def __init__(self, kind: int, value: int, maxvalue: int, name: str, unlink: bool) -> None:
        self.kind, self.maxvalue = kind, maxvalue
        self._value, self._held, self._owner = value, 0, 0
        self._changed = threading.Condition(threading.Lock())

    def acquire(self, block: bool = True, timeout: float | None = None) -> bool:
        """Take one, waiting for it where asked to; was there one?"""
        if self.kind == RECURSIVE_MUTEX and self._is_mine():
            self._held += 1
            return True
        longest = (None if timeout is None else max(0.0, timeout)) if block else 0.0
        with self._changed:
            if not self._changed.wait_for(lambda: self._value > 0, longest):
                return False
            self._value, self._held, self._owner = self._value - 1, self._held + 1, _thread.get_ident()
        return True

    def release(self) -> None:
        """Give one back."""
        if self.kind == RECURSIVE_MUTEX:
            if not self._is_mine():
                raise AssertionError("attempt to release recursive lock not owned by thread")
            if self._held > 1:
                self._held -= 1
                return
        with self._changed:
            if self._value >= self.maxvalue:
                raise ValueError("semaphore or lock released too many times")
            self._value, self._held = self._value + 1, self._held - 1
            self._changed.notify()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()

    def _count(self) -> int:
        return self._held

    def _is_mine(self) -> bool:
        return self._held > 0 and self._owner == _thread.get_ident()

    def _get_value(self) -> int:
        return self._value

    def _is_zero(self) -> bool:
        return self._value == 0

    def _after_fork(self) -> None:
        self._held = 0


def install(processes: bool) -> None:
    """Put them where programs look; where there are processes, only what is not between them."""
    real = _thread.stack_size

    def stack_size(*size: int) -> int:
        """The C function's, but at most half of what memory the process may have."""
        most = resource.getrlimit(resource.RLIMIT_DATA)[0]
        return real(*(min(one, most // 2) if most > 0 else one for one in size))

    names: Any = threading, _thread
    for module in names:
        module.stack_size = stack_size
    if not processes:
        # In place of the library, which no worker then has to load.
        module = ModuleType("_multiprocessing")
        module.__dict__.update(SemLock=SemLock, sem_unlink=_unlink, flags={})
        sys.modules[module.__name__] = module


def _unlink(name: str) -> None:
    """A semaphore without a name has none to take away."""
