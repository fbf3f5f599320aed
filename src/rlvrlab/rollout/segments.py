"""The steps of an answer, and the answer without some of them.

    "So:\\n```python\\nx = 1\\nif x:\\n    y = 2\\n```"   ->   "x = 1\\n"   "if x:\\n"   "    y = 2\\n"   rest: glue
    without the last step                          ->   …if x:\\n    pass\\n…            (repaired)
    without "if x:"                                ->   …x = 1\\n…                       (its block goes with it)

A step has a span (its own characters, for tokens) and an extent (what goes when it goes: a compound statement with its
block). Steps that stand in a list know what an emptied list needs: a `pass`, or its keyword taken away. So every kind
of answer is cut by the same function, `cut`. How steps are found: segment.py and the files it names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from rlvrlab.batch import Bools
from rlvrlab.types import Step

Kind = Literal["python", "sql", "turns", "text", "words", "characters"]
Validity = Literal["valid", "repaired", "invalid"]
Span = tuple[int, int]


class Siblings(NamedTuple):
    """Steps that stand in one list: a block of statements, the columns of a query."""

    members: tuple[int, ...]
    fill: str = ""
    """What stands for them when all are gone."""
    keyword: Span | None = None
    """What goes when all are gone: `WHERE`."""
    leads: tuple[int, ...] = ()
    """Characters of separator before each member, within its extent; the first survivor drops its own."""


class Edited(NamedTuple):
    """An altered answer."""

    text: str
    validity: Validity
    code: str
    """The part that is a program."""
    around: tuple[str, str]
    """What stands before and after it."""


@dataclass(frozen=True)
class Segments:
    """An answer in steps."""

    text: str
    kind: Kind
    steps: tuple[Step, ...]
    extents: tuple[Span, ...]
    """What goes with each step."""
    parents: tuple[int, ...]
    """The step whose block each step stands in, −1 for none; parents come before their children."""
    siblings: tuple[Siblings, ...] = ()
    neutral: tuple[str, ...] = ()
    """What each step becomes under the null intervention; empty means nothing is left of it."""
    region: Span = (0, 0)
    """The program within the text."""
    header: str = ""
    """What must stand before the program for it to parse: an answer may only continue what the prompt began."""
    broken: bool = False
    """The program does not parse; what follows its sound beginning is one step."""

    @classmethod
    def flat(
        cls, text: str, kind: Kind, steps: Sequence[Step], siblings: Sequence[Siblings], neutral: Sequence[str],
        region: Span,
    ) -> Segments:  # fmt: skip
        """An answer without blocks: with each step go its own characters alone."""
        extents = tuple(step.span for step in steps)
        parents = (-1,) * len(steps)
        return cls(text, kind, tuple(steps), extents, parents, tuple(siblings), tuple(neutral), region)

    def __len__(self) -> int:
        return len(self.steps)

    @property
    def spans(self) -> list[Span]:
        """Own characters of each step."""
        return [step.span for step in self.steps]

    def piece(self, index: int) -> str:
        """All that goes with a step."""
        start, end = self.extents[index]
        return self.text[start:end]

    def neighbour(self, index: int) -> int | None:
        """The next step in the same list, or the one before it; None for a step that stands alone."""
        for row in self.siblings:
            if index in row.members and len(row.members) > 1:
                at = row.members.index(index)
                return row.members[at + 1] if at + 1 < len(row.members) else row.members[at - 1]
        return None


def cut(segments: Segments, kept_S: Bools | Sequence[bool], instead: Mapping[int, str] | None = None) -> Edited:
    """The answer with only some of its steps; `instead` exchanges the text of steps that stay."""
    gone: list[bool] = []
    cuts: dict[Span, str] = {}
    """New text of places in the answer."""
    for index, parent in enumerate(segments.parents):
        above = parent >= 0 and gone[parent]
        gone.append(above or not kept_S[index])
        if gone[index] and not above:
            cuts[segments.extents[index]] = ""
        elif instead and index in instead and not above:
            cuts[segments.extents[index]] = instead[index]
    repaired = _mend(segments, gone, cuts)
    pieces, at, (first, last) = list[str](), 0, segments.region
    for (start, end), new in sorted(cuts.items()):
        pieces += [segments.text[at:start], new]
        at = max(at, end)
        change = len(new) - (end - start)
        first += change if end <= segments.region[0] else 0
        last += change if start < segments.region[1] or start == end == segments.region[1] else 0
    text, last = "".join([*pieces, segments.text[at:]]), max(first, last)
    return Edited(text, "repaired" if repaired else "valid", text[first:last], (text[:first], text[last:]))


def swapped(segments: Segments, index: int) -> Edited | None:
    """The step and its neighbour in each other's place; None where it has none."""
    other = segments.neighbour(index)
    if other is None:
        return None
    first, second = sorted((index, other))
    row = next(row for row in segments.siblings if index in row.members)
    leads = {member: row.leads[at] if row.leads else 0 for at, member in enumerate(row.members)}
    # The separator before a step, and the space, line end or semicolon after it, stay in their place.
    bodies = {i: segments.piece(i)[leads[i] :].rstrip(" \t\r\n;") for i in (first, second)}
    instead = {}
    for i, body in ((first, bodies[second]), (second, bodies[first])):
        piece = segments.piece(i)
        instead[i] = piece[: leads[i]] + body + piece[leads[i] + len(bodies[i]) :]
    return cut(segments, [True] * len(segments), instead)


def _mend(segments: Segments, gone: Sequence[bool], cuts: dict[Span, str]) -> bool:
    """Fill emptied lists, drop keywords and separators that nothing follows; True when something had to be filled."""
    repaired = False
    for row in segments.siblings:
        parent = segments.parents[row.members[0]]
        if parent >= 0 and gone[parent]:
            continue
        left = [at for at, member in enumerate(row.members) if not gone[member]]
        if not left:
            if row.fill:
                cuts[segments.extents[row.members[0]]] = row.fill
                repaired = True
            if row.keyword:
                cuts[row.keyword] = ""
        elif left[0] > 0 and row.leads and row.leads[left[0]]:
            start, end = segments.extents[row.members[left[0]]]
            lead = row.leads[left[0]]
            changed = cuts.pop((start, end), None)
            cuts[start, start + lead] = ""
            if changed is not None:
                cuts[start + lead, end] = changed[lead:]
    return repaired
