"""Processes that end when their parent is gone, even by kill −9 (Linux; elsewhere they go on), or when it wants.

python -m rlvrlab.fate PARENT COMMAND …      becomes COMMAND, which the kernel kills when process PARENT dies
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import subprocess

PR_SET_PDEATHSIG = 1


def share_fate(parent: int, ends_with: signal.Signals) -> bool:
    """Ask the kernel for a signal when the parent dies, however it dies; False if it is dead already."""
    if sys.platform != "linux":
        return True
    import ctypes

    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, ends_with)
    return os.getppid() == parent


def command(words: Sequence[str]) -> list[str]:
    """The words that start this command as a process which ends with this one."""
    return [sys.executable, "-m", "rlvrlab.fate", str(os.getpid()), *words]


def end(processes: Iterable[subprocess.Popen[bytes]], grace_s: float, *, group: bool) -> None:
    """Ask all to end, wait as long for all of them together, and kill those that do not.

    `group`: each has a session of its own, and what it started there is asked and killed with it.
    """
    import time
    from subprocess import TimeoutExpired

    asked = list(processes)
    for one in asked:
        _signal(one, signal.SIGTERM, group)
    until = time.monotonic() + grace_s
    for one in asked:
        try:
            one.wait(max(0.1, until - time.monotonic()))
        except TimeoutExpired:
            _signal(one, signal.SIGKILL, group)
            one.wait()


def _signal(process: subprocess.Popen[bytes], number: signal.Signals, group: bool) -> None:
    """One that is gone, or whose number is somebody else's by now, needs no signal."""
    from contextlib import suppress

    if not group:
        process.send_signal(number)
        return
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


if __name__ == "__main__":
    if not share_fate(int(sys.argv[1]), signal.SIGKILL):
        sys.exit("the process that started this one is gone")
    os.execv(sys.argv[2], sys.argv[2:])  # noqa: S606 -- becomes what our own launcher named
