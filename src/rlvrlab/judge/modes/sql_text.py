"""Just enough SQL grammar to know how a query is ordered: words, quotes, comments and brackets, no third party.

ending_of("SELECT a FROM t WHERE b IN (SELECT c FROM u ORDER BY c)", 9).keys -> ()
ending_of("SELECT a FROM t ORDER BY b DESC, 2 LIMIT 3", 9).keys -> ("b", "2")
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from rlvrlab.judge.jail.limits import LONGEST_SQL

TOKEN = re.compile(
    r"""\s+ | --[^\n]* | /\*.*?(?:\*/|$) | '(?:[^']|'')*(?:'|$) | "(?:[^"]|"")*(?:"|$) | `[^`]*(?:`|$)
      | \[[^\]]*(?:\]|$) | [A-Za-z_][A-Za-z_0-9$]* | [0-9.]+ | .""",
    re.VERBOSE | re.DOTALL,
)
COMPOUND = {"UNION", "INTERSECT", "EXCEPT"}
MOST_DIGITS = 9
"""Of a number that counts rows or columns."""
PLACE = re.compile(r"[\s(+]*(?:0x([0-9a-f]{1,7})|([0-9]{1,9}))[\s)]*", re.IGNORECASE | re.ASCII)
"""What SQLite takes for the number of a column to sort by: 2, (2), +2, 0x2."""
COLUMN = re.compile(r"""(?:[\w$]+|"[^"]*"|`[^`]*`|\[[^\]]*\])(?:\s*\.\s*(?:[\w$]+|"[^"]*"|`[^`]*`|\[[^\]]*\])){0,2}""")
"""A column by itself, which has its own name; any other expression has none that a key could mean."""
_BETWEEN_OPERANDS = """
and or not is in like glob regexp match escape between collate over from distinct all zone
"""
BETWEEN_OPERANDS = frozenset(_BETWEEN_OPERANDS.split())
"""Words behind which an expression goes on, so that the next one is no name for it."""
IDENTIFIER, OPERAND = re.compile(r"[A-Za-z_\"`\[']"), re.compile(r"[A-Za-z0-9_$\"`'\]]\Z")
"""How a name begins, and how a word ends that may be all of an expression."""
ENDS = frozenset(("END", "NULL", "ISNULL", "NOTNULL"))
"""Last words of expressions, which are no names either."""


class Word(NamedTuple):
    """A token outside all brackets."""

    text: str
    start: int


class Place(NamedTuple):
    """A column of the result that is sorted by, and the collation that is named for it: "NOCASE", or nothing."""

    column: int
    collation: str = ""


@dataclass(frozen=True, slots=True)
class Item:
    """A selected column as it is written, its name, and what is computed there."""

    text: str
    alias: str
    expression: str

    @classmethod
    def read(cls, text: str) -> Item:
        """The name stands after AS or behind the expression; a column has its own, and other expressions have none."""
        parts = words(text)
        named = [word for word in parts if word.text.upper() == "AS"]
        begins = named[-1].start if named else parts[-1].start if _is_named(text, parts) else len(text)
        is_one = begins < len(text) or text == "*" or COLUMN.fullmatch(text)
        return cls(text, _name(parts[-1].text) if parts and is_one else "", text[:begins].strip())

    @property
    def is_star(self) -> bool:
        """Does it stand for any number of columns?"""
        return self.text == "*" or self.text.endswith(".*")


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
    columns: tuple[Place, ...] | None = None
    """Places of the keys among the columns of the result; None when a key is not among them."""
    distinct: bool = False
    """Are equal rows one row? Then a rank that differs within them would make several of it."""


def words(query: str) -> list[Word]:
    """The tokens of the outermost level; brackets and what is inside them are left out."""
    depth, start, outer = 0, 0, []
    for text in TOKEN.findall(query):
        if text == "(":
            depth += 1
        elif text == ")":
            depth -= 1
        elif depth == 0 and not text.isspace() and not text.startswith(("--", "/*")):
            outer.append(Word(text, start))
        start += len(text)
    return outer


@lru_cache(maxsize=4096)
def ending_of(query: str, most_rows: int) -> Ending:
    """How the query ends; `most_rows` bounds the rows of `everything`. A ValueError where it is too long to be run."""
    if len(query) > LONGEST_SQL:
        raise ValueError(f"a query of {len(query):,} characters; at most {LONGEST_SQL:,}")
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
    keys = tuple(_bare(key) for key in _listed(_uncommented(clause)))
    items = [Item.read(text) for text in _items(outer, upper, query)]
    columns = _columns(keys, items)
    renamed = {item.alias: item.expression for item in reversed(items) if item.expression != item.text}
    wanted = [_written_out(key, items, renamed) for key in keys]
    if not COMPOUND & set(upper) and (at := _from(outer, upper)) is not None and None not in wanted:
        rank = f"\n, dense_rank() OVER (ORDER BY {', '.join(filter(None, wanted))}\n) "
        ranked = f"{body[:at]}{rank}{body[at:]}\nORDER BY {clause}\n{most}"
        return Ending(keys, limit is not None, offset, ranked, True, columns, _is_distinct(upper))
    return Ending(keys, limit is not None, offset, f"{body}\nORDER BY {clause}\n{most}", False, columns)


def _offset(limit: list[str]) -> int | None:
    """Rows left out by `LIMIT 5 OFFSET 2` or `LIMIT 2, 5`."""
    if "OFFSET" in limit:
        number = limit[limit.index("OFFSET") + 1 :][:1]
    elif "," in limit:
        number = limit[limit.index(",") - 1 :][:1]
    else:
        return 0
    return _count(number[0]) if number else None


def _count(text: str) -> int | None:
    """The value of a plain number; None for anything else, and for one that is too long to count anything."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS else None


def _main_select(upper: list[str]) -> int:
    return upper.index("SELECT") if "SELECT" in upper else len(upper)


def _is_distinct(upper: list[str]) -> bool:
    """DISTINCT, but not DuckDB's DISTINCT ON, which may return equal rows."""
    begin = _main_select(upper) + 1
    return upper[begin : begin + 1] == ["DISTINCT"] and upper[begin + 1 : begin + 2] != ["ON"]


def _from(outer: list[Word], upper: list[str]) -> int | None:
    """Where the FROM of a query that is no UNION begins; `a IS DISTINCT FROM b` is none."""
    found = (
        outer[i].start
        for i in range(_main_select(upper), len(upper))
        if upper[i] == "FROM" and not (upper[i - 1] == "DISTINCT" and upper[i - 2] in ("IS", "NOT"))
    )
    return next(found, None)


def _items(outer: list[Word], upper: list[str], query: str) -> list[str]:
    """The selected columns as they are written."""
    begin = _main_select(upper) + 1
    begin += upper[begin : begin + 1] in (["DISTINCT"], ["ALL"])
    end = _from(outer, upper)
    if end is None or begin >= len(outer):
        return []
    # From the end of the word before, since a first column that is bracketed is no word.
    return _listed(query[outer[begin - 1].start + len(outer[begin - 1].text) : end])


def _listed(text: str) -> list[str]:
    """The parts between commas."""
    edges = [-1, *(word.start for word in words(text) if word.text == ","), len(text)]
    return [text[left + 1 : right].strip() for left, right in itertools.pairwise(edges)]


def _uncommented(text: str) -> str:
    return "".join(" " if token.startswith(("--", "/*")) else token for token in TOKEN.findall(text)).strip()


def _name(text: str) -> str:
    """What a key or a column is called, without quotes and in small letters."""
    return text.strip("\"`[]'").lower()


def _is_named(text: str, parts: Sequence[Word]) -> bool:
    """Is the last word a name for the expression before it, without AS? `count(*) total`, but not `t.name`, `-a`."""
    if not parts or not IDENTIFIER.match(parts[-1].text) or parts[-1].text.upper() in ENDS:
        return False
    before = text[: parts[-1].start].rstrip()
    if not before or text[parts[-1].start + len(parts[-1].text) :].strip():
        return False
    previous = parts[-2].text if len(parts) > 1 else ""
    return before.endswith(")") or (OPERAND.search(previous) is not None and previous.lower() not in BETWEEN_OPERANDS)


def _columns(keys: Sequence[str], items: Sequence[Item]) -> tuple[Place, ...] | None:
    """The places of the keys, new names before those of columns; behind a star only a number says which it is."""
    before_a_star = list(itertools.takewhile(lambda one: not one.is_star, items))
    named: dict[str, int] = {}
    for i, item in enumerate(before_a_star):
        if item.expression != item.text:
            named.setdefault(item.alias, i)
    for i, item in enumerate(before_a_star):
        named.setdefault(item.text.lower(), i)
        named.setdefault(item.alias, i)
    places = []
    for key in keys:
        key, collation = _collated(key)
        number = _place(key)
        place = number - 1 if number else named.get(_name(key))
        if place is None:
            return None
        places.append(Place(place, _name(collation).upper()))
    return tuple(places)


def _place(key: str) -> int | None:
    """The number of the column that a key stands for; None where it is no number."""
    found = PLACE.fullmatch(key)
    if found is None:
        return None
    return int(found[1], 16) if found[1] else int(found[2])


def _collated(key: str) -> tuple[str, str]:
    """A key without the brackets around it and its collation, and the name of that: `(a) COLLATE NOCASE`."""
    collation = ""
    while True:
        key = key.strip()
        found = words(key)
        if not found and key.startswith("(") and key.endswith(")"):
            key = key[1:-1]
        elif len(found) > 1 and found[-2].text.upper() == "COLLATE" and key.endswith(found[-1].text):
            collation = collation or found[-1].text
            key = key[: found[-2].start]
        else:
            return key, collation


def _written_out(key: str, items: Sequence[Item], renamed: Mapping[str, str]) -> str | None:
    """A key as it may stand in a window; None where it cannot.

    There the number or the new name of a column means nothing: SQLite takes both for a constant, the name where it is
    in double quotes, and all rows would tie. So it does where the new name is that of a column, too.
    """
    core, collation = _collated(key)
    number = _place(core)
    meant = renamed.get(_name(core))
    if number is not None:
        known = 0 < number <= len(items) and not any(item.is_star for item in items[:number])
        meant = items[number - 1].expression if known else None
    if meant is not None:
        return f"({meant}) COLLATE {collation}" if collation else meant
    quoted = {_name(token) for token in TOKEN.findall(key) if token.startswith('"')}
    return None if number is not None or quoted & set(renamed) else key


def _bare(key: str) -> str:
    """Without ASC, DESC and NULLS FIRST or LAST behind it."""
    found, end = words(key), len(key)
    while found and found[-1].start and key[found[-1].start - 1].isspace():
        last = found.pop()
        if last.text.upper() in ("FIRST", "LAST") and found and found[-1].text.upper() == "NULLS":
            last = found.pop()
        elif last.text.upper() not in ("ASC", "DESC"):
            break
        end = last.start
    return key[:end].rstrip() if end < len(key) else key
