"""A run's own files as plain text, a bounded part at a time: where the numbers of a page come from."""

from __future__ import annotations

from pathlib import Path

LARGEST = 1 << 20
"""Bytes of one answer."""


class Unreadable(Exception):
    """No such file to show; the words say why."""


def read_part(folder: Path, name: str, line: int = 1) -> bytes:
    """At most LARGEST bytes of a text file below `folder`, from a line on."""
    # Only what really lies below the folder: no `..`, no absolute name, no link that leads out.
    if not name or "\0" in name:
        raise Unreadable("name a file of the run")
    try:
        root, path = folder.resolve(strict=True), (folder / name).resolve(strict=True)
    except (OSError, RuntimeError, ValueError):
        raise Unreadable(f"{name}: no such file in this run") from None
    if not path.is_relative_to(root) or not path.is_file():
        raise Unreadable(f"{name}: no such file in this run")
    with path.open("rb") as file:
        for _ in range(line - 1):
            if not file.readline(LARGEST):
                raise Unreadable(f"{name}: has no line {line}")
        data = file.read(LARGEST + 1)
    if b"\0" in data[:4096]:
        raise Unreadable(f"{name}: not a text file")
    if len(data) > LARGEST:
        data = data[:LARGEST] + f"\n… cut off after {LARGEST >> 20} MB; ?line=N goes on from a line".encode()
    return data
