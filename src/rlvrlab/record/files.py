"""Writing that a crash cannot tear: whole files by rename, lines one by one, by one writer per folder.

A line that was written survives kill −9 at once and power loss after `sync`. A reader meets at most one torn last line.

Somebody else may have made the folder that is written into, and chosen where its links lead. So a folder in it comes
from `place_in`, which refuses one that leads out of it; a whole file takes the place of a link by its rename; and
nothing is appended through a link.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import math
import os
import shlex
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

import numpy as np

from rlvrlab import plain_files
from rlvrlab.errors import InfrastructureError, RunError, RunLocked, StorageError, UserError
from rlvrlab.plain_files import parsed, sync_folder, write_whole


def place_in(home: Path, below: str | Path) -> Path:
    """A folder below another one, which need not be there yet; refused where a link leads out of that other one."""
    place = home / below
    if plain_files.below(home, below) is not None:
        return place
    why = f"a link that leads out of {home}, or nowhere"
    raise UserError(f"{place}: {why}, and nothing is written through it; remove it, or name another place")


def make_output(folder: Path) -> None:
    """The folder that somebody named for results, made where it is not there; refused where nothing can be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{folder}: cannot be made ({error.strerror}); choose another --output") from None
    if not os.access(folder, os.W_OK):
        raise UserError(f"{folder}: read-only; choose another --output")


def _refuse_link(path: Path) -> None:
    """Lines would land in what it leads to."""
    if path.is_symlink():
        raise RunError(f"{path}: a link, and nothing is appended through one; put the file itself in its place")


def utc_now() -> str:
    """The time as every record writes it: `2026-01-31T12:00:00Z`."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def read_time(text: object) -> datetime | None:
    """A time of a record, as `utc_now` wrote it; None where it is none. Without a zone it is taken for UTC."""
    try:
        told = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return told if told.tzinfo else told.replace(tzinfo=UTC)


STAMP = r"\d{8}_\d{6}"
"""What `stamp_now` writes, as a pattern."""


def stamp_now() -> str:
    """The time as names of folders have it: `20260131_120000`."""
    return time.strftime("%Y%m%d_%H%M%S", time.gmtime())


def duration(seconds: float) -> str:
    """Seconds as `45 s`, `12 min`, `3.2 h` or `5 d`."""
    if seconds < 100:
        return f"{max(0.0, seconds):.0f} s"
    if seconds < 6000:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 172800 else f"{seconds / 86400:.0f} d"


class Lock:
    """An exclusive lock on a folder, held from creation to `release`.

    The kernel drops it when its holder dies, however it dies.
    """

    def __init__(self, folder: Path) -> None:
        path = folder / ".lock"
        _refuse_link(path)
        try:
            self._file = path.open("a+", encoding="utf-8")
        except OSError as error:
            raise StorageError(path, error) from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.seek(0)
            holder = "another process"
            with suppress(ValueError, KeyError, TypeError):
                facts = parsed(self._file.read())
                holder = f"process {facts['pid']} on {facts['host']}"
            self._file.close()
            raise RunLocked(f"{folder}: in use by {holder}; wait for it or stop it") from None
        except OSError as error:  # some network file systems have no locks
            self._file.close()
            why = error.strerror or error
            raise RunError(f"{folder}: files cannot be locked here ({why}); put output_dir on a local disk") from None
        with suppress(OSError):  # on a full disk the holder stays unnamed; the lock itself needs no space
            self._file.truncate(0)
            self._file.write(json.dumps({"pid": os.getpid(), "host": socket.gethostname()}))
            self._file.flush()

    def release(self) -> None:
        """Release the folder for the next writer."""
        with suppress(OSError):
            self._file.close()


def to_json(value: Any) -> str:
    """One line; NaN and infinity become null, because JSON has neither."""
    try:
        line = json.dumps(value, ensure_ascii=False, allow_nan=False, default=_plain)
        line.encode()
    except (TypeError, ValueError):  # a key, a number or a text in it cannot be written as it is
        return json.dumps(_finite(value), ensure_ascii=False, default=str)
    return line


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else str(value)


def _finite(value: Any) -> Any:
    """Looks at every value, which takes longer than writing them."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(k): _finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()  # a lone surrogate cannot be written
    return _finite(value.item()) if isinstance(value, np.generic) else value


def write_atomically(path: Path, text: str) -> None:
    """Either the old file or the new one, never half of it."""
    try:
        write_whole(path, text.encode())
    except OSError as error:
        raise StorageError(path, error) from error


def write_json(path: Path, value: Any) -> None:
    """Write indented JSON so that a reader sees the old file or the new one."""
    write_atomically(path, json.dumps(_finite(value), ensure_ascii=False, indent=2, default=str) + "\n")


def read_facts(path: Path, remedy: str) -> dict[str, Any] | None:
    """A JSON file that holds one table; None when it is not there."""
    try:
        facts = parsed(plain_files.read_text(path))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValueError, OSError) as error:
        raise RunError(f"{path}: cannot be read ({error}); {remedy}") from None
    if not isinstance(facts, dict):
        raise RunError(f"{path}: not a table of facts; {remedy}")
    return facts


def refuse_schema(facts: Mapping[str, Any], known: int, path: Path) -> None:
    """A record of another version may mean something else by the same words, so nobody reads it."""
    if facts.get("schema") != known:
        raise RunError(f"{path}: schema {facts.get('schema')}, this version reads {known}; use the one that wrote it")


def _append(file: IO[bytes], data: bytes, path: Path) -> None:
    """All of the data at the end of an unbuffered file, or nothing of it."""
    start = os.fstat(file.fileno()).st_size  # not tell(): it is stale once a failed line was cut off
    try:
        if file.write(data) != len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    except OSError as error:
        os.ftruncate(file.fileno(), start)
        raise StorageError(path, error) from error


class Lines(AbstractContextManager["Lines"]):
    """An append-only JSONL file, which knows how many lines it has and what they hash to."""

    def __init__(self, path: Path) -> None:
        self.path, self._appending = path, threading.Lock()
        _refuse_link(path)
        mend_tail(path)
        try:
            new = not path.exists()
            self._file: IO[bytes] = path.open("ab", buffering=0)
            if new:
                sync_folder(path.parent)  # the lines of a file without a name in its folder would be lost
            data = plain_files.read_bytes(path)
        except OSError as error:
            raise StorageError(path, error) from error
        self._count, self._digest = data.count(b"\n"), hashlib.sha256(data)

    def append(self, row: dict[str, Any]) -> None:
        """One write call per line: the kernel has it when this returns. Several threads may append."""
        data = (to_json(row) + "\n").encode()
        with self._appending:
            _append(self._file, data, self.path)
            self._count += 1
            self._digest.update(data)

    def seal(self) -> dict[str, Any]:
        """Number of lines and their hash, which were kept up to date line by line."""
        return {"lines": self._count, "sha256": self._digest.hexdigest()}

    def sync(self) -> None:
        """The disk has it when this returns."""
        try:
            os.fsync(self._file.fileno())
        except OSError as error:
            raise StorageError(self.path, error) from error

    def close(self) -> None:
        """Close the file; nothing can be appended afterwards."""
        self._file.close()

    def __exit__(self, *_: object) -> None:
        self.close()


def read_lines(path: Path, needs: Mapping[str, type] | None = None, *, answers: bool = False) -> list[dict[str, Any]]:
    """Every whole line; a torn last one is left out, a broken or foreign one before it is an error with its number.

    `needs` are the keys, with their types, that every line of this file has. Lines of `answers` have whatever problems
    and answers have, such as numbers of a thousand digits, which are damage elsewhere.
    """
    return [row for _, row in numbered_lines(path, needs, answers=answers)]


def _remedy_of(path: Path) -> str:
    """What can be done about a damaged line; a run can go on without what is behind one of its log."""
    run = path.parent.parent
    forks = path.parent.name == "logs" and (run / "config.json").is_file()
    new_run = f", or go on in a new run: `rlvr train --resume {shlex.quote(str(run))} --fork`" if forks else ""
    return f"restore the file from a copy{new_run}"


def numbered_lines(
    path: Path, needs: Mapping[str, type] | None = None, *, answers: bool = False
) -> Iterator[tuple[int, dict[str, Any]]]:
    """`read_lines` with the number of each line."""
    if not path.exists():
        return
    lines = plain_files.read_bytes(path).split(b"\n")
    for number, line in enumerate(lines, 1):
        if not line.strip(b" \r\x00"):
            continue
        try:
            text = line.decode()  # of bytes, json would look for their encoding line by line
            row = parsed(text, answers=answers)
        except ValueError:
            if number == len(lines):
                return
            words = f"not JSON; the line was damaged after it was written; {_remedy_of(path)}"
            raise InfrastructureError(f"{path}:{number}: {words}") from None
        if not isinstance(row, dict) or any(not isinstance(row.get(key), kind) for key, kind in (needs or {}).items()):
            wanted = f"a table with {', '.join(needs)}" if needs else "a table"
            raise RunError(f"{path}:{number}: a foreign line ({wanted} is expected); remove it")
        yield number, row


def mend_tail(path: Path) -> bool:
    """Move a torn last line to `<name>.torn`, so that the next append starts on a line of its own."""
    _refuse_link(path)
    _refuse_link(path.with_name(path.name + ".torn"))
    if not path.exists():
        return False
    data = plain_files.read_bytes(path)
    end = data.rfind(b"\n") + 1
    tail = data[end:]
    if not tail:
        return False
    try:
        with path.with_name(path.name + ".torn").open("ab") as file:
            file.write(tail + b"\n")
        os.truncate(path, end)
    except OSError as error:
        raise StorageError(path, error) from error
    return True


def split_lines(path: Path, keep: Callable[[int, dict[str, Any]], bool], aside: Path) -> int:
    """Keep some lines, by number and content, to the byte, and move the others to `aside`; returns how many moved."""
    moved = {number: row for number, row in numbered_lines(path) if not keep(number, row)}
    if moved:
        with Lines(aside) as target:
            for row in moved.values():
                target.append(row)
            target.sync()
        lines = plain_files.read_bytes(path).decode("utf-8").split("\n")[:-1]
        write_atomically(path, "".join(f"{line}\n" for number, line in enumerate(lines, 1) if number not in moved))
    return len(moved)


def append_rows(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    """Rows at the end of a JSONL file, in one write; `mend_tail` first where a kill may have torn its last line."""
    _refuse_link(path)
    try:
        with path.open("ab", buffering=0) as file:
            _append(file, "".join(to_json(row) + "\n" for row in rows).encode(), path)
    except OSError as error:
        raise StorageError(path, error) from error


def write_rows(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    """A whole JSONL file at once, atomically."""
    write_atomically(path, "".join(to_json(row) + "\n" for row in rows))
