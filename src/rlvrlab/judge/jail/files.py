"""The few things that jailed modules ask of files.

Instead of pathlib: whatever a worker has imported is copied by each fork, and pathlib brings half a megabyte along.
"""

from __future__ import annotations

import os
from stat import S_ISDIR, S_ISREG

PIECE = 1 << 16


def kind(path: str) -> int:
    """The type bits of a file's mode; 0 when there is nothing that can be looked at."""
    try:
        return os.stat(path).st_mode  # noqa: PTH116
    except (OSError, ValueError):
        return 0


def is_folder(path: str) -> bool:
    """Is there a folder of this name?"""
    return S_ISDIR(kind(path))


def is_file(path: str) -> bool:
    """Is there a regular file of this name?"""
    return S_ISREG(kind(path))


def content(path: str, folder: int | None = None) -> bytes:
    """All of a file, whose name may be relative to an open folder."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder)
    try:
        return b"".join(iter(lambda: os.read(file, PIECE), b""))
    finally:
        os.close(file)


def write(path: str, data: bytes) -> None:
    """Make a file, or overwrite one."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
    try:
        while data:
            data = data[os.write(file, data) :]
    finally:
        os.close(file)
