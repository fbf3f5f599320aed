"""What every verb prints through: text that is safe in a terminal, JSON, and the one line of an error."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

import click

from rlvrlab.notes import ANSWERS, FOUND, hearing

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

NUMBERS = re.compile(r"[\d\s.,:;+%\[\]()…/≤≥<>=≈×±–−-]*[kMGTe]?[\d\s.,+%\[\]()…/±–−-]*")
"""A cell of figures: `87.5 [80.4, 92.3]`, `1.2M`, `40/60`, or nothing."""
LONGEST_QUOTED, LONGEST_WORD = 200, 1000
"""Characters of what an error line quotes, and of a path in it, which must be whole to be of use."""
QUOTES = "'\""
_QUOTED_OR_WORD = re.compile(rf"""(?<!\w)(?:'[^']*'|"[^"]*")(?!\w)|\S{{{LONGEST_WORD},}}""")
"""Short quotations are found, too: a closing mark is not taken for an opening one."""
MOMENT_S, REMINDER_S = 2.0, 20.0
"""Seconds until busy work says what it does, and between the lines that it goes on."""


def fail(message: str, code: int) -> NoReturn:
    """Print one error line on stderr and leave with this exit code."""
    print_error(message)
    sys.exit(code)


def print_error(message: str) -> None:
    """One error line on stderr; what it quotes is cut, since a user may have given a whole file for a name."""
    print(f"error: {_QUOTED_OR_WORD.sub(_cut, printable(message))}", file=sys.stderr)


def _cut(found: re.Match[str]) -> str:
    """Beginning and end of a long quotation, or of a long word that no message of ours has."""
    text, most = found[0], LONGEST_QUOTED if found[0][0] in QUOTES else LONGEST_WORD
    return text if len(text) <= most + 2 else f"{text[: most - most // 4]}…{text[-most // 4 :]}"


def printable(value: object) -> str:
    """One line without control characters: answers, file names and plug-ins' words may be hostile to a terminal."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(value))


def printable_lines(text: str) -> str:
    """`printable` for each line of a page; its line ends stay."""
    return "\n".join(printable(line) for line in text.split("\n"))


def say(console: Console, words: str, style: str = "") -> None:
    """Print words that are never read as markup, and that only the terminal breaks into lines; nothing if empty."""
    from rich.text import Text

    if words:
        console.print(Text(printable(words), style), soft_wrap=True)


@contextmanager
def telling_data() -> Iterator[None]:
    """Within the block, what is found in data files as a whole is said on stderr: what was counted and left out."""

    def tell(kind: str, words: str) -> None:
        if kind == FOUND:
            click.echo(printable(words), err=True)

    with hearing(tell):
        yield


def print_json(value: object) -> None:
    """Print what --json promises: one document, anything JSON does not know as its string."""
    click.echo(json.dumps(value, ensure_ascii=False, indent=2, default=str))


def _harmless(cell: Text) -> Text:
    """The same where it is printable; another of the same style where it is not."""
    harmless = printable_lines(cell.plain)
    return cell if harmless == cell.plain else type(cell)(harmless, cell.style)


def shortened(text: str, most: int) -> str:
    """At most so many characters; what is left out is told by …, and no word is cut unless it is as long itself."""
    if len(text) <= most:
        return text
    begin = text[: most - 1]
    whole = begin if text[most - 1].isspace() else begin.rpartition(" ")[0]
    return f"{(whole if len(whole) > most // 2 else begin).rstrip()}…"


def table(
    head: Sequence[str], rows: Iterable[Iterable[object]], *, right: Collection[str] = (),
    no_wrap: Collection[str] = (), **look: Any,
) -> Table:  # fmt: skip
    """A table without lines, unless `look` says otherwise; the columns in `right` are flush right.

    No cell, name of a column or title is read as markup, and none can steer the terminal. A cell that is a Text keeps
    its style and line breaks; anything else becomes one line.
    A column of numbers is never wrapped, those in `no_wrap` neither: where room is short, headings and words give way
    (folding.py).
    """
    from rich.text import Text

    from rlvrlab.cli.folding import FittingTable, FoldingText

    texts = [[_harmless(cell) if isinstance(cell, Text) else Text(printable(cell)) for cell in row] for row in rows]
    cells = [[FoldingText.assemble(text) for text in row] for row in texts]
    if isinstance(title := look.get("title"), str):
        look["title"] = Text(printable_lines(title), look.get("title_style") or "table.title")
    made = FittingTable(**{"box": None, **look})
    for place, column in enumerate(head):
        numbers = all(NUMBERS.fullmatch(row[place].plain) for row in cells if place < len(row))
        justify: Any = "right" if column in right else "left"
        made.add_column(
            Text(printable_lines(column)), justify=justify, no_wrap=numbers or column in no_wrap, overflow="fold"
        )
    for row in cells:
        made.add_row(*row)
    return made


class CountLines:
    """How far counted work has come: a line on stderr after a moment, and another one now and then."""

    def __init__(self) -> None:
        self._what, self._due = "", 0.0

    def show(self, what: str, done: int, total: int) -> None:
        """A line, if one is due."""
        now = time.monotonic()
        if what != self._what:
            self._what, self._due = what, now + MOMENT_S
        if now >= self._due:
            self._due = now + REMINDER_S
            doing = "drawing" if what == ANSWERS else "making"
            click.echo(f"{doing} {what}: {done} of {total}", err=True)
