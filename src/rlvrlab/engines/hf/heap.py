"""Memory that a step gives back stays with the process, on a CPU.

The C library hands large blocks back to the system as soon as they are free, and the next step faults in every page of
them again: up to an eighth of a gradient's CPU time went there. So freed blocks are kept for the next step; what
a process holds is what its largest step needed, up to KEPT.
"""

from __future__ import annotations

import ctypes
import sys

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Settings of glibc's mallopt."""
KEPT = (1 << 31) - 1
"""Bytes at the end of the heap that are kept when they are free; more go back at once."""
LARGEST = 1 << 30
"""Blocks of more bytes come from the system and go back to it, each by itself."""


def keep_freed_memory() -> bool:
    """For the whole process, from now on; whether this C library can."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # a C library that has no such setting
        return False
    return bool(mallopt(M_MMAP_THRESHOLD, LARGEST) and mallopt(M_TRIM_THRESHOLD, KEPT))
