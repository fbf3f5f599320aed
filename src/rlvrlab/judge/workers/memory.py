"""How much memory the machine has left for jobs, or the container or group of processes that all of this runs in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from rlvrlab.judge.jail.files import content
from rlvrlab.judge.jail.limits import MEGABYTE

GROUPS = Path("/sys/fs/cgroup")
OWN_GROUPS = "/proc/self/cgroup"
NAMES = {True: ("memory.max", "memory.current"), False: ("memory.limit_in_bytes", "memory.usage_in_bytes")}
"""By whether there is one tree for all resources: what a group may take, and what it has taken."""


def spare_mb() -> int:
    """Megabytes that could still be taken; nothing where the kernel does not tell."""
    left = [room for room in (_available(), *_rooms()) if room is not None]
    return min(left, default=0) // MEGABYTE


def _available() -> int | None:
    try:
        lines = content("/proc/meminfo").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(b"MemAvailable:"))
    except (OSError, ValueError, StopIteration):
        return None


def _rooms() -> Iterator[int | None]:
    """Below the limit of each group that this process is in: Slurm, systemd and containers set some."""
    try:
        lines = content(OWN_GROUPS).decode(errors="replace").splitlines()
    except OSError:
        return
    for line in lines:
        _, kinds, path = line.split(":", 2)
        if kinds not in ("", "memory"):
            continue
        root = GROUPS / kinds
        place = PurePosixPath(path.lstrip("/"))
        for group in (place, *place.parents):
            yield _room(root / group, NAMES[kinds == ""])


def _room(group: Path, names: tuple[str, str]) -> int | None:
    """None where there is no limit ("max" is no number). Files that the kernel could drop do not count as taken."""
    try:
        limit, taken = (int(content(str(group / name))) for name in names)
        stat = dict(line.split() for line in content(str(group / "memory.stat")).splitlines())
        return max(0, limit - taken + int(stat.get(b"inactive_file", 0)))
    except (OSError, ValueError):
        return None
