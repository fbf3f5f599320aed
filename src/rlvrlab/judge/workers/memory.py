"""How much memory the machine has left for jobs, or the container that all of this runs in."""

from __future__ import annotations

from rlvrlab.judge.jail.files import content
from rlvrlab.judge.jail.limits import MEGABYTE

BOUNDS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)
"""What a container may take, and what it has taken, files that the kernel could drop included."""


def spare_mb() -> int:
    """Megabytes that could still be taken; nothing where the kernel does not tell."""
    left = [room for room in (_available(), *(_room(*bound) for bound in BOUNDS)) if room is not None]
    return min(left, default=0) // MEGABYTE


def _available() -> int | None:
    try:
        lines = content("/proc/meminfo").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(b"MemAvailable:"))
    except (OSError, ValueError, StopIteration):
        return None


def _room(limit: str, used: str) -> int | None:
    """Below the limit of a container; None where there is none ("max" is no number)."""
    try:
        return max(0, int(content(limit)) - int(content(used)))
    except (OSError, ValueError):
        return None
