"""Data files written whole or not at all; they are read by envs/data_files.py."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rlvrlab.errors import UserError, writing_to
from rlvrlab.plain_files import write_whole


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """A whole text file (.gz packed), atomically; equal lines give equal bytes."""
    text = "".join(f"{line}\n" for line in lines)
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        number = text.count("\n", 0, error.start) + 1
        raise UserError(f"{path}:{number}: a lone surrogate cannot be written as UTF-8; remove it") from None
    write_bytes(path, gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)


def write_bytes(path: Path, data: bytes) -> None:
    """Either the old file or the new one, never half of it."""
    with writing_to(path, "free space there, or choose another place"):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, data)


def to_json(value: Any, where: str) -> str:
    """JSON that any reader takes: NaN, endless integers and unknown types are refused, `where` says whose."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (ValueError, TypeError, RecursionError) as error:
        raise UserError(f"{where}: cannot be written as JSON ({error})") from None
