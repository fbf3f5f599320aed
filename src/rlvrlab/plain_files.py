"""Files of a folder that somebody else has made: a pipe never ends being opened, and a device never ends being read.

Both are refused with an OSError before anything is read of them. Links are followed, to files only. A file of holes
costs whoever made it nothing and whoever reads it all of its size: a large one is refused too.
"""

from __future__ import annotations

import errno
import os
import stat
from io import BufferedReader
from pathlib import Path

BLOCK, LARGE = 512, 256 << 20
MOST_UNPACKED = 100
"""Times what a file takes on the disk; records that a file system packs are a tenth of their size there."""


def opened(path: Path, *, holes: bool = False) -> BufferedReader:
    """A file to read from; OSError where it is a pipe, a device, a socket or, unless `holes` are fine, full of them.

    They are where a file is read in pieces: some file systems tell of the blocks of a new file seconds after its bytes.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # a pipe waits for its writer otherwise
    try:
        facts = os.fstat(descriptor)
        if stat.S_ISDIR(facts.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(facts.st_mode):
            raise OSError(errno.EINVAL, "not a file but a pipe or a device", str(path))
        if not holes and facts.st_size > max(LARGE, MOST_UNPACKED * BLOCK * facts.st_blocks):
            raise OSError(errno.EFBIG, f"{facts.st_size} bytes, nearly all of them holes", str(path))
        return os.fdopen(descriptor, "rb")
    except OSError:
        os.close(descriptor)
        raise


def read_bytes(path: Path) -> bytes:
    """All of a file."""
    with opened(path) as file:
        return file.read()


def read_text(path: Path) -> str:
    """All of a file in UTF-8, its line ends as one; UnicodeDecodeError where it is no such text."""
    return read_bytes(path).decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
