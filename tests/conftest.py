"""What holds for every room: tests must not fail because the machine is busy, and must not keep it busy."""

from __future__ import annotations

import atexit
import gc
import importlib.util
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import TypeVar

import pytest
from distribution import pytest_collection_modifyitems, pytest_xdist_make_scheduler
from listed_skips import pytest_sessionfinish, pytest_terminal_summary

__all__ = [
    "pytest_collection_modifyitems",
    "pytest_sessionfinish",
    "pytest_terminal_summary",
    "pytest_xdist_make_scheduler",
]

# Tests run one per core already; more threads of torch or NumPy would only wait for each other. Set before either is
# imported, and inherited by every process that a test starts.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")
# Which files of plug-ins the tests have named is forgotten with them, and nobody's own memory is changed.
if "PYTEST_XDIST_WORKER" not in os.environ:
    os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="rlvrlab_state_")
    atexit.register(shutil.rmtree, os.environ["XDG_STATE_HOME"], ignore_errors=True)
# Tests start hundreds of processes, each of which would compile the package anew, and every run all tests.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# What is imported and collected stays until the end: looking for garbage in it meanwhile takes time and finds none.
gc.disable()

FAST_EXAMPLES = 25
"""Random inputs per law without the slow tests; with them, as many as Hypothesis thinks right."""
SLOWER = 3.0
"""How much slower than ours a machine may be, for the tests that bound CPU time."""
T = TypeVar("T")

# A shell that starts the tests in the background has interrupts ignored, and every process started here inherits that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN and threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config: pytest.Config) -> None:
    os.fsync = lambda descriptor: None  # kill −9 leaves the kernel's cache alone: syncing would only cost time
    if importlib.util.find_spec("hypothesis"):  # the environment for verl has none
        from hypothesis import HealthCheck, settings

        examples = FAST_EXAMPLES if "not slow" in config.option.markexpr else settings.default.max_examples
        # Both limits are wall time per example: a neighbour that takes the processor for a moment would break them.
        settings.register_profile(
            "busy_machine", deadline=None, max_examples=examples, suppress_health_check=[HealthCheck.too_slow]
        )
        settings.load_profile("busy_machine")


def pytest_collection_finish() -> None:
    """Tests and libraries stay until the end, so no collection of garbage need look at them."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def quickly() -> Callable[[float, Callable[[], T]], T]:
    """quickly(seconds, work) -> its result; within this CPU time in one of three tries, on a machine like ours.

    A slower machine has three times as long: what these tests look for grows with the square of its input, or worse,
    and takes hundreds of times as long.

    Only the calling thread counts, unless another clock is given. A collection of garbage or cold caches can spoil one
    try, hardly all three.
    What a hypervisor took away meanwhile is counted as the thread's time, so it is taken off in proportion.
    """

    from rlvrlab.judge.workers.stolen import Stretch

    def tried(seconds: float, work: Callable[[], T], clock: Callable[[], float] = time.thread_time) -> T:
        spent = []
        for _ in range(3):
            started, stretch = clock(), Stretch()
            result = work()
            spent.append((clock() - started) * (1 - stretch.stolen()))
            if spent[-1] < SLOWER * seconds:
                return result
        raise AssertionError(f"it took {spent} s of CPU time, allowed are {SLOWER * seconds}")

    return tried
