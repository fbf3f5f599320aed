"""Files of a folder that somebody else has made, the JSON in them, and files that are written whole.

A pipe never ends being opened, and a device never ends being read: both are refused with an OSError before anything is
read of them. Links are followed, to files only. A file of holes costs whoever made it nothing and whoever reads it all
of its size: a large one is refused too.

JSON is bounded in depth and in the digits of its numbers, and read by type. Python reads 4,300 digits and a thousand
brackets within each other, and then fails where such a value is turned into a float or a text, or walked through. Here
they are a ValueError like any other text that is no JSON of ours.

What is written takes the place of what was there by a rename: a reader sees the old file or the new one, and a link is
replaced, not followed.
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import stat
import threading
from io import BufferedReader
from pathlib import Path
from typing import Any

from rlvrlab.errors import UserError, cut

BLOCK, LARGE = 512, 256 << 20
MOST_UNPACKED = 100
"""Times what a file takes on the disk; records that a file system packs are a tenth of their size there."""
DEEPEST = 100
DIGITS = 308
"""A whole number with more is no float."""
LARGEST = 1e100
"""Numbers beyond are nobody's measurement; a percentage of one within is still finite."""
LARGEST_COUNT = 2**53
LONGEST_NAME = 60
_TOO_LONG = b"0" * (DIGITS + 1)
_DIGITS_AS_ZEROS = bytes.maketrans(b"0123456789", b"0" * 10)


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


def below(home: Path, name: str | Path) -> Path | None:
    """What `name` leads to from a folder, links followed, whether it is there or not; None where that lies elsewhere.

    Also None where nobody can go: a loop of links, a NUL in the name.
    """
    try:
        path = (home / name).resolve()
        return path if path.is_relative_to(home.resolve()) else None
    except (OSError, RuntimeError, TypeError, ValueError):
        return None


def file_name(text: str, otherwise: str = "unnamed") -> str:
    """A text, such as the name of a data set or model, made fit to be part of a file's name."""
    kept = "".join(c if c.isascii() and (c.isalnum() or c in "._-@") else "_" for c in text).strip("._-")
    return kept[-LONGEST_NAME:].strip("._-") or otherwise


def file_stem(text: str, otherwise: str) -> str:
    """The same for all of a name but its ending, which begins at the first dot."""
    return file_name(text.replace(".", "_").replace("@", "_"), otherwise)


def sha256_of(path: Path) -> str:
    """The hash of a file's content, in hexadecimal."""
    with opened(path, holes=True) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_whole(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Either the old file or the new one, never half of it, whoever else writes the same; OSError where it cannot be.

    `durable` outlives a power cut; what goes with its process need not.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}_{threading.get_ident()}.tmp")
    try:
        if temporary.is_symlink():  # put there by somebody else: what it leads to is not written to
            temporary.unlink()
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            if durable:
                os.fsync(file.fileno())  # else a power cut could leave the new name without its content
        temporary.replace(path)
        if durable:
            sync_folder(path.parent)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def sync_folder(folder: Path) -> None:
    """Make renames and new files in it durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def refuse_taken(place: Path, *, empty_is_free: bool = False) -> None:
    """UserError where there is something already; an empty folder is free where a folder is to be written."""
    if empty_is_free and place.is_dir() and not any(place.iterdir()):
        return
    if place.exists() or place.is_symlink():
        raise UserError(f"{place}: is already there; choose another --output or move it away")


def parsed(text: str | bytes, *, answers: bool = False) -> Any:
    """JSON as values; whatever cannot be read, or is beyond the bounds, is a ValueError.

    Problems and answers (`answers`) may hold numbers of a thousand digits, and have no bounds but Python's.
    """
    try:
        value = json.loads(text, parse_int=_bounded) if not answers and has_long_digits(text) else json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not answers:
        refuse_depth(text, value)
    return value


def strict(text: str | bytes) -> Any:
    """The same of a file that must mean one thing: a key that comes twice, NaN and a number beyond any are refused too.

    Infinity stays, by which some models' config.json says that there is no bound.
    """
    try:
        value = json.loads(
            text, parse_int=_bounded, parse_float=_finite, parse_constant=_refused, object_pairs_hook=distinct_keys
        )
    except RecursionError:
        raise ValueError("nested too deeply") from None
    refuse_depth(text, value)
    return value


class KeyTwice(ValueError):
    """Readers differ in which of the two they take."""


def distinct_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object as `json.loads` hands its pairs over; of a key that stands there twice the later one would win."""
    table = dict(pairs)
    if len(table) < len(pairs):
        raise KeyTwice("a key stands there twice")
    return table


def has_long_digits(text: str | bytes) -> bool:
    """Whether there are more digits in a row than a number may have; they may stand in a text, where they are fine.

    Every line that is read passes here: a search for one constant takes a fortieth of the time of a regular expression.
    """
    if len(text) <= DIGITS:
        return False
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    return _TOO_LONG in data.translate(_DIGITS_AS_ZEROS)


def refuse_depth(text: str | bytes, value: Any) -> None:
    """ValueError for a value with more than DEEPEST tables and lists within each other; `text` is what it was."""
    if isinstance(text, str):
        lists, tables = text.count("["), text.count("{")
    else:
        lists, tables = text.count(b"["), text.count(b"{")
    if lists + tables <= DEEPEST:
        return
    level = [value]
    for _ in range(DEEPEST):
        inner = [list(one.values()) if isinstance(one, dict) else one for one in level if isinstance(one, dict | list)]
        level = [one for values in inner for one in values if isinstance(one, dict | list)]
        if not level:
            return
    raise ValueError("nested too deeply")


def number(value: Any, low: float = -LARGEST, high: float = LARGEST) -> float | None:
    """`value` as a float where it is a number within these bounds, else None."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        return None
    return float(value)


def share(value: Any) -> float | None:
    """A number from 0 to 1, else None."""
    return number(value, 0, 1)


def count(value: Any) -> int | None:
    """A whole number from 0 to LARGEST_COUNT, else None."""
    return value if isinstance(value, int) and number(value, 0, LARGEST_COUNT) is not None else None


def _finite(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise ValueError(f"{cut(digits, 40)} is beyond any number")
    return value


def _refused(constant: str) -> float:
    if constant == "NaN":
        raise ValueError("NaN is no value")
    return float(constant)


def _bounded(digits: str) -> int:
    if len(digits) > DIGITS + 1:  # and a sign
        raise ValueError(f"a number of {len(digits)} digits")
    return int(digits)
