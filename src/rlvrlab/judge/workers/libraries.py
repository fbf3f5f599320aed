"""What the judge finds out about the machine's libraries once, before its first worker: which ones jobs may need.

It also reads all of them ahead. A page of a file that nobody has read yet would be a bit that one job could set, by
reading it, and a later one could read.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import threading
from functools import cache
from pathlib import Path

from rlvrlab.errors import InfrastructureError
from rlvrlab.judge.jail.library import SYSTEM, UNNEEDED

TIMEOUT_S, PIECE = 60.0, 1 << 20
OFTEN_LOADED = """
libc.so.6 libm.so.6 libdl.so.2 libpthread.so.0 librt.so.1 libutil.so.1 libresolv.so.2 libgcc_s.so.1 libstdc++.so.6
libgomp.so.1 libz.so.1
"""
"""What programs and packages load by name, where the machine has it."""
LEFT_OUT = ("_tkinter", "nis")
"""Modules that need a screen or a network, and dozens of libraries for it."""
LIST = """
import ctypes, sys
for name in sys.argv[1:]:
    try:
        ctypes.CDLL(name)
    except OSError:
        pass
lines = open("/proc/self/maps").read().splitlines()
print(*{line[line.index("/"):] for line in lines if "/" in line and ".so" in line}, sep="\\n")
"""


@cache
def shared_libraries() -> tuple[str, ...]:
    """The files that the loader needs for any module of the standard library: asked of the loader itself."""
    modules = [str(path) for path in _standard_library().glob("lib-dynload/*.so") if not path.name.startswith(LEFT_OUT)]
    command = [sys.executable, "-I", "-S", "-c", LIST, *modules, *OFTEN_LOADED.split()]
    try:
        told = subprocess.run(command, capture_output=True, text=True, check=True, timeout=TIMEOUT_S, env={}).stdout  # noqa: S603
    except (OSError, subprocess.SubprocessError) as error:
        raise InfrastructureError(f"which shared libraries Python needs could not be found out: {error}") from None
    threading.Thread(target=_read_ahead, args=(told.splitlines(),), daemon=True, name="rlvr-read-ahead").start()
    return tuple(sorted(path for path in told.splitlines() if Path(path).is_file()))


def _standard_library() -> Path:
    return Path(sysconfig.get_path("stdlib"))


def _read_ahead(libraries: list[str]) -> None:
    """Have the kernel read all that every job may read, so that no job is the first to do so."""
    for path in libraries:
        _fetch(path)
    for folder in (str(_standard_library()), *SYSTEM.split()):
        for place, below, names in os.walk(folder):
            if place == folder:
                below[:] = [name for name in below if not name.startswith(UNNEEDED)]
            for name in names:
                _fetch(f"{place}/{name}")


def _fetch(path: str) -> None:
    """Read a file: advice to the kernel (POSIX_FADV_WILLNEED) would fetch the beginning of a long one only."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:  # a link, or not for us
        return
    try:
        while os.read(file, PIECE):
            pass
    except OSError:  # nothing that can be read
        return
    finally:
        os.close(file)
