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

from rlvrlab.judge.jail import files, kernel

HIGHEST_USER = 0x7FFF0000
WORKERS_APART = 4096
SYSTEM_USERS = 1 << 16
"""Below are users of the system, above them those that containers hand out; a lonely map may end in between."""
CHOWN, DAC_OVERRIDE, DAC_READ_SEARCH, SETGID, SETUID, SYS_ADMIN = 0, 1, 2, 6, 7, 21
NEEDED = {CHOWN, DAC_OVERRIDE, SETGID, SETUID}
"""For becoming somebody else and handing the scratch directory over; a container may withhold some of it from root."""
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
    lines = files.content("/proc/self/status").decode().splitlines()
    bits = int(next(line.split()[1] for line in lines if line.startswith("CapPrm:")), 16)
    return {number for number in range(64) if bits >> number & 1}


def unused_user(folders: Iterable[str], others: bool) -> int | None:
    """A number for this worker that no user has; None where it has to stay who it is.

    That is where the judge is not root or may not become anybody else, and where somebody else could not read what a
    job needs: these folders and, if there are `others`, files that belong to the judge's user.
    """
    if os.geteuid() != 0 or not permitted() >= NEEDED:
        return None
    mapped = [[int(part) for part in line.split()] for line in files.content("/proc/self/uid_map").splitlines()]
    highest = min(HIGHEST_USER, max(first + size for first, _, size in mapped) - 16)
    user = highest - int.from_bytes(os.urandom(4), "little") % WORKERS_APART
    readable = DAC_READ_SEARCH in permitted() or not (others or not readable_by(user, folders))
    return user if user >= SYSTEM_USERS // 2 and readable else None


def become(user: int) -> None:
    """Take another user's number and keep KEPT of root's capabilities."""
    kernel.checked(kernel.libc.prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0), "keep capabilities")
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    # A change of user takes the process's own folder in /proc away from it; a filter holds what could misuse that.
    kernel.libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
    keep()


def keep() -> None:
    """Use KEPT, as far as this process has them, and lose all others."""
    CapabilitySet(KEPT & permitted()).apply()


def readable_by(user: int, folders: Iterable[str]) -> bool:
    """Could this user read these folders? access() asks for the real user, who has no capabilities."""
    existing = [folder for folder in folders if files.is_folder(folder)]
    os.setresgid(user, -1, -1)
    os.setresuid(user, -1, -1)
    try:
        return all(os.access(folder, os.R_OK | os.X_OK) for folder in existing)
    finally:
        os.setresuid(0, -1, -1)
        os.setresgid(0, -1, -1)
