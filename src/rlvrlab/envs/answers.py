"""What data-set environments share: the rows of a file, and the exact value of an amount.

    {"question": …, "answer": "16-3-4=9 …\\n#### $1,080"}    amount("$1,080") -> 1080
Where an answer stands in a completion: judge/extract.py.
"""

from __future__ import annotations

import gzip
import importlib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

from rlvrlab.errors import UserError
from rlvrlab.judge.modes.expressions import number

T = TypeVar("T")
Row = dict[str, Any]
KEPT = 200
"""Characters of an answer kept in a verdict."""
CURRENCY = ("\\$", "$", "€", "£", "¥")
UNIT = re.compile(r"([^a-zA-Z%]*[0-9.])(?: ([a-zA-Z]{2,20})| ?(\\?%))", re.ASCII)
NO_UNITS = re.compile(
    "or|and|not|to|plus|minus|times|over|point|half|quarter|dozen|score|hundred|thousand|million|billion|trillion|"
    "maybe|about|pi|root|squared|cubed|halves|thirds|quarters|tenths|hundredths|mod|factorial",
    re.IGNORECASE,
)
"""Words after a number that change its value, or hedge."""


def in_turn(streams: Sequence[Iterator[T]], size: int) -> list[T]:
    """`size` items, one of each stream in turn; fewer when a stream runs dry."""
    found: list[T] = []
    while len(found) < size:
        item = next(streams[len(found) % len(streams)], None)
        if item is None:
            break
        found.append(item)
    return found


def squeezed(text: str) -> str:
    """A text as duplicates are looked for: one case, single spaces."""
    return " ".join(text.casefold().split())


def amount(text: str) -> Fraction | None:
    """The exact value of a number with a currency sign, thousands separators or one plain unit; None otherwise."""
    if len(text) > KEPT:
        return None
    sign = "-" if text.startswith(("-", "−")) else ""
    bare = text[len(sign) :]
    for symbol in CURRENCY:
        bare = bare.removeprefix(symbol)
    if match := UNIT.fullmatch(bare):
        if NO_UNITS.fullmatch(match.group(2) or ""):
            return None
        bare = match.group(1)
    if bare.startswith(("-", "+", "−", " ")) and bare != text:
        return None
    return number(sign + bare)


def read_rows(path: Path) -> list[Row]:
    """The rows of a .jsonl, .json or .parquet file, the first two also with .gz; a malformed one is named."""
    if not path.is_file():
        raise UserError(f"no data file {path}; give a .jsonl, .json (also .gz) or .parquet file")
    if path.suffix == ".parquet":
        return _parquet_rows(path)
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        text = content.decode("utf-8-sig")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read: {error}") from None
    if ".jsonl" not in path.suffixes:
        rows = _decoded(text, f"{path}")
        if not isinstance(rows, list):
            raise UserError(f"{path}: a list of rows was expected")
    else:
        rows = [_decoded(line, f"{path}: row {i}") for i, line in enumerate(text.split("\n"), 1) if line.strip()]
    for index, row in enumerate(rows, 1):
        if not isinstance(row, dict):
            raise UserError(f"{path}: row {index}: an object was expected, not {type(row).__name__}")
    return rows


def read_each(path: Path, read: Callable[[Row], T | None]) -> list[T]:
    """`read` on every row of a file; what it cannot read is named by file, row and column, its None is left out."""
    found = []
    for index, row in enumerate(read_rows(path), 1):
        try:
            if (item := read(row)) is not None:
                found.append(item)
        except KeyError as error:
            raise UserError(f"{path}: row {index}: column {error} is missing") from None
        except (TypeError, ValueError, AttributeError, IndexError) as error:
            raise UserError(f"{path}: row {index}: {error}") from None
    return found


def _decoded(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{where}: not JSON: {error}") from None


def _parquet_rows(path: Path) -> list[Row]:
    try:
        parquet = importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise UserError(f"{path}: reading Parquet needs pyarrow: pip install pyarrow") from None
    try:
        rows: list[Row] = parquet.read_table(path).to_pylist()
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: cannot be read: {error}") from None
    return rows
