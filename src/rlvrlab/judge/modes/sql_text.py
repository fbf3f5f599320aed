"""Just enough SQL grammar to know where a query is ordered: words, quotes, comments and brackets, no third party.

top_level_order("SELECT a FROM t WHERE b IN (SELECT c FROM u ORDER BY c)") -> None
top_level_order("SELECT a FROM t ORDER BY b DESC, 2 LIMIT 3") -> Ordering(keys=("b", "2"), …)
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass

TOKEN = re.compile(
    r"""\s+ | --[^\n]* | /\*.*?(?:\*/|$) | '(?:[^']|'')*(?:'|$) | "(?:[^"]|"")*(?:"|$) | `[^`]*(?:`|$)
      | \[[^\]]*(?:\]|$) | [A-Za-z_][A-Za-z_0-9$]* | [0-9.]+ | .""",
    re.VERBOSE | re.DOTALL,
)
COMPOUND = {"UNION", "INTERSECT", "EXCEPT"}
SUFFIXES = re.compile(r"\s+(?:ASC|DESC|NULLS\s+(?:FIRST|LAST)|COLLATE\s+\w+)\s*$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Word:
    """A token outside all brackets."""

    text: str
    start: int


@dataclass(frozen=True, slots=True)
class Ordering:
    """The top-level ORDER BY of a query."""

    keys: tuple[str, ...]
    """What it sorts by, without ASC and DESC."""
    keyed: str | None
    """The query with its keys as further columns, to see which rows tie; None when they cannot be added."""


def words(query: str) -> list[Word]:
    """The tokens of the outermost level; brackets and what is inside them are left out."""
    depth, outer = 0, []
    for match in TOKEN.finditer(query):
        text = match.group()
        if text == "(":
            depth += 1
        elif text == ")":
            depth -= 1
        elif depth == 0 and not text.isspace() and not text.startswith(("--", "/*")):
            outer.append(Word(text, match.start()))
    return outer


def top_level_order(query: str) -> Ordering | None:
    """The ordering of the whole result; None when any order is as good."""
    outer = words(query)
    upper = [word.text.upper() for word in outer]
    starts = [i for i in range(len(upper) - 1) if upper[i : i + 2] == ["ORDER", "BY"]]
    if not starts:
        return None
    begin = outer[starts[-1] + 1].start + 2
    ends = [
        word.start for word, name in zip(outer, upper, strict=True) if name in ("LIMIT", ";") and word.start > begin
    ]
    clause = query[begin : min(ends, default=len(query))]
    edges = [-1, *(word.start for word in words(clause) if word.text == ","), len(clause)]
    keys = tuple(_bare(clause[left + 1 : right].strip()) for left, right in itertools.pairwise(edges))
    if {*COMPOUND, "DISTINCT", "WITH"} & set(upper) or upper[:1] != ["SELECT"] or "FROM" not in upper:
        return Ordering(keys, None)
    at = outer[upper.index("FROM")].start
    extra = ", ".join(f"({key})" for key in keys if not key.isdigit())
    return Ordering(keys, f"{query[:at]}, {extra} {query[at:]}" if extra else query)


def _bare(key: str) -> str:
    while (shorter := SUFFIXES.sub("", key)) != key:
        key = shorter
    return key
