"""Exact numbers from hostile text."""

from __future__ import annotations

from fractions import Fraction

import pytest

from rlvrlab.judge.modes.expressions import number


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("42", 42),
        (" -0 ", 0),
        ("+7", 7),
        ("1,234.50", Fraction(2469, 2)),
        ("1,000,000", 1000000),
        ("1,00", None),
        ("3/4", Fraction(3, 4)),
        ("-3 / 4", Fraction(-3, 4)),
        ("3/0", None),
        ("0/0", None),
        (".5", Fraction(1, 2)),
        ("5.", 5),
        (".", None),
        ("", None),
        ("1e3", 1000),
        ("1e-2", Fraction(1, 100)),
        ("1e400", None),
        ("1e9999999", None),
        ("½", None),
        ("４２", None),
        ("٤", None),
        ("1_000", None),
        ("0x10", None),
        ("inf", None),
        ("nan", None),
        ("1 2", None),
        ("−5", -5),
        ("9" * 10_000, None),
    ],
)
def test_numbers(text: str, value: object) -> None:
    assert number(text) == value
