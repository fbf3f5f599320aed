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
from itertools import pairwise, zip_longest
from typing import NamedTuple

from rlvrlab.judge.modes.sql_text import COMPOUND, words
from rlvrlab.rollout.segments import Segments, Siblings, Span
from rlvrlab.types import Step

JOINS = {"JOIN", "NATURAL", "LEFT", "RIGHT", "FULL", "INNER", "CROSS", "OUTER"}
CLAUSES = {"SELECT", "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET", "WINDOW"} | COMPOUND
LONGEST = 100_000
"""A query with more characters has no steps."""
SPACES = re.compile(r"\s+")
QUOTED = re.compile(r"""('(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|--[^\n]*)""")


class _Word(NamedTuple):
    name: str
    start: int
    end: int


class _Clause(NamedTuple):
    """A keyword and what follows it, up to the next clause."""

    words: list[_Word]
    """Its words of the outermost level, the keyword first."""
    body: int
    """Where the keyword ends: after `ORDER BY`."""
    end: int


def sql_steps(text: str, region: Span | None = None) -> Segments:
    """The query in `region` (all of the text by default) in steps."""
    start, end = region or (0, len(text))
    reader = _Reader(text)
    if end - start <= LONGEST:
        outer = [_Word(w.text.upper(), start + w.start, start + w.start + len(w.text)) for w in words(text[start:end])]
        for clause in _clauses(outer, end):
            reader.add(clause)
    return Segments.flat(text, "sql", reader.steps, reader.siblings, reader.neutral, (start, end))


def canonical_sql(query: str) -> str:
    """White space outside quotes makes no difference."""
    parts = QUOTED.split(query)
    return "".join(part if i % 2 else SPACES.sub(" ", part) for i, part in enumerate(parts)).strip().rstrip(";").strip()


def _clauses(outer: list[_Word], end: int) -> list[_Clause]:
    """The clauses of the outermost level; from the first UNION on, each arm with all its clauses is one."""
    heads = []
    for i, word in enumerate(outer):
        # LEFT OUTER JOIN begins one clause, not three; a later WITH is something else.
        joins = word.name in JOINS and (i == 0 or outer[i - 1].name not in JOINS)
        if joins or word.name in CLAUSES or (word.name == "WITH" and i == 0):
            heads.append(i)
    arms = [i for i in heads if outer[i].name in COMPOUND]
    heads = [i for i in heads if i < arms[0]] + arms if arms else heads
    stop = next((i for i, word in enumerate(outer) if word.name == ";"), len(outer))
    clauses = []
    for i, until in zip_longest(heads, heads[1:], fillvalue=stop):
        if i < stop:
            keyword = outer[i : i + 2] if outer[i].name in ("GROUP", "ORDER") else outer[i : i + 1]
            close = outer[until].start if until < len(outer) else end
            clauses.append(_Clause(outer[i:until], keyword[-1].end, close))
    return clauses


class _Reader:
    """Collects the steps of a query."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.steps: list[Step] = []
        self.siblings: list[Siblings] = []
        self.neutral: list[str] = []

    def add(self, clause: _Clause) -> None:
        """One clause as one step or several."""
        keyword, end = clause.words[0], clause.end
        second = clause.words[1].name if len(clause.words) > 1 else ""
        if keyword.name == "SELECT":
            start = clause.words[1].end if second in ("DISTINCT", "ALL") else clause.body
            self._list(start, end, _commas(clause, start), "column", " NULL", None)
        elif keyword.name == "WITH":
            start = clause.words[1].end if second == "RECURSIVE" else clause.body
            self._list(start, end, _commas(clause, start), "cte", "", (keyword.start, start))
        elif keyword.name in ("WHERE", "HAVING"):
            where = (keyword.start, clause.body)
            self._list(clause.body, end, _conjunctions(clause.words), "conjunct", "", where, "1 = 1")
        elif keyword.name != "FROM":
            kind = "join" if keyword.name in JOINS else "arm" if keyword.name in COMPOUND else "clause"
            self._step(keyword.start, end, kind, "")

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


def _commas(clause: _Clause, start: int) -> list[_Word]:
    return [word for word in clause.words if word.name == "," and word.start >= start]


def _conjunctions(inside: list[_Word]) -> list[_Word]:
    """The ANDs that join conditions: none where an OR stands beside them, and not the one of BETWEEN."""
    names = [word.name for word in inside]
    if "OR" in names or "CASE" in names:
        return []
    separators, between = [], 0
    for word in inside:
        if word.name == "BETWEEN":
            between += 1
        elif word.name == "AND" and between:
            between -= 1
        elif word.name == "AND":
            separators.append(word)
    return separators
