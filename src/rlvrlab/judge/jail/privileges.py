"""Whose rights a worker and its children have: where the judge is root, those of a user that owns nothing.

An owner may change times, flags and names of a file, and shares quotas with everything else that is his. So a worker
of root's takes a high number that no user has, one of its own. It keeps three of root's rights, for renewing the
scratch directory; a child keeps at most the right to read, where the libraries lie in a folder of root's alone.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterable
from pathlib import Path

from rlvrlab.judge.jail import kernel

HIGHEST_USER = 0x7FFF0000
WORKERS_APART = 4096
SYSTEM_USERS = 1 << 16
"""Below are users of the system, above them those that containers hand out; a lonely map may end in between."""
DAC_OVERRIDE, DAC_READ_SEARCH, SYS_ADMIN = 1, 2, 21
CAPABILITY_VERSION_3 = 0x20080522
PR_SET_DUMPABLE, PR_SET_KEEPCAPS = 4, 8
NONE: tuple[int, ...] = ()
KEPT = {DAC_OVERRIDE, DAC_READ_SEARCH, SYS_ADMIN}
"""What a worker itself keeps of root's rights, or of those it has in a user namespace of its own."""


class CapabilitySet:
    """The arguments of capset(), made once: a child only passes their addresses on."""

    def __init__(self, wanted: Iterable[int]) -> None:
        bits = sum(1 << one for one in wanted)
        self.header = ctypes.create_string_buffer(struct.pack("=Ii", CAPABILITY_VERSION_3, 0), 8)
        self.sets = ctypes.create_string_buffer(struct.pack("=IIIIII", bits, bits, 0, 0, 0, 0), 24)

    def apply(self) -> None:
        """From here on this process has these capabilities and no others."""
        kernel.syscall("capset", self.header, self.sets)


def permitted() -> set[int]:
    """The capabilities that this process may use."""
    lines = Path("/proc/self/status").read_text().splitlines()
    bits = int(next(line.split()[1] for line in lines if line.startswith("CapPrm:")), 16)
    return {number for number in range(64) if bits >> number & 1}


def unused_user() -> int | None:
    """A number for this worker that no user has; None where the judge is not root or may not become anybody else."""
    if os.geteuid() != 0:
        return None
    mapped = [[int(part) for part in line.split()] for line in Path("/proc/self/uid_map").read_text().splitlines()]
    highest = min(HIGHEST_USER, max(first + size for first, _, size in mapped) - 16)
    user = highest - int.from_bytes(os.urandom(4), "little") % WORKERS_APART
    return user if user >= SYSTEM_USERS // 2 else None


def become(user: int) -> bool:
    """Take another user's number and keep KEPT of root's capabilities; False where the kernel refuses."""
    try:
        kernel.checked(kernel.libc.prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0), "keep capabilities")
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    except OSError:
        return False
    # A change of user takes the process's own folder in /proc away from it; a filter holds what could misuse that.
    kernel.libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
    keep()
    return True


def keep() -> None:
    """Use KEPT, as far as this process has them, and lose all others."""
    CapabilitySet(KEPT & permitted()).apply()


def readable_by_all(folders: Iterable[str]) -> bool:
    """Can this user read these folders without any capability? access() asks as if there were none."""
    return all(os.access(folder, os.R_OK | os.X_OK) for folder in folders if _exists(folder))


def _exists(folder: str) -> bool:
    try:
        return Path(folder).is_dir()
    except PermissionError:
        return True
