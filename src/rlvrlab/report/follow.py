"""Read a JSONL file that somebody is still writing: whole lines from a position on, never more than a bound at once.

A torn last line waits until its end is there. A damaged line is passed over. A file that got shorter, or
was replaced, was rewound by a resume: it is read again from its beginning.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, NamedTuple

from rlvrlab import plain_files
from rlvrlab.plain_files import parsed

BLOCK = 1 << 20
"""Bytes read at once."""
LONGEST = 16 << 20
"""A line longer than this is passed over."""

Row = dict[str, Any]


@dataclass
class Follower:
    """A place in a file, from which the next read goes on."""

    path: Path
    position: int = 0
    """Bytes already given out."""
    inode: int = 0
    """Inode of the file that `position` belongs to; 0 accepts whichever file is there."""
    decode: Callable[[bytes], Any] = parsed
    """Turns the bytes of a line into a row."""
    rewound: bool = field(default=False, init=False)
    """Whether the last read started again at the beginning of the file."""

    def read(self) -> list[Row]:
        """The lines that have been completed since the last time, about BLOCK bytes at most."""
        self.rewound = False
        try:
            with plain_files.opened(self.path) as file:
                facts = os.fstat(file.fileno())
                if facts.st_size < self.position or self.inode not in (0, facts.st_ino):
                    self.rewound, self.position = True, 0
                self.inode = facts.st_ino
                file.seek(self.position)
                data = _read_block(file, facts.st_size - self.position)
        except OSError:
            return []
        end = data.rfind(b"\n") + 1 or (len(data) if len(data) >= LONGEST else 0)
        self.position += end
        return parse(data[:end], self.decode)

    def skip_to_last(self, lines: int) -> None:
        """Move on until `lines` lines are left to read, as far as they lie in the last block."""
        try:
            with plain_files.opened(self.path) as file:
                start = file.seek(max(0, os.fstat(file.fileno()).st_size - BLOCK))
                data = file.read(BLOCK)
        except OSError:
            return
        place = data.rfind(b"\n")
        for _ in range(lines):
            place = data.rfind(b"\n", 0, max(0, place))
        if place >= 0:
            self.position = start + place + 1


def parse(data: bytes, decode: Callable[[bytes], Any] = parsed) -> list[Row]:
    """The JSON tables among the lines; whatever else there is is passed over."""
    rows = []
    for line in data.split(b"\n"):
        if not line.strip(b" \r\x00"):
            continue
        try:
            row = decode(line)
        except (ValueError, RecursionError):
            row = None
        if isinstance(row, dict):
            rows.append(row)
    return rows


class Glimpse(NamedTuple):
    """Whole lines from all over a file; all of a small one."""

    lines: list[bytes]
    share: float
    """The part of the file's bytes that was read; 1 means all."""


def glimpse(path: Path, windows: int, size: int, whole: int = 0) -> Glimpse:
    """What can be told of a file without reading all of it: evenly spread windows, the last one at its end.

    A file of up to `whole` bytes is read entirely.
    """
    parts = []
    try:
        with plain_files.opened(path) as file:
            total = os.fstat(file.fileno()).st_size
            if total <= max(whole, windows * size):
                data = file.read(total)
                return Glimpse(data[: data.rfind(b"\n") + 1].splitlines(), 1.0)
            for i in range(windows):
                start = file.seek((total - size) * i // (windows - 1))
                data = file.read(size)
                parts.append(data[data.find(b"\n") + 1 if start else 0 : data.rfind(b"\n") + 1])
    except OSError:
        return Glimpse([], 1.0)
    return Glimpse([line for part in parts for line in part.splitlines()], sum(map(len, parts)) / total)


def _read_block(file: IO[bytes], left: int) -> bytes:
    """BLOCK bytes, or as many as it takes to see the end of a line; no room is made for more than is left."""
    data = file.read(min(BLOCK, left))
    while data and b"\n" not in data[-BLOCK:] and len(data) % BLOCK == 0 and len(data) < LONGEST:
        more = file.read(BLOCK)
        if not more:
            break
        data += more
    return data
