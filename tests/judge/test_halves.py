"""Halves of characters (surrogates) on their way between judge, tests and candidate."""

from __future__ import annotations

from typing import Any

import pytest

from rlvrlab.judge.compare import Comparison
from rlvrlab.judge.judge import Judge
from rlvrlab.judge.tasks import Call, CallsTask, TestsTask

HALVES = 'def f(x): return "\\ud83d" + "\\ude00"'
WHOLE = "\U0001f600"


@pytest.mark.parametrize("kind", ["exact", "json", "python", "unordered"])
@pytest.mark.parametrize(
    "wrapped", [lambda text: text, lambda text: [text], lambda text: {text: 1}, lambda text: {text}]
)
def test_two_halves_of_a_character_are_not_the_whole_one(judge: Judge, kind: Any, wrapped: Any) -> None:
    program = f"def f(x): return {wrapped('HALVES')!r}".replace("HALVES", "\\ud83d\\ude00")
    for expected, right in ((WHOLE, False), ("\ud83d\ude00", True)):
        task = CallsTask("f", (Call((1,), wrapped(expected)),), comparison=Comparison(kind))
        assert judge.verify(task, program).correct is right


@pytest.mark.parametrize(
    ("test", "program", "right"),
    [
        ("assert f(1) == '\\U0001F600'", HALVES, False),
        ("x = f(1)\nassert len(x) == 1", HALVES, False),
        ("assert f('\\ud83d\\ude00') == 2", "def f(x): return len(x)", True),
        ("assert f('\\ud83d\\ude00') in (2,)", "def f(x): return len(x)", True),
    ],
)
def test_halves_of_characters_cross_between_tests_and_candidate(
    judge: Judge, test: str, program: str, right: bool
) -> None:
    assert judge.verify(TestsTask("f", (test,)), program).correct is right
