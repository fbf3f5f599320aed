"""Bubblewrap around a worker, where its children may start processes: what they leave behind dies with its namespace.

Files are still Landlock's: everything below the worker inherits its ruleset. A rule holds for whatever is mounted below
a folder, not for what is mounted on it, so jobs that share memory in /dev/shm may write to all of /dev. It therefore
holds nothing but what every job may use.
"""

from __future__ import annotations

from rlvrlab.judge.jail.library import DEVICES
from rlvrlab.judge.jail.limits import MEGABYTE
from rlvrlab.judge.jail.scratch import SHARED_MEMORY

LINKS = {"fd": "fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"}
"""In /dev, and where in /proc/self they lead."""


def wrapped(command: list[str], scratch: str, scratch_mb: int) -> list[str]:
    """The command inside of bubblewrap, with its scratch directory of so many megabytes."""
    given = ["--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--proc", "/proc", "--tmpfs", "/dev"]
    given += [word for device in DEVICES.split() for word in ("--dev-bind", device, device)]
    given += [word for name, place in LINKS.items() for word in ("--symlink", f"/proc/self/{place}", f"/dev/{name}")]
    given += ["--dir", SHARED_MEMORY, "--remount-ro", "/dev", "--size", str(scratch_mb * MEGABYTE), "--tmpfs", scratch]
    return ["bwrap", *given, "--", *command]
