"""No answer chooses to stay unjudged: whatever a matcher raises on it makes it wrong, and on gold makes the row bad."""

from __future__ import annotations

import decimal
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from texts import any_text

from rlvrlab.envs.matchers import MATCHERS, Exact, Matcher
from rlvrlab.envs.own_data import Answers
from rlvrlab.errors import UserError
from rlvrlab.types import ErrorKind, Problem, Verdict

FAULTS = (
    decimal.InvalidOperation(), OverflowError(), RecursionError(), MemoryError(), ZeroDivisionError(), IndexError(),
    UnicodeEncodeError("utf-8", "\ud800", 0, 1, "lone"), AssertionError(), StopIteration(), sqlite3.ProgrammingError(),
)  # fmt: skip
GOLD: dict[str, Any] = {
    "exact": "Paris", "text": "New York", "number": "1,080", "choice": "B", "regex": "a|b", "mathematics": "\\frac12",
    "json": [1.5, {"a": True}], "sql": "SELECT name FROM item WHERE price > 6",
    "code": ["assert twice(2) == 4", "assert twice(-1) == -2"],
}  # fmt: skip
HOSTILE = (
    "1e99999999999999999999", "-1E-99999999999999999999", "1e400", "9" * 5000, "0." + "9" * 3000, "[" * 3900,
    '{"a":' * 780, "\ud800", "\x00", "\\frac" * 300, "{" * 390, "1/0", "0/0", "9^{9^{9^9}}", "١٢", "½",
    "1" + ",000" * 60,
    '["\\ud800"]', '{"a":1,"a":2}', "NaN", "-", ".", "e", "\\sqrt[0]{0}", "-" * 390, "(" * 390, "\u2028", "",
)  # fmt: skip


class Raising(Exact):
    """Raises on every answer, or on all but the right one."""

    def __init__(self, fault: Exception, on_gold: bool) -> None:
        self.fault, self.on_gold = fault, on_gold

    def reference(self, value: Any, row: Any, folder: Path) -> Any:
        if self.on_gold:
            raise self.fault
        return value

    def settle(self, reference: Any, answer: str) -> Verdict:
        if self.on_gold or answer != reference:
            raise self.fault
        return super().settle(reference, answer)


def problem_of(env: Answers, row: dict[str, Any]) -> Problem:
    (problem,) = env.read_row(row).problems("train")
    return problem


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: type(fault).__name__)
def test_an_exception_is_the_answers_unless_gold_raises_too(monkeypatch: pytest.MonkeyPatch, fault: Exception) -> None:
    env = Answers(matcher="exact", style="bare")
    problem = problem_of(env, {"question": "Which?", "answer": "Paris"})
    monkeypatch.setitem(MATCHERS, "exact", Raising(fault, on_gold=False))
    assert [env.verify(problem, text).correct for text in ("Paris", "Rome")] == [True, False]
    monkeypatch.setitem(MATCHERS, "exact", Raising(fault, on_gold=True))
    assert env.verify(problem, "Rome").error is ErrorKind.BAD_TASK


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: type(fault).__name__)
def test_gold_that_raises_is_a_fault_of_its_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    monkeypatch.setitem(MATCHERS, "exact", Raising(fault, on_gold=True))
    (tmp_path / "own.jsonl").write_text('{"question": "Which?", "answer": "Paris"}\n')
    with pytest.raises(UserError, match=r"own\.jsonl:1: column 'answer'"):
        Answers(path=str(tmp_path / "own.jsonl")).problems("train", 1, 0)


def test_a_machine_that_fails_says_nothing_about_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    env = Answers(matcher="exact", style="bare")
    problem = problem_of(env, {"question": "Which?", "answer": "Paris"})
    monkeypatch.setitem(MATCHERS, "exact", Raising(OSError("no space left"), on_gold=False))
    assert env.verify(problem, "Rome").error is ErrorKind.INFRA


@pytest.fixture(scope="module")
def references(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What every matcher needs of a row whose answer column holds its member of GOLD."""
    folder = tmp_path_factory.mktemp("rows")
    with sqlite3.connect(folder / "shop.sqlite") as shop:
        shop.execute("CREATE TABLE item (name TEXT, price INTEGER)")
        shop.executemany("INSERT INTO item VALUES (?, ?)", [("pen", 2), ("bag", 20), ("cup", 5), ("hat", 9)])
    return {name: MATCHERS[name].expected(GOLD[name], {"database": "shop.sqlite"}, folder) for name in MATCHERS}


def raised_by(matcher: Matcher, reference: Any, text: str) -> str:
    """What a matcher's own reading of an answer raises; empty where it does not, which is how all should be."""
    try:
        matcher.settle(reference, text)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


@pytest.mark.parametrize("name", MATCHERS)
def test_hostile_answers_are_read_without_an_exception(references: dict[str, Any], name: str) -> None:
    faults = {text[:40]: raised_by(MATCHERS[name], references[name], text) for text in HOSTILE}
    assert {text: fault for text, fault in faults.items() if fault} == {}


@pytest.mark.parametrize("name", MATCHERS)
def test_hostile_gold_is_a_value_error(tmp_path: Path, name: str) -> None:
    rows: list[Any] = [*HOSTILE, None, 5, 1.5, [], {}, [[]], {"a": {}}, True, [1, "a"], "x" * 5000]
    for value in rows:
        for database in ("none.sqlite", "x" * 5000, "\x00", ""):
            try:
                MATCHERS[name].expected(value, {"database": database}, tmp_path)
            except ValueError:
                continue


@pytest.mark.parametrize("name", ["exact", "text", "number", "choice", "json", "mathematics"])
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.one_of(any_text(), st.text("0123456789eE+-.,/%$\\{}[]()^\"': frac", max_size=60)))
def test_any_answer_has_a_verdict(references: dict[str, Any], name: str, text: str) -> None:
    assert raised_by(MATCHERS[name], references[name], text) == ""
    judged = MATCHERS[name].judged(references[name], text)
    assert not isinstance(judged, Verdict) or judged.correct is not None
