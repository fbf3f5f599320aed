"""What a table does where room is short: headings give way, then words, long ones at their seams, and figures never.

toy_pipeline_          not     toy_pipeline_20261
20261119_010209_               119_010209_203e907
203e9072                       2
"""

from __future__ import annotations

import re
import textwrap
from typing import Any

from rich.console import Console, ConsoleOptions, RenderResult
from rich.containers import Lines
from rich.table import Column, Table
from rich.text import Text

SEAM = re.compile(r"(?<=[_\-./:,;=@×])(?=\S)")
"""Behind these characters a word may go on in the next line."""


class FoldingText(Text):
    """A Text that folds at seams; a word without one is cut where the line ends."""

    def wrap(self, console: Any, width: int, *, no_wrap: bool | None = None, **how: Any) -> Lines:
        """Lines of at most `width` columns."""
        at = [] if no_wrap else seams(self.plain, width)
        whole = Text("\n").join(self.divide(at)) if at else Text.assemble(self)
        whole.justify, whole.overflow = self.justify, self.overflow
        return whole.wrap(console, width, no_wrap=no_wrap, **how)


LEAST_WORDS = 10
"""Columns of a terminal that words should have before the gaps between columns give way."""


class FittingTable(Table):
    """Where it would be too wide, headings stand in several lines over figures, which never wrap; then gaps shrink."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self._gaps() + sum(max(_widest(one), _length(one.header)) for one in self.columns) > options.max_width:
            for one in self.columns:
                if one.no_wrap and isinstance(one.header, Text):
                    one.header = _in_lines(one.header, _widest(one))
            if self._gaps() + sum(map(_needed, self.columns)) > options.max_width:
                self.padding = (0, 1, 0, 0)
        yield from super().__rich_console__(console, options)

    def _gaps(self) -> int:
        _, right, _, left = self.padding
        return (right + left + (1 if self.box else 0)) * len(self.columns)


def _needed(column: Column) -> int:
    """The least width at which it can be read."""
    if column.no_wrap:
        return max(_widest(column), _length(column.header))
    heading = column.header.plain.split() if isinstance(column.header, Text) else []
    return max([min(_widest(column), LEAST_WORDS), *map(len, heading)])


def _widest(column: Column) -> int:
    return max((_length(cell) for cell in column.cells), default=0)


def _length(text: Any) -> int:
    return max(map(len, text.plain.splitlines()), default=0) if isinstance(text, Text) else 0


def _in_lines(heading: Text, width: int) -> Text:
    """As many words in a line as the figures below leave room for."""
    lines = textwrap.wrap(heading.plain, max(1, width), break_long_words=False, break_on_hyphens=False)
    return Text("\n".join(lines), heading.style)


def seams(text: str, width: int) -> list[int]:
    """Where to break the words that are longer than a line, each piece as long as it may be."""
    found: list[int] = []
    for word in re.finditer(r"\S+", text):
        places = [word.start() + seam.start() for seam in SEAM.finditer(word[0])]
        begin = word.start()
        while word.end() - begin > width:
            fitting = [place for place in places if begin < place <= begin + width]
            begin = fitting[-1] if fitting else begin + width
            found += [begin] if fitting else []
    return found
