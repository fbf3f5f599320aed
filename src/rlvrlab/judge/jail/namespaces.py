"""The files of namespaces, `/proc/self/ns/net` and its like: always there, so that nobody can make them come and go.

The kernel makes such a file when somebody first asks for it, with the time of that moment, and drops it when nobody
holds it any more. Landlock does not govern them. A job that held one would show that to every job beside it, whose own
network is the same. So each worker holds those of its jobs for as long as it lives, and they never change.
"""

from __future__ import annotations

import os
from contextlib import suppress

NAMES = "cgroup ipc mnt net pid pid_for_children time time_for_children user uts"


def hold(proc: int) -> list[int]:
    """Open every namespace of this process and of its children; `proc` is a /proc that knows this process."""
    held = []
    for name in NAMES.split():
        with suppress(OSError):  # a kernel or a container without it
            held.append(os.open(f"self/ns/{name}", os.O_RDONLY | os.O_CLOEXEC, dir_fd=proc))
    return held
