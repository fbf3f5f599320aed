"""What an error says fits a line, and whatever is cut says so; each of these is decided once."""

from __future__ import annotations

import ast
import re

import pytest
from sources import SOURCE, files, nodes

from rlvrlab.errors import UserError, and_more, cut, first_few, one_line, quoted

CUT_ELSEWHERE = {
    "judge/": "what runs in the jail imports nothing of the package, and its notes are data, not messages",
}
MESSAGE = (20, 40, 60, 80, 100, 160, 200, 400)


def test_another_packages_error_is_cut_with_a_mark_and_ours_keeps_its_remedy() -> None:
    assert one_line(ValueError("a\n  b")) == "a b" and one_line(KeyError()) == "KeyError"
    long = one_line(ValueError("x " * 500))
    assert len(long) == 200 and long.endswith("…")
    assert one_line(UserError("x " * 500 + "\nmend it")).endswith("x mend it")


def test_what_is_quoted_says_where_it_was_cut() -> None:
    assert quoted("short") == "'short'" and quoted(12) == "'12'" and quoted("a'b") == '"a\'b"'
    assert quoted("x" * 61) == f"'{'x' * 59}…'" and quoted("x" * 60) == f"'{'x' * 60}'"
    assert cut("abc", 3) == "abc" and cut("abcd", 3) == "ab…"


@pytest.mark.parametrize(("total", "told"), [(2, "a, b"), (3, "a, b … and 1 more")])
def test_the_rest_is_counted(total: int, told: str) -> None:
    assert first_few(["a", "b", "c"][:total], 2) == told
    assert first_few(["a", "b", "c"], 2, " | ") == "a | b … and 1 more" and and_more(2, 2) == ""


def bare_cuts(tree: ast.Module) -> list[int]:
    """Lines where a message ends a text at a number of characters without saying so."""
    return [
        one.lineno
        for message in nodes(tree, ast.JoinedStr)
        for one in ast.walk(message)
        if isinstance(one, ast.Slice) and one.lower is None and isinstance(one.upper, ast.Constant)
        if one.upper.value in MESSAGE
    ]


def test_no_message_cuts_a_text_without_saying_so() -> None:
    found = [f"{file}:{line}" for file, tree in files(SOURCE) for line in bare_cuts(tree)]
    assert [one for one in found if not one.startswith(tuple(CUT_ELSEWHERE))] == []
    assert bare_cuts(ast.parse("f'{name[:40]!r} is none'")) == [1]


@pytest.mark.parametrize(("pattern", "home"), [
    (r'replace\("\|", "\\\\\|"\)', ["shares.py"]),
    (r'" ?… and \{', ["errors.py"]),
    (r'" "\.join\(str\(error\)\.split\(\)\)', ["errors.py"]),
])  # fmt: skip
def test_each_is_written_once(pattern: str, home: list[str]) -> None:
    assert [file for file, _ in files(SOURCE) if re.search(pattern, (SOURCE / file).read_text())] == home
