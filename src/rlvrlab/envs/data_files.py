"""Rows of data files, read strictly: whatever is wrong is one line that names file, row and column.

.jsonl and .json (also .gz), .csv (separated by commas, semicolons or tabs), .parquet. A row's number is its line in
.jsonl, its position elsewhere, from 1.
"""

from __future__ import annotations

import csv
import difflib
import gzip
import io
import json
import math
import os
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from string import Formatter
from typing import Any, Self, TypeVar

from rlvrlab.envs.files_read import was_read
from rlvrlab.errors import UserError, one_line, quoted
from rlvrlab.recipe.schema import PluginTable

T = TypeVar("T")
Row = dict[str, Any]
Place = tuple[str, Row]
"""Where a row came from, for messages, and the row."""
ENDINGS = (".jsonl", ".jsonl.gz", ".json", ".json.gz", ".csv", ".csv.gz", ".parquet")
DATA = "RLVRLAB_DATA"
"""Environment variable: a folder in which data files are looked for."""
LONGEST_FIELD = 1 << 30
MOST_UNPACKED = 100
"""Times the size of a .gz file: text packs to a fifth, seldom to a fiftieth; a bomb to a thousandth."""
SMALLEST_BOUND = 16 << 20
"""Bytes that may come of any .gz file, however small."""
SMALLEST_PARQUET_BOUND, ROWS_AT_ONCE = 256 << 20, 64
"""The same of a Parquet file, in which a repeated text stands once; rows that are read together."""
PIECE = 1 << 16
ARGUMENTS = ("base_input", "plus_input")
"""Columns in which NaN and infinity are arguments of functions (EvalPlus)."""
MOST_DIGITS = 4300
"""Python reads no longer integer from text: reading one takes quadratic time."""


def is_data_file(path: Path | str) -> bool:
    """Whether a file is data, by its name alone; capitals do not count."""
    return str(path).lower().endswith(ENDINGS)


def whatever_capitals(path: Path) -> Path | None:
    """What is there under this name, or the data file beside it that differs in capitals alone; else None."""
    if path.exists():
        return path
    if not is_data_file(path) or not path.parent.is_dir():
        return None
    return next((one for one in sorted(path.parent.iterdir()) if one.name.lower() == path.name.lower()), None)


def ending_of(path: Path) -> str:
    """`.jsonl.gz` of `train.jsonl.gz`; what this laboratory cannot read is refused."""
    name = path.name.lower()
    for ending in sorted(ENDINGS, key=len, reverse=True):
        if name.endswith(ending):
            return ending
    raise UserError(f"{path}: no data file by its name; allowed: {', '.join(ENDINGS)}")


def bare_name(path: Path) -> str:
    """The file's name without its ending."""
    return path.name[: -len(ending_of(path))]


def located(text: str, folder: Path) -> str:
    """A data file or folder as an absolute path: beside the recipe, else in $RLVRLAB_DATA, else where we were started.

    Absolute, so that a run can be resumed from anywhere. What is nowhere stays as it is, and is complained about when
    it is read.
    """
    for base in (folder, Path(os.environ.get(DATA) or folder), Path()):
        if text and (found := base / Path(text).expanduser()).exists():
            return str(found.absolute())
    return text


class LocatedPath(PluginTable):
    """Base of environments whose key `path` names a data file or folder; see `located`."""

    def beside(self, folder: Path) -> Self:
        """The same with the path as it was found."""
        environment: Any = self
        return replace(environment, path=located(environment.path, folder))


def read_rows(path: Path) -> Iterator[tuple[int, Row]]:
    """Numbered rows, at least one."""
    ending = ending_of(path)
    if not path.is_file():
        raise UserError(missing(path, is_data_file))
    read = {".parquet": _parquet_rows, ".csv": _csv_rows, ".json": _json_rows, ".jsonl": _jsonl_rows}
    empty = True
    for number, row in read[ending.removesuffix(".gz")](path):
        if not isinstance(row, dict):
            raise UserError(f"{path}:{number}: an object was expected, not {type(row).__name__}")
        empty = False
        yield number, row
    if empty:
        raise UserError(f"{path}: no rows")


def missing(path: Path, fits: Callable[[Path], bool] = Path.is_file) -> str:
    """`parcel.csv: no such file in /data; did you mean 'parcels.csv'?`"""
    folder = path.absolute().parent
    where = f"in {folder}{near_files(path, fits)}" if folder.is_dir() else f"and no folder {folder}"
    return f"{path}: no such file {where}"


def near_files(path: Path, fits: Callable[[Path], bool] = is_data_file) -> str:
    """`; did you mean 'parcels.csv'?` where the folder of a missing file has one of nearly its name that fits."""
    folder = path.absolute().parent
    there = [one.name for one in folder.iterdir() if fits(one)] if folder.is_dir() else []
    there.sort(key=lambda name: (name.endswith(path.suffix), name))  # of one name with several endings, the same one
    names = {name.partition(".")[0]: name for name in there}  # without endings, which are alike for all
    near = difflib.get_close_matches(path.name.partition(".")[0], names, n=1)
    return f"; did you mean {names[near[0]]!r}?" if near else ""


def read_each(path: Path, read: Callable[[Row], T | None]) -> list[T]:
    """`read` on every row of a file; what it cannot read is named by file, row and column, its None is left out."""
    items = (read_row(row, f"{path}:{number}", read) for number, row in read_rows(path))
    return [item for item in items if item is not None]


def read_row(row: Row, where: str, read: Callable[[Row], T]) -> T:
    """What `read` makes of a row; whatever it cannot read is a mistake of the user's data at this place."""
    try:
        return read(row)
    except KeyError as error:
        raise UserError(f"{where}: column {error} is missing; there are: {', '.join(row)}") from None
    except (TypeError, ValueError, AttributeError, IndexError) as error:
        raise UserError(f"{where}: {error}") from None
    except RecursionError:
        raise UserError(f"{where}: a column is nested too deeply to be read") from None
    except (OverflowError, MemoryError):
        raise UserError(f"{where}: a column asks for more than this machine can hold") from None


def filled(template: str, row: Row) -> Any:
    """The value of a column, or a template with the values of columns in it."""
    if template in row or "{" not in template:
        value = row[template]
        if value is None:
            raise ValueError(f"column {template!r} is empty; fill it in or leave out the row")
        return value
    try:
        pieces = list(Formatter().parse(template))
    except ValueError as error:
        raise ValueError(f"template {quoted(template)}: {error}; write a brace as {{{{ or }}}}") from None
    return "".join(text + ("" if name is None else str(filled(name, row))) for text, name, _, _ in pieces)


def lines_of(path: Path, longest: int = 0) -> Iterator[tuple[int, str, bool]]:
    """Decoded lines with their number and whether they end properly; of more than `longest` bytes, where given, none.

    A bound is for files whose lines are short: without one a file without line ends is one line, and read whole.
    """
    number = 0
    was_read(path)
    try:
        with _unpacked(path) if path.suffix.lower() == ".gz" else path.open("rb") as file:
            for number, line in enumerate(iter(partial(file.readline, longest + 1 if longest else -1), b""), 1):
                if longest and len(line) > longest:
                    raise UserError(f"{path}:{number}: a line of more than {longest:,} bytes; is it this kind of file?")
                if number == 1:
                    if line[:2] in (b"\xff\xfe", b"\xfe\xff"):
                        raise UserError(f"{path}: is UTF-16; save it as UTF-8")
                    line = line.removeprefix(b"\xef\xbb\xbf")
                yield number, line.decode(), line.endswith(b"\n")
    except UnicodeDecodeError as error:
        bad = f"byte {error.object[error.start]:#04x} at position {error.start + 1}"
        raise UserError(f"{path}:{number}: {bad} is not UTF-8; save the file as UTF-8") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UserError(f"{path}: broken gzip after row {number} ({error}); fetch the file again") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror or error})") from None


def _unpacked(path: Path) -> io.BufferedReader:
    """A packed file, as far as it is plausible: a few packed bytes that become gigabytes are no data."""
    most = max(SMALLEST_BOUND, MOST_UNPACKED * path.stat().st_size)
    return io.BufferedReader(_Bounded(gzip.GzipFile(path), path, most), PIECE)


class _Bounded(io.RawIOBase):
    """Reads on until more was unpacked than allowed."""

    def __init__(self, inner: gzip.GzipFile, path: Path, most: int) -> None:
        self._inner, self._path, self._left = inner, path, most

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self._inner.read(len(buffer))
        self._left -= len(piece)
        if self._left < 0:
            remedy = f"more than {MOST_UNPACKED} times its size; unpack it yourself if you trust it"
            raise UserError(f"{self._path}: its gzip unpacks to {remedy}")
        buffer[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        self._inner.close()
        super().close()


def _jsonl_rows(path: Path) -> Iterator[tuple[int, Any]]:
    for number, text, whole in lines_of(path):
        if not text.strip():
            continue
        where = f"{path}:{number}"
        try:
            row = json.loads(text, parse_int=_integer)
        except RecursionError:
            raise UserError(f"{where}: nested too deeply") from None
        except ValueError as error:
            torn = "" if whole else "the last line is cut off: "
            raise UserError(f"{where}: {torn}not JSON ({json_fault(error)})") from None
        if "NaN" in text or "Infinity" in text or len(text) > MOST_DIGITS:
            _refuse_odd(row, where)
        yield number, row


def json_fault(error: Exception) -> str:
    """What is wrong, by column alone: the line is named already, and Python would count from the start of the row."""
    return f"{error.msg}, column {error.colno}" if isinstance(error, json.JSONDecodeError) else str(error)


def _json_rows(path: Path) -> Iterator[tuple[int, Any]]:
    text = "".join(line for _, line, _ in lines_of(path))
    if not text.strip():
        return
    try:
        rows = json.loads(text, parse_int=_integer)
    except (ValueError, RecursionError) as error:
        line = f":{error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise UserError(f"{path}{line}: not JSON ({json_fault(error)})") from None
    if not isinstance(rows, list):
        raise UserError(f"{path}: a list of rows was expected, not {type(rows).__name__}")
    for number, row in enumerate(rows, 1):
        _refuse_odd(row, f"{path}:{number}")
        yield number, row


def _csv_rows(path: Path) -> Iterator[tuple[int, Any]]:
    csv.field_size_limit(LONGEST_FIELD)
    lines = (line for _, line, _ in lines_of(path))
    header = next(lines, "")
    # Spreadsheets also write ; and tabs, which count where the header has no comma.
    delimiter = "," if "," in header else max(",;\t", key=header.count)
    reader = csv.DictReader(chain([header], lines), delimiter=delimiter, strict=True)
    number = 0
    try:
        named = [name for name in reader.fieldnames or () if name]
        if twice := next((name for name in named if named.count(name) > 1), None):
            raise UserError(f"{path}: two columns are named {twice!r}, and one would be lost; rename one")
        for number, row in enumerate(reader, 1):
            if None in row:
                raise UserError(f"{path}:{number}: more fields than the header has columns")
            missing = [name for name, value in row.items() if value is None]
            if missing:
                raise UserError(f"{path}:{number}: column {missing[0]!r} is missing; the row has too few fields")
            yield number, row
    except csv.Error as error:
        raise UserError(f"{path}:{number + 1}: not CSV ({error})") from None


def _parquet_rows(path: Path) -> Iterator[tuple[int, Any]]:
    was_read(path)
    try:
        yield from _rows_in_batches(path, max(SMALLEST_PARQUET_BOUND, MOST_UNPACKED * path.stat().st_size))
    except (OSError, ValueError, MemoryError) as error:
        raise UserError(f"{path}: not a Parquet file ({one_line(error)})") from None


def _rows_in_batches(path: Path, most: int) -> Iterator[tuple[int, Any]]:
    """Row by row: a text that stands once in the file may fill the memory when it is repeated in every row."""
    file, number, taken = parquet().ParquetFile(path), 0, 0
    # A file's own nested lists and structs come back as they were written; floats are looked at one by one.
    has_floats = any(kind in str(file.schema_arrow) for kind in ("double", "float"))
    for batch in file.iter_batches(batch_size=ROWS_AT_ONCE):
        rows = batch.to_pylist()
        texts = (value for row in rows for value in row.values() if isinstance(value, str | bytes))
        taken += max(batch.nbytes, sum(map(len, texts)))  # a batch holds a repeated text once, its rows as often
        if taken > most:
            raise UserError(f"{path}: its rows take more than {most >> 20} MiB; write it as .jsonl if you trust it")
        for row in rows:
            number += 1
            if has_floats:
                _refuse_odd(row, f"{path}:{number}")
            yield number, row


def parquet() -> Any:
    """pyarrow's Parquet module, or how to get it."""
    try:
        import pyarrow.parquet
    except ImportError:
        raise UserError("Parquet needs `pip install 'rlvrlab[data]'`; .jsonl works without") from None
    return pyarrow.parquet


class _Endless:
    """Stands for an integer with too many digits."""


def _integer(digits: str) -> Any:
    return _Endless() if len(digits) > MOST_DIGITS else int(digits)


def _refuse_odd(row: Any, where: str) -> None:
    """NaN and infinity are no JSON; whoever wrote them lost a value, except where a column holds Python's arguments."""
    for column, value in row.items() if isinstance(row, dict) else [("", row)]:
        waiting = [value]
        while waiting:
            leaf = waiting.pop()
            if isinstance(leaf, dict | list):
                waiting += leaf.values() if isinstance(leaf, dict) else leaf
            elif isinstance(leaf, float) and not math.isfinite(leaf) and column not in ARGUMENTS:
                raise UserError(f"{where}: column {column!r}: NaN or infinity is no value; repair or leave out the row")
            elif isinstance(leaf, _Endless):
                raise UserError(f"{where}: column {column!r}: an integer of more than {MOST_DIGITS} digits")
