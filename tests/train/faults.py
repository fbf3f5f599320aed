"""Ways to die at an exact place; each is meant for a forked child, which it spoils."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from typing import Any

from rlvrlab.record.files import Lines, to_json

CHANGES = {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.truncate"}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def on_change(act: Callable[[int], None]) -> None:
    """Call `act(n)` before the n-th time this process opens a file to write, renames, removes or makes one."""
    numbers, acting = count(1), list[int]()

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if acting:  # what `act` itself changes does not count
            return
        if event in CHANGES or (event == "open" and args[2] & WRITING and not str(args[0]).startswith("/dev/")):
            acting.append(next(numbers))
            act(acting[0])
            acting.clear()

    sys.dont_write_bytecode = True  # a module that is imported for the first time would be a change, and only once
    os.fsync = lambda descriptor: None  # kill −9 leaves the kernel's cache alone: syncing would only cost time
    sys.addaudithook(hook)


def kill_at_change(number: int) -> None:
    on_change(lambda now: die() if now == number else None)


def count_changes(target: Path) -> None:
    """Leave the number of changes so far in a file, as its size."""
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    on_change(lambda now: os.write(descriptor, b"."))


def copy_at_changes(targets: Mapping[int, Path], root: Path) -> None:
    """Leave copies of a folder as kill −9 would leave it before each of these changes, and go on."""
    on_change(lambda now: shutil.copytree(root, targets[now]) if now in targets and root.exists() else None)


class Disk:
    """What a power cut would leave below a folder: of a file or a list of names, what was synced last."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.contents: dict[int, bytes] = {}
        self.names: dict[int, dict[str, int]] = {}

    def fsync(self, descriptor: int) -> None:
        place, number = Path(f"/proc/self/fd/{descriptor}").resolve(), os.fstat(descriptor).st_ino
        if number not in self.contents and number not in self.names:
            os.dup(descriptor)  # while it is open, no other file gets its number
        if place.is_dir():
            self.names[number] = {entry.name: entry.inode() for entry in os.scandir(place)}
        else:
            self.contents[number] = place.read_bytes()

    def left(self, target: Path, number: int) -> None:
        """A file that was never synced is there without content, a folder without names."""
        if number in self.contents:
            target.write_bytes(self.contents[number])
        elif number in self.folders:
            target.mkdir()
            for name, below in self.names.get(number, {}).items():
                self.left(target / name, below)
        else:
            target.touch()

    def cut(self, image: Path) -> None:
        """Write what is left, and die."""
        if not self.root.exists():
            die()
        self.folders = {path.stat().st_ino for path in (self.root, *self.root.rglob("*")) if path.is_dir()}
        self.left(image, self.root.stat().st_ino)
        die()


def cut_power_at(number: int, root: Path, image: Path) -> None:
    """Before the n-th change, leave in `image` what a disk would hold that keeps nothing it was not told to."""
    disk = Disk(root)
    on_change(lambda now: disk.cut(image) if now == number else None)
    os.fsync = disk.fsync


def tear_line_at(number: int) -> None:
    """Write half of the n-th log line, then die."""
    numbers, whole = count(1), Lines.append

    def append(self: Lines, row: dict[str, Any]) -> None:
        if next(numbers) == number:
            data = (to_json(row) + "\n").encode()
            os.write(self._file.fileno(), data[: len(data) // 2])
            die()
        whole(self, row)

    Lines.append = append
