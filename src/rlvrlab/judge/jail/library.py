"""Which of the machine's files every job may read: the standard library and the shared libraries that it needs.

Whoever reads a page of a file that nobody has read leaves it in the kernel's cache, where the next reader finds it
sooner: a bit for each page. So the less is readable, the better, and what is readable is read ahead by the judge
(workers/libraries.py). A rule of Landlock holds for a whole folder; what programs have no use for in the folder of the
standard library is covered by an empty one, where this process has mounts of its own.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress

from rlvrlab.judge.jail import files, kernel
from rlvrlab.judge.jail.scratch import HIDDEN

SYSTEM = "/usr/share/zoneinfo /usr/lib/locale/C.utf8 /usr/lib/locale/C.UTF-8 /etc/ld.so.cache"
DEVICES = "/dev/null /dev/urandom /dev/zero"
FOR_PROCESSES = "/usr/lib /usr/lib64 /usr/local/lib /lib /lib64"
"""Where programs may be started, all that these might load."""
UNNEEDED = ("site-packages", "dist-packages", "test", "config-", "idlelib", "ensurepip", "turtledemo")
"""How the names of folders in the standard library begin that hold nothing for a program."""


def folders() -> list[str]:
    """Where the standard library lies, as far as this process may import from there."""
    return sorted({path for path in sys.path if path})


def readable(shared: list[str], others: list[str], processes: bool) -> list[str]:
    """All that a job may read: the shared libraries that modules of the standard library need, and `others`."""
    more = [f"{sys.base_prefix}/lib", *FOR_PROCESSES.split(), *_settings_of_python()] if processes else []
    places = [*DEVICES.split(), *SYSTEM.split(), *folders(), *others, *more]
    above = tuple(f"{place}/" for place in places)
    # A child applies all rules anew: none for what another one holds for already.
    return places + sorted(name for name in {*shared, *mapped()} if not name.startswith(above))


def _settings_of_python() -> list[str]:
    """The file that an interpreter of a virtual environment reads when it starts; it may lie in two places."""
    folder = sys.executable.rpartition("/")[0]
    return [f"{place}/pyvenv.cfg" for place in (folder, folder.rpartition("/")[0])]


def mapped() -> set[str]:
    """The shared libraries in the memory of this process."""
    lines = files.content("/proc/self/maps").decode("utf-8", "surrogateescape").splitlines()
    names = {line[line.index("/") :] for line in lines if "/" in line and ".so" in line}
    return {name for name in names if files.is_file(name)}


def unneeded(used: list[str]) -> list[str]:
    """Folders in the standard library that no program needs, but for those that hold a folder that is used."""
    found = []
    for folder in folders():
        with suppress(OSError):
            found += [f"{folder}/{name}" for name in sorted(os.listdir(folder)) if name.startswith(UNNEEDED)]  # noqa: PTH208
    return [
        one for one in found if files.is_folder(one) and not any(f"{other}/".startswith(f"{one}/") for other in used)
    ]


def cover(used: list[str]) -> None:
    """Put the empty folder that hides /sys over all that is not needed; for a process with mounts of its own."""
    if os.listdir(HIDDEN):  # noqa: PTH208 - it could not be hidden
        return
    for folder in unneeded(used):
        with suppress(OSError):
            kernel.mount(HIDDEN, folder, "none", kernel.MS_BIND)
