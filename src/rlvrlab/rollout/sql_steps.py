"""A query in steps: CTEs, selected columns, joins, conjuncts of WHERE and HAVING, and the other clauses.

    WITH a AS (SELECT 1) SELECT x, y FROM t JOIN u ON t.i = u.i WHERE p = 1 AND q BETWEEN 2 AND 3 ORDER BY x LIMIT 5
         cte                    column column       join                 conjunct  conjunct             clause   clause
SELECT and FROM are the frame (glue): without them there is no query. A column list that loses all is filled with NULL
(repaired); WHERE goes with its last conjunct. A deleted CTE that is still used makes an invalid query: the verifier
says so. Only the outermost level is looked at; brackets, quotes and comments are opaque. Each further SELECT of a UNION
is one step. Just enough grammar for that, no third party.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import NamedTuple

from rlvrlab.judge.modes.sql_text import COMPOUND, words
from rlvrlab.rollout.segments import Segments, Siblings, Span
from rlvrlab.types import Step

JOINS = {"JOIN", "NATURAL", "LEFT", "RIGHT", "FULL", "INNER", "CROSS", "OUTER"}
CLAUSES = {"SELECT", "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET", "WINDOW"} | COMPOUND
LONGEST = 100_000
SPACES = re.compile(r"\s+")
QUOTED = re.compile(r"""('(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|--[^\n]*)""")


class _Word(NamedTuple):
    name: str
    start: int
    end: int


class _Part(NamedTuple):
    """One clause: its keyword and what follows, up to the next clause."""

    name: str
    start: int
    body: int
    end: int


def sql_steps(text: str, region: Span | None = None) -> Segments:
    """The query in `region` (all of the text by default) in steps."""
    start, end = region or (0, len(text))
    found = _Found(text)
    if end - start <= LONGEST:
        outer = [_Word(w.text.upper(), start + w.start, start + w.start + len(w.text)) for w in words(text[start:end])]
        for part in _parts(outer, end):
            found.add(part, [word for word in outer if part.start <= word.start < part.end])
    return Segments(
        text,
        "sql",
        tuple(found.steps),
        tuple(step.span for step in found.steps),
        (-1,) * len(found.steps),
        tuple(found.siblings),
        tuple(found.neutral),
        (start, end),
    )


def canonical_sql(query: str) -> str:
    """White space outside quotes makes no difference."""
    parts = QUOTED.split(query)
    return "".join(part if i % 2 else SPACES.sub(" ", part) for i, part in enumerate(parts)).strip().rstrip(";").strip()


def _parts(outer: list[_Word], end: int) -> list[_Part]:
    """The clauses of the outermost level; after a UNION everything to its end is one part."""
    heads = [i for i, word in enumerate(outer) if _is_head(outer, i)]
    stop = next((word.start for word in outer if word.name == ";"), end)
    parts = []
    for position, i in enumerate(heads):
        name, width = outer[i].name, 2 if outer[i].name in ("GROUP", "ORDER") else 1
        if name in COMPOUND:
            later = [j for j in heads[position + 1 :] if outer[j].name in COMPOUND]
            parts.append(_Part(name, outer[i].start, outer[i].end, outer[later[0]].start if later else stop))
            continue
        if any(outer[j].name in COMPOUND for j in heads[:position]):
            continue
        following = heads[position + 1] if position + 1 < len(heads) else None
        last = outer[min(i + width - 1, len(outer) - 1)]
        parts.append(_Part(name, outer[i].start, last.end, stop if following is None else outer[following].start))
    return [part for part in parts if part.start < stop]


def _is_head(outer: list[_Word], i: int) -> bool:
    name = outer[i].name
    if name == "WITH":
        return i == 0
    if name in JOINS:
        return i == 0 or outer[i - 1].name not in JOINS
    return name in CLAUSES


class _Found:
    def __init__(self, text: str) -> None:
        self.text = text
        self.steps: list[Step] = []
        self.siblings: list[Siblings] = []
        self.neutral: list[str] = []

    def add(self, part: _Part, inside: list[_Word]) -> None:
        """One clause as one step or several."""
        keyword = (part.start, part.body)
        if part.name == "SELECT":
            skip = next((w.end for w in inside[1:2] if w.name in ("DISTINCT", "ALL")), part.body)
            self._list(skip, part.end, _commas(inside, skip), "column", " NULL", None)
        elif part.name == "WITH":
            skip = next((w.end for w in inside[1:2] if w.name == "RECURSIVE"), part.body)
            self._list(skip, part.end, _commas(inside, skip), "cte", "", (part.start, skip))
        elif part.name in ("WHERE", "HAVING"):
            self._list(part.body, part.end, _conjunctions(inside), "conjunct", "", keyword, "1 = 1")
        elif part.name == "FROM":
            return
        else:
            kind = "join" if part.name in JOINS else "arm" if part.name in COMPOUND else "clause"
            self._step(part.start, part.end, kind, "")

    def _list(
        self,
        start: int,
        end: int,
        separators: list[_Word],
        kind: str,
        fill: str,
        keyword: Span | None,
        neutral: str | None = None,
    ) -> None:
        """Members with the separator before them."""
        first, leads = len(self.steps), list[int]()
        edges = [start, *(word.start for word in separators), end]
        for position, (begin, stop) in enumerate(pairwise(edges)):
            lead = separators[position - 1].end - begin if position else 0
            if not self.text[begin:stop].strip():
                continue
            leads.append(lead)
            head = self.text[begin : begin + lead]
            self._step(begin, stop, kind, f"{head} {neutral or 'NULL'}" if kind != "cte" else self.text[begin:stop])
        if leads:
            self.siblings.append(Siblings(tuple(range(first, len(self.steps))), fill, keyword, tuple(leads)))

    def _step(self, start: int, end: int, kind: str, neutral: str) -> None:
        end = start + len(self.text[start:end].rstrip())  # the space that parts it from the next clause is glue
        self.steps.append(Step(len(self.steps), kind, (start, end), self.text[start:end]))
        self.neutral.append(neutral)


def _commas(inside: list[_Word], start: int) -> list[_Word]:
    return [word for word in inside if word.name == "," and word.start >= start]


def _conjunctions(inside: list[_Word]) -> list[_Word]:
    """The ANDs that join conditions: none where an OR stands beside them, and not the one of BETWEEN."""
    names = [word.name for word in inside]
    if "OR" in names or "CASE" in names:
        return []
    found, between = [], 0
    for word in inside:
        if word.name == "BETWEEN":
            between += 1
        elif word.name == "AND" and between:
            between -= 1
        elif word.name == "AND":
            found.append(word)
    return found
