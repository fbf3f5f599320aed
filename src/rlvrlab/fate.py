"""A process that ends when its parent is gone, even by kill −9 (Linux; elsewhere it goes on).

python -m rlvrlab.fate PARENT COMMAND …      becomes COMMAND, which the kernel kills when process PARENT dies
"""

from __future__ import annotations

import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def share_fate(parent: int, ends_with: signal.Signals) -> bool:
    """Ask the kernel for a signal when the parent dies, however it dies; False if it is dead already."""
    if sys.platform != "linux":
        return True
    import ctypes

    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, ends_with)
    return os.getppid() == parent


if __name__ == "__main__":
    if not share_fate(int(sys.argv[1]), signal.SIGKILL):
        sys.exit("the process that started this one is gone")
    os.execv(sys.argv[2], sys.argv[2:])  # noqa: S606 -- becomes what our own launcher named
