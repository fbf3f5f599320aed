"""What holds for every room: tests must not fail because the machine is busy."""

from __future__ import annotations

import importlib.util
import signal
import threading
import time
from collections.abc import Callable
from typing import TypeVar

import pytest
from listed_skips import pytest_sessionfinish, pytest_terminal_summary

__all__ = ["pytest_sessionfinish", "pytest_terminal_summary"]

if importlib.util.find_spec("hypothesis"):  # the environment for verl has none
    from hypothesis import HealthCheck, settings

    # Both limits are wall time per example: a neighbour that takes the processor for a moment would break them.
    settings.register_profile("busy_machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("busy_machine")

T = TypeVar("T")

# A shell that starts the tests in the background has interrupts ignored, and every process started here inherits that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN and threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def quickly() -> Callable[[float, Callable[[], T]], T]:
    """quickly(seconds, work) -> its result; within this CPU time in one of three tries.

    Only the calling thread counts, and a collection of garbage or cold caches can spoil one try, hardly all three.
    """

    def tried(seconds: float, work: Callable[[], T]) -> T:
        spent = []
        for _ in range(3):
            started = time.thread_time()
            result = work()
            spent.append(time.thread_time() - started)
            if spent[-1] < seconds:
                return result
        raise AssertionError(f"it took {spent} s of CPU time, allowed are {seconds}")

    return tried
