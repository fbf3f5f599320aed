"""Read what a folder holds without ever stopping: what is absent, torn or strange is named and left out.

Lines are decoded quickly: twice as fast as by the standard library, and faster still without the texts. A run's answers
are most of its record. The page shows some thousands of them; a table of all of them needs what was judged, not what
was said, so `judged` skips prompt, completion and tokens where a line is laid out as it was written.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from pydantic_core import from_json

from rlvrlab import plain_files
from rlvrlab.errors import LabError, cut
from rlvrlab.plain_files import LARGEST, has_long_digits, parsed, refuse_depth
from rlvrlab.record.files import refuse_schema

Section = dict[str, Any]
Fact = dict[str, Any]
STRANGE = (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, RuntimeError)
"""What code raises when it meets contents it did not expect: a record by another version or another program."""
NEEDED = {"skill", "correct", "reward", "error"}
TEXTS, TOKENS = b', "prompt": ', b', "tokens": ['


class Line(NamedTuple):
    """One line of a JSONL file."""

    number: int
    """Line number, counted from 1."""
    row: dict[str, Any]


class Folder:
    """A folder being read; `missing` collects what a complete record would have."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.missing: list[dict[str, str]] = []

    def refuse_version(self, name: str, facts: dict[str, Any], known: int) -> None:
        """Refuse what another version wrote; a file whose version cannot be read is damaged, and that is noted."""
        if isinstance(facts.get("schema"), int):
            refuse_schema(facts, known, self.root / name)
        elif facts:
            self.miss(name, f"its schema cannot be read; this version reads {known}")

    def miss(self, what: str, why: str) -> None:
        """Note that something is absent or unreadable; the same note is kept only once."""
        entry = {"what": what, "why": why}
        if entry not in self.missing:
            self.missing.append(entry)

    def inside(self, name: Any) -> Path | None:
        """The folder of that name, links followed; None where it lies elsewhere, or no such folder can be had."""
        with suppress(OSError):  # a folder on the way may not be entered
            path = plain_files.below(self.root, name)
            return path if path is not None and path.is_dir() else None
        return None

    def table(self, name: str, why: str = "not there") -> dict[str, Any]:
        """A JSON object; empty where there is none."""
        value = self.value(name, why)
        if value is not None and not isinstance(value, dict):
            self.miss(name, "holds no table of facts")
        return value if isinstance(value, dict) else {}

    def value(self, name: str, why: str = "not there") -> Any:
        """Any JSON file; `why` explains its absence, and an empty `why` means that it may be absent."""
        try:
            return decoded(plain_files.read_bytes(self.root / name))
        except (FileNotFoundError, NotADirectoryError):
            if why:
                self.miss(name, why)
        except (OSError, ValueError, RecursionError) as error:
            self.miss(name, f"cannot be read ({short(error)})")
        return None

    def lines(self, name: str, why: str = "not there") -> list[Line]:
        """Every line that holds a JSON object; torn and damaged ones are noted as missing."""
        try:
            data = plain_files.read_bytes(self.root / name)
        except (FileNotFoundError, NotADirectoryError):
            if why:
                self.miss(name, why)
            return []
        except OSError as error:
            self.miss(name, f"cannot be read ({short(error)})")
            return []
        rows, lines = [], data.split(b"\n")
        for number, line in enumerate(lines, 1):
            if not line.strip(b" \r\x00"):
                continue
            try:
                row = decoded(line)
            except (ValueError, RecursionError):
                torn = number == len(lines)
                why = "is torn: written just now, or when a process was killed" if torn else "is damaged"
                self.miss(f"{name}:{number}", f"the line {why}; left out")
                continue
            if isinstance(row, dict):
                rows.append(Line(number, row))
            else:
                self.miss(f"{name}:{number}", "the line holds no table; left out")
        return rows

    def attempt(self, what: str, make: Callable[[], Section | None]) -> list[Section]:
        """The section in a list, or an empty list and a note: one strange file must not cost the whole page."""
        try:
            section = make()
        except (LabError, OSError, *STRANGE) as error:
            self.miss(what, f"could not be shown: unexpected contents ({short(error)})")
            return []
        return [section] if section is not None else []


def document(folder: Folder, kind: str, title: str, sections: list[Section], **more: str) -> dict[str, Any]:
    """A gathered document without its path and time; `more` sets subtitle, status and the tone of the status."""
    told = {"subtitle": "", "status": "", **more}
    return {"kind": kind, "title": title, **told, "missing": folder.missing, "sections": sections}


def section(name: str, view: str, title: str, data: Any, source: str = "", note: str = "") -> Section:
    """One section of a document, as described in gather/__init__.py."""
    return {"id": name, "view": view, "title": title, "note": note, "source": source, "data": data}


def place(file: str, line: int | None = None, step: Any = None, key: str | None = None) -> Fact:
    """Where a number comes from, as the page links it."""
    facts = {"file": file, "line": line, "step": step, "key": key}
    return {name: value for name, value in facts.items() if value is not None}


def number(value: Any) -> float | None:
    """`value` as a float where it is a number that can be shown, else None."""
    if type(value) is float:  # nearly always, and a run has many
        return value if -LARGEST <= value <= LARGEST else None
    return plain_files.number(value)


def rounded(value: Any, digits: int = 5) -> float | None:
    """`value` with so many significant digits: enough for a picture, and the file stays small."""
    exact = number(value)
    return None if exact is None else float(f"{exact:.{digits}g}")


def as_table(value: Any) -> dict[str, Any]:
    """`value` where it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """`value` where it is a JSON list, else an empty one."""
    return value if isinstance(value, list) else []


def words(value: Any, longest: int = 400) -> str:
    """Anything as text of at most `longest` characters."""
    return cut(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str), longest)


def short(error: Exception) -> str:
    """What an error says, for a line among others: it may quote all of a damaged file."""
    return cut(" ".join(f"{type(error).__name__}: {error}".split()), 120)


def decoded(line: bytes) -> Any:
    """Any JSON within bounds; the standard library has the last word on what is valid (half a surrogate pair is)."""
    if has_long_digits(line):
        return parsed(line)
    try:
        value = from_json(line)
    except ValueError:
        return parsed(line)
    refuse_depth(line, value)
    return value


def judged(line: bytes) -> Any:
    """A stored answer with the number of its tokens in place of them, and perhaps without its texts.

    {head…, "prompt": …, "tokens": [1, 2], tail…}  ->  {head…, tail…, "tokens": 2}

    Inside a JSON text every quotation mark is escaped, so the two markers can only be keys. If head and tail together
    are no table, or lack a needed key, the whole line is read.
    """
    texts, tokens = line.find(TEXTS), line.find(TOKENS)
    end = line.find(b"]", tokens)
    if 0 < texts < tokens < end:
        try:
            row = decoded(line[:texts] + line[end + 1 :])
        except ValueError:
            row = {}
        if row.keys() >= NEEDED and "tokens" not in row:
            begin = tokens + len(TOKENS)
            row["tokens"] = line.count(b",", begin, end) + (end > begin)
            return row
    row = decoded(line)
    if isinstance(row, dict) and isinstance(row.get("tokens"), list):
        row["tokens"] = len(row["tokens"])
    return row
