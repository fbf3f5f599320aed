"""Just enough SQL grammar to know how a query is ordered: words, quotes, comments and brackets, no third party.

ending_of("SELECT a FROM t WHERE b IN (SELECT c FROM u ORDER BY c)", 9).keys -> ()
ending_of("SELECT a FROM t ORDER BY b DESC, 2 LIMIT 3", 9).keys -> ("b", "2")
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

TOKEN = re.compile(
    r"""\s+ | --[^\n]* | /\*.*?(?:\*/|$) | '(?:[^']|'')*(?:'|$) | "(?:[^"]|"")*(?:"|$) | `[^`]*(?:`|$)
      | \[[^\]]*(?:\]|$) | [A-Za-z_][A-Za-z_0-9$]* | [0-9.]+ | .""",
    re.VERBOSE | re.DOTALL,
)
COMPOUND = {"UNION", "INTERSECT", "EXCEPT"}
SUFFIXES = re.compile(r"\s+(?:ASC|DESC|NULLS\s+(?:FIRST|LAST))\s*$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Word:
    """A token outside all brackets."""

    text: str
    start: int


@dataclass(frozen=True, slots=True)
class Ending:
    """How the outermost level of a query ends: what it sorts by, and how much of that it keeps."""

    keys: tuple[str, ...] = ()
    """What it sorts by, without ASC, DESC and NULLS; empty when any order is as good."""
    limited: bool = False
    offset: int | None = 0
    """How many rows it leaves out at the beginning; None when that is no plain number."""
    everything: str | None = None
    """The query without its LIMIT, with a last column that is equal where rows tie if `ranks`; None if not needed."""
    ranks: bool = False
    columns: tuple[int, ...] | None = None
    """Places of the keys among the columns of the result; None when a key is not among them."""


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


@lru_cache(maxsize=4096)
def ending_of(query: str, most_rows: int) -> Ending:
    """How the query ends; `most_rows` bounds the rows of `everything`."""
    outer = words(query)
    upper = [word.text.upper() for word in outer]
    end = outer[upper.index(";")].start if ";" in upper else len(query)
    starts = [i for i in range(len(upper) - 1) if upper[i : i + 2] == ["ORDER", "BY"]]
    after = starts[-1] if starts else 0
    limit = next((i for i in range(after, len(upper)) if upper[i] in ("LIMIT", "OFFSET", "FETCH")), None)
    cut = end if limit is None else outer[limit].start
    offset = 0 if limit is None else _offset(upper[limit:])
    most = f"LIMIT {most_rows}"
    if not starts:
        return Ending((), True, offset, f"{query[:cut]}\n{most}") if limit is not None else Ending()
    body = query[: outer[starts[-1]].start]
    clause = query[outer[starts[-1] + 1].start + 2 : cut]
    keys = tuple(_bare(key) for key in _listed(clause))
    items = _items(outer, upper, query)
    columns = _columns(keys, items)
    if not COMPOUND & set(upper) and (at := _from(outer, upper)) is not None:
        wanted = ", ".join(_written_out(key, items) for key in keys)
        rank = f"\n, dense_rank() OVER (ORDER BY {wanted}\n) "
        ranked = f"{body[:at]}{rank}{body[at:]}\nORDER BY {clause}\n{most}"
        return Ending(keys, limit is not None, offset, ranked, True, columns)
    return Ending(keys, limit is not None, offset, f"{body}\nORDER BY {clause}\n{most}", False, columns)


def _offset(limit: list[str]) -> int | None:
    """Rows left out by `LIMIT 5 OFFSET 2` or `LIMIT 2, 5`."""
    if "OFFSET" in limit:
        number = limit[limit.index("OFFSET") + 1 :][:1]
    elif "," in limit:
        number = limit[limit.index(",") - 1 :][:1]
    else:
        return 0
    return int(number[0]) if number and number[0].isdigit() else None


def _main_select(upper: list[str]) -> int:
    return upper.index("SELECT") if "SELECT" in upper else len(upper)


def _from(outer: list[Word], upper: list[str]) -> int | None:
    """Where the FROM of a query that is no UNION begins; `a IS DISTINCT FROM b` is none."""
    found = (
        outer[i].start
        for i in range(_main_select(upper), len(upper))
        if upper[i] == "FROM" and not (upper[i - 1] == "DISTINCT" and upper[i - 2] in ("IS", "NOT"))
    )
    return next(found, None)


def _items(outer: list[Word], upper: list[str], query: str) -> list[str]:
    """The selected columns as they are written; none where a star makes their number unknown."""
    begin = _main_select(upper) + 1
    begin += upper[begin : begin + 1] in (["DISTINCT"], ["ALL"])
    end = _from(outer, upper)
    if end is None or begin >= len(outer):
        return []
    # From the end of the word before, since a first column that is bracketed is no word.
    items = _listed(query[outer[begin - 1].start + len(outer[begin - 1].text) : end])
    return [] if any(item == "*" or item.endswith(".*") for item in items) else items


def _listed(text: str) -> list[str]:
    """The parts between commas."""
    edges = [-1, *(word.start for word in words(text) if word.text == ","), len(text)]
    return [text[left + 1 : right].strip() for left, right in itertools.pairwise(edges)]


def _alias(item: str) -> str:
    """The name of a selected column: after AS, or the last part of what is written."""
    parts = words(item)
    return parts[-1].text.strip("\"`[]'").lower() if parts else ""


def _expression(item: str) -> str:
    named = [word for word in words(item) if word.text.upper() == "AS"]
    return item[: named[-1].start].strip() if named else item


def _columns(keys: Sequence[str], items: Sequence[str]) -> tuple[int, ...] | None:
    places = []
    for key in keys:
        if key.isdigit() and int(key) > 0:
            places.append(int(key) - 1)
            continue
        bare = key.strip("\"`[]'").lower()
        named = (i for i, item in enumerate(items) if bare == item.lower() or bare == _alias(item))
        if (place := next(named, None)) is None:
            return None
        places.append(place)
    return tuple(places)


def _written_out(key: str, items: Sequence[str]) -> str:
    """A key as it may stand in a window: there, the number or the new name of a column means nothing."""
    if key.isdigit():
        return _expression(items[int(key) - 1]) if 0 < int(key) <= len(items) else key
    bare = key.strip("\"`[]'").lower()
    renamed = (item for item in items if bare in item.lower() and _alias(item) == bare and _expression(item) != item)
    return _expression(next(renamed, key))


def _bare(key: str) -> str:
    while (shorter := SUFFIXES.sub("", key)) != key:
        key = shorter
    return key
