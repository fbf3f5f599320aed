"""Read what a folder holds without ever stopping: what is absent, torn or strange is named and left out."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from rlvrlab.report.stored_lines import decoded

Section = dict[str, Any]
Fact = dict[str, Any]
STRANGE = (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError)
"""What unexpected contents raise: a record by another version or by another hand."""


class Line(NamedTuple):
    """One line of a JSONL file."""

    number: int
    """From 1."""
    row: dict[str, Any]


class Folder:
    """A folder being read; `missing` collects what a complete record would have."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.missing: list[dict[str, str]] = []

    def miss(self, what: str, why: str) -> None:
        """Say that something is not there, once."""
        entry = {"what": what, "why": why}
        if entry not in self.missing:
            self.missing.append(entry)

    def table(self, name: str, why: str = "not there") -> dict[str, Any]:
        """A JSON object; empty where there is none."""
        value = self.value(name, why)
        if value is not None and not isinstance(value, dict):
            self.miss(name, "holds no table of facts")
        return value if isinstance(value, dict) else {}

    def value(self, name: str, why: str = "not there") -> Any:
        """Any JSON file; `why` explains its absence, and an empty `why` means that it may be absent."""
        try:
            return decoded((self.root / name).read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            if why:
                self.miss(name, why)
        except (OSError, ValueError, RecursionError) as error:
            self.miss(name, f"cannot be read ({_short(error)})")
        return None

    def lines(self, name: str, why: str = "not there") -> list[Line]:
        """Every whole line that holds a table."""
        try:
            data = (self.root / name).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            if why:
                self.miss(name, why)
            return []
        except OSError as error:
            self.miss(name, f"cannot be read ({_short(error)})")
            return []
        return self._parsed(name, data.split(b"\n"))

    def _parsed(self, name: str, lines: list[bytes]) -> list[Line]:
        found = []
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
                found.append(Line(number, row))
            else:
                self.miss(f"{name}:{number}", "the line holds no table; left out")
        return found

    def attempt(self, what: str, make: Callable[[], Section | None]) -> list[Section]:
        """A section, or none with a word about it: one strange file must not cost the page."""
        try:
            section = make()
        except STRANGE as error:
            self.miss(what, f"could not be shown: unexpected contents ({_short(error)})")
            return []
        return [section] if section is not None else []


def document(folder: Folder, kind: str, title: str, sections: list[Section], **more: str) -> dict[str, Any]:
    """A whole page's; `more` is its subtitle, its status and the tone of that."""
    told = {"subtitle": "", "status": "", **more}
    return {"kind": kind, "title": title, **told, "missing": folder.missing, "sections": sections}


def section(name: str, view: str, title: str, data: Any, source: str = "", note: str = "") -> Section:
    """One part of the page; see the package's docstring."""
    return {"id": name, "view": view, "title": title, "note": note, "source": source, "data": data}


def place(file: str, line: int | None = None, step: Any = None, key: str | None = None) -> Fact:
    """Where a number comes from."""
    facts = {"file": file, "line": line, "step": step, "key": key}
    return {name: value for name, value in facts.items() if value is not None}


def number(value: Any) -> float | None:
    """A finite number, or nothing."""
    if type(value) is float:  # nearly always, and a run has many
        return value if math.isfinite(value) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def rounded(value: Any, digits: int = 5) -> float | None:
    """With so many significant digits: enough for a picture, and the file stays small."""
    found = number(value)
    return None if found is None else float(f"{found:.{digits}g}")


def as_table(value: Any) -> dict[str, Any]:
    """A JSON object, or an empty one."""
    return value if isinstance(value, dict) else {}


def words(value: Any, longest: int = 400) -> str:
    """Anything as short text."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _short(error: Exception) -> str:
    name = type(error).__name__
    return words(f"{name}: {error}", 120)
