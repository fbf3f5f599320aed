"""How many threads a model computes with on a CPU.

Another number rounds differently, so it is chosen once, when a run begins, and kept by a run that is resumed.
"""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path

import torch

ONE_THREAD_BELOW = 2_000_000
"""Parameters of a model whose kernels are too small to share out: with two threads beside another busy process, each
waits for the other's turn (docs/speed.md)."""
USUAL_THREADS = torch.get_num_threads()
STAT = Path("/proc/stat")
WATCHED_S = 0.25


def threads_for(parameters: int, device: str = "cpu") -> int:
    """One for a small model; otherwise OMP_NUM_THREADS where it is set, or as many as cores are idle.

    Beside a GPU they compute nothing, so nobody looks for a moment which cores are idle.
    """
    if parameters < ONE_THREAD_BELOW or USUAL_THREADS == 1:
        return 1
    if "OMP_NUM_THREADS" in os.environ or device != "cpu":
        return USUAL_THREADS
    return max(1, min(USUAL_THREADS, round(idle_cores())))


def idle_cores() -> float:
    """How many cores had nothing to do for a moment; all of them where the system does not tell."""
    if not STAT.exists():
        return float(USUAL_THREADS)
    before, start = _idle_s(), time.monotonic()
    time.sleep(WATCHED_S)
    return (_idle_s() - before) / (time.monotonic() - start)


def use_threads(count: int) -> None:
    """Compute with so many from now on."""
    torch.set_num_threads(count)
    if platform.machine() == "aarch64":
        # Arm's library, which oneDNN asks for products of matrices there, takes all cores whatever torch was told.
        # OpenBLAS keeps to the number and is as fast (docs/speed.md).
        torch.backends.mkldnn.enabled = False


def _idle_s() -> float:
    """Idle seconds of all cores since the machine started; waiting for a disk is idle, too."""
    _, _user, _nice, _system, idle, waiting, *_ = STAT.read_text("ascii").split("\n", 1)[0].split()
    return (int(idle) + int(waiting)) / os.sysconf("SC_CLK_TCK")
