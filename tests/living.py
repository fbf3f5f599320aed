"""Whether processes of somebody else's still run."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path


def alive(pid: int) -> bool:
    """A zombie has ended, and nobody has asked how."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def left_of(pids: Iterable[int], seconds: float = 60) -> list[int]:
    """Those that still run after so long; all have that time together, and it is not waited longer than needed."""
    left, until = list(filter(alive, pids)), time.monotonic() + seconds
    while left and time.monotonic() < until:
        time.sleep(0.05)
        left = list(filter(alive, left))
    return left
