"""What a table shows may come from a folder that somebody else has made: no part of it steers the terminal."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.text import Text

from rlvrlab.cli.printing import table

HOSTILE = "\x1b]0;title\x07\x1b[31m\u202e\x9b2J"


@pytest.mark.parametrize("place", ["cell", "styled cell", "head", "title"])
def test_no_part_of_a_table_steers_the_terminal(place: str) -> None:
    words = {one: f"[red]a{HOSTILE}b" if one == place else "x" for one in ("cell", "styled cell", "head", "title")}
    cells = [words["cell"], Text(f"{words['styled cell']}\nsecond line", "bold")]
    told = io.StringIO()
    Console(file=told, width=200, color_system=None).print(table(["one", words["head"]], [cells], title=words["title"]))
    shown = told.getvalue()
    assert all(character.isprintable() or character == "\n" for character in shown)
    assert "[red]a" in shown and "second line" in shown
    assert not any(line.endswith("xsecond line") for line in shown.splitlines())
