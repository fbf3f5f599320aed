"""Weights are read from the disk while whoever wants them is still being imported, which takes seconds as well."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path

ENDING = ".safetensors"


def read_ahead(folder: Path) -> threading.Thread:
    """Ask the system for the weights in a folder, in a thread that nobody has to wait for.

    They go into its cache and nowhere else, so whoever loads them does as before. What cannot be read is told there.
    """
    thread = threading.Thread(target=_read, args=(folder,), name="rlvr-ahead", daemon=True)
    thread.start()
    return thread


def _read(folder: Path) -> None:
    with suppress(OSError, AttributeError):  # no folder but a name on the hub; a system that takes no such wish
        for path in sorted(folder.iterdir()):
            if path.name.endswith(ENDING) and path.is_file():
                _wish_for(path)


def _wish_for(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_WILLNEED)
    finally:
        os.close(descriptor)
