"""Small mistakes in a query: what the twins of a database must tell apart from it.

    SELECT DISTINCT a FROM t WHERE b > 3 LIMIT 1
    -> no DISTINCT; b >= 3, b < 3; b > 2, b > 4; no condition on b; no LIMIT, LIMIT 2

One change at a time, made on the words of the query without a grammar: some of them cannot be run, and some mean the
same as the query.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from rlvrlab.judge.modes.sql_text import TOKEN

COMPARISONS = {"<": ("<=", ">"), "<=": ("<", ">="), ">": (">=", "<"), ">=": (">", "<="), "=": ("!=", ">="),
               "!=": ("=",), "<>": ("=",)}  # fmt: skip
EXCHANGED = {
    "MAX": ("MIN",), "MIN": ("MAX",), "SUM": ("AVG",), "AVG": ("SUM", "MAX"), "COUNT": ("MAX",), "DESC": ("ASC",),
    "ASC": ("DESC",), "AND": ("OR",), "OR": ("AND",), "INTERSECT": ("UNION",), "EXCEPT": ("UNION",), "ALL": ("",),
}  # fmt: skip
JOINS = {"LEFT", "INNER", "CROSS", "NATURAL", "OUTER", "RIGHT", "FULL"}
LONGEST = 4000
"""A query with more characters has no mutants."""
MOST = 60
NO_LIMIT = "no LIMIT"


class Mutant(NamedTuple):
    """A query with one change, and the change in words."""

    change: str
    query: str


def tokens(query: str) -> list[str]:
    """The words, signs, texts and numbers of a query, brackets included; signs of two parts are one."""
    found: list[str] = []
    touching = False
    for match in TOKEN.finditer(query):
        text = match.group()
        if text.isspace() or text.startswith(("--", "/*")):
            touching = False
            continue
        if touching and found[-1] in ("<", ">", "!", "|", "=") and text in ("=", ">", "|"):
            found[-1] += text
        else:
            found.append(text)
        touching = True
    return found


def mutants(query: str) -> list[Mutant]:
    """The mistakes, in order of their place in the query, each another text."""
    words = tokens(query[:LONGEST] if len(query) <= LONGEST else "")
    while words and words[-1] == ";":
        words.pop()
    seen, found = {_joined(words)}, []
    for change, changed in _changes(words):
        text = _joined(changed)
        if text not in seen:
            seen.add(text)
            found.append(Mutant(change, text))
    return found[:MOST]


def _joined(words: list[str]) -> str:
    return " ".join(word for word in words if word).replace(" . ", ".")


def _changes(words: list[str]) -> Iterator[tuple[str, list[str]]]:
    upper = [word.upper() for word in words]
    for i, name in enumerate(upper):
        for change, new in _exchanges(upper, i):
            yield change, [*words[:i], *new, *words[i + 1 :]]
        for change, left, right, new in _rewrites(upper, words, i):
            yield change, [*words[:left], *new, *words[right:]]
        if name == "LIMIT":
            yield NO_LIMIT, words[:i] + words[_closing(words, i) :]
    if "LIMIT" not in upper:
        yield "LIMIT 1", [*words, "LIMIT", "1"]


def _exchanges(upper: list[str], i: int) -> Iterator[tuple[str, list[str]]]:
    """Other words for the one at this place."""
    name, before, after = upper[i], upper[i - 1] if i else "", (upper[i + 1 :] or [""])[0]
    if name == "DISTINCT" and after != "FROM":
        yield "no DISTINCT", []
    if name == "SELECT" and after not in ("DISTINCT", "ALL"):
        yield "DISTINCT", ["SELECT", "DISTINCT"]
    if name in COMPARISONS:
        yield from ((f"{other} for {name}", [other]) for other in COMPARISONS[name])
    if name in EXCHANGED and (name not in ("MAX", "MIN", "SUM", "AVG", "COUNT") or after == "("):
        yield from ((f"{other or 'nothing'} for {name}", [other]) for other in EXCHANGED[name])
    if name == "JOIN" and before not in JOINS:
        yield "LEFT JOIN", ["LEFT", "JOIN"]
    if name == "LEFT" and "JOIN" in upper[i + 1 : i + 3]:
        yield "inner JOIN", ["INNER"] if after == "JOIN" else []
    if name == "UNION" and after != "ALL":
        yield "UNION ALL", ["UNION", "ALL"]
    if name == "NOT" and after in ("IN", "LIKE", "BETWEEN", "EXISTS"):
        yield "no NOT", []
    if name in ("IN", "LIKE") and before != "NOT":
        yield f"NOT {name}", ["NOT", name]
    if name.isdigit() and (int(name) > 0 or before != "LIMIT"):
        yield from ((f"{other} for {name}", [str(other)]) for other in (int(name) + 1, max(int(name) - 1, 0)))
    if len(name) > 2 and (name[0] == "'" or (name[0] == '"' and before in (*COMPARISONS, "LIKE"))):
        yield "another text", [name[:-1] + "x" + name[0]]


def _rewrites(upper: list[str], words: list[str], i: int) -> Iterator[tuple[str, int, int, list[str]]]:
    """Changes of several words that begin at this place: change, first and last word, what stands there instead."""
    if upper[i] in COMPARISONS and i and i + 1 < len(words) and words[i + 1][0] in "'\"0123456789":
        left = i - 3 if i > 2 and words[i - 2] == "." else i - 1
        if words[i - 1].isidentifier():
            yield "one condition less", left, i + 2, ["1"]
    if upper[i] in ("WHERE", "HAVING", "ORDER"):
        yield f"no {upper[i]}", i, _closing(words, i), []
    if upper[i : i + 3] == ["COUNT", "(", "DISTINCT"]:
        yield "COUNT without DISTINCT", i + 2, i + 3, []
    if upper[i : i + 2] == ["COUNT", "("] and upper[i + 2 : i + 3] not in (["*"], ["DISTINCT"]):
        yield "COUNT with DISTINCT", i + 2, i + 2, ["DISTINCT"]


def _closing(words: list[str], start: int) -> int:
    """Where the clause that begins at `start` ends: at the next clause of its level, or where its bracket closes."""
    depth = 0
    for i in range(start + 1, len(words)):
        depth += (words[i] == "(") - (words[i] == ")")
        ends = words[i].upper() in ("GROUP", "HAVING", "ORDER", "LIMIT", "UNION", "INTERSECT", "EXCEPT", "WINDOW")
        if depth < 0 or (depth == 0 and ends):
            return i
    return len(words)
