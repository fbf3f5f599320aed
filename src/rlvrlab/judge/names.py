"""Names that a program can give to what it defines."""

from __future__ import annotations

from keyword import iskeyword
from unicodedata import normalize


def as_python_reads(name: str) -> str:
    """Python takes letters of one kind for those of another: `ｆ` is `f`."""
    return name if name.isascii() else normalize("NFKC", name)


def is_entry_point(name: str) -> bool:
    """Can a program define it? `solve`, or `Solution.solve` for a method."""
    parts = as_python_reads(name).split(".")
    return len(parts) <= 2 and all(part.isidentifier() and not iskeyword(part) for part in parts)
