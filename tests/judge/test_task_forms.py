"""Whatever stands in a field of a task where something else belongs is the task's fault, and is told in one line."""

from __future__ import annotations

import copy
import json
import math
import re
import sqlite3
import tracemalloc
from contextlib import closing
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from rlvrlab.cli.judge import command
from rlvrlab.errors import UserError
from rlvrlab.judge.code import CodeJudge
from rlvrlab.judge.compare import Comparison
from rlvrlab.judge.jail.limits import AT_MOST, MEGABYTE, Limits
from rlvrlab.judge.judge import Judge
from rlvrlab.judge.modes.mathematics import MathTask
from rlvrlab.judge.modes.sql import SqlTask
from rlvrlab.judge.task_forms import KINDS, LONGEST_NUMBER, task_of
from rlvrlab.judge.tasks import Call, CallsTask, StdioTask, SyntaxTask, TestsTask
from rlvrlab.judge.written import Written
from rlvrlab.types import ErrorKind

SAMPLES: dict[str, Any] = {
    "null": None, "true": True, "zero": 0, "five": 5, "half": 0.5, "huge": 10**400, "empty": "", "text": "abc",
    "nothing": [], "numbers": [1], "texts": ["abc"], "nulls": [None], "lists": [[]], "pairs": [["a", "b"]],
    "object": {}, "other": {"a": 1}, "unnamed": {"": 1},
}  # fmt: skip
TEXTS = {"nothing", "texts"}
NUMBERS = {"five", "half"}
LIMITS = {"cpu_s": NUMBERS, "job_cpu_s": NUMBERS, "wall_s": NUMBERS | {"null"}, "memory_mb": {"five"},
          "output_mb": {"five"}, "scratch_mb": {"five"}}  # fmt: skip
COMPARISON = {"kind": set(), "abs_tol": NUMBERS | {"zero"}, "rel_tol": NUMBERS | {"zero"}}
ANYTHING = set(SAMPLES)
LISTS = {"nothing", "numbers", "texts", "nulls", "lists", "pairs"}
CALL = {"arguments": LISTS, "expected": ANYTHING, "named": {"object", "other", "unnamed"}}
RECORDS = {"limits": (LIMITS, Limits), "comparison": (COMPARISON, Comparison), "calls": (CALL, Call)}
ALLOWED: dict[str, dict[str, set[str]]] = {
    "stdio": {"tests": {"nothing", "pairs"}, "comparison": {"object"}, "checker": {"null", "empty", "text"},
              "limits": {"object"}, "packages": TEXTS},
    "calls": {"entry_point": {"text"}, "calls": {"nothing"}, "comparison": {"object"}, "limits": {"object"},
              "packages": TEXTS},
    "tests": {"entry_point": {"text"}, "tests": TEXTS, "setup": {"empty", "text"},
              "preamble": {"empty", "text"}, "inprocess": {"true"}, "limits": {"object"}, "packages": TEXTS},
    "syntax": {"functions": TEXTS, "docstrings": {"true"}, "longest_line": {"null", "five"},
               "forbidden": TEXTS, "limits": {"object"}},
}  # fmt: skip
"""Which of the samples each field may hold."""
FORMS: dict[str, dict[str, Any]] = {
    "stdio": {"kind": "stdio", "tests": [["1", "1"]]},
    "calls": {"kind": "calls", "entry_point": "f", "calls": [{"arguments": [1], "expected": 1}]},
    "tests": {"kind": "tests", "entry_point": "f", "tests": ["assert f(1) == 1"]},
    "syntax": {"kind": "syntax"},
}
PROGRAM = "def f(x):\n    return x\n"
Place = tuple[str | int, ...]
ONE_LINE = re.compile(r"task[^\n]*: [^\n]*(?:allowed|must|at most)[^\n]*")


def cases() -> list[tuple[str, Place, str, bool]]:
    """Kind, field, sample, and is it allowed there."""
    found: list[tuple[str, Place, str, bool]] = []
    for kind, own in ALLOWED.items():
        for name, allowed in own.items():
            found += [(kind, (name,), sample, sample in allowed) for sample in SAMPLES]
            for inner, may in RECORDS[name][0].items() if name in RECORDS else ():
                place: Place = (name, 0, inner) if name == "calls" else (name, inner)
                found += [(kind, place, sample, sample in may) for sample in SAMPLES]
    return found


def form_with(kind: str, place: Place, value: Any) -> dict[str, Any]:
    form = copy.deepcopy(FORMS[kind])
    *way, last = place
    inner: Any = form
    for step in way:
        inner = inner[step] if isinstance(step, int) else inner.setdefault(step, {})
    inner[last] = value
    return form


def test_every_field_of_a_task_is_tried() -> None:
    assert {kind: set(own) for kind, own in ALLOWED.items()} == {
        kind: {one.name for one in fields(task)} for kind, task in KINDS.items()
    }
    for own, record in RECORDS.values():
        assert set(own) == {one.name for one in fields(record)}


def test_a_field_of_the_wrong_type_is_told_with_its_place_and_what_may_stand_there() -> None:
    wrong = []
    for kind, place, sample, allowed in cases():
        try:
            task_of(form_with(kind, place, SAMPLES[sample]))
            told = ""
        except UserError as error:
            told = str(error)
        fits = not told if allowed else ONE_LINE.fullmatch(told) and f"task.{place[0]}" in told
        if not fits:
            wrong.append((kind, place, sample, told))
    assert wrong == [] and len(cases()) > 600


@pytest.mark.parametrize("form", [
    None, 5, [], "x", {}, {"kind": None}, {"kind": []}, {"kind": "foo"}, {**FORMS["calls"], "foo": 1},
    {"kind": "calls", "entry_point": "f"}, {"kind": "calls", "entry_point": "f", "calls": [{"arguments": []}]},
    *({**FORMS["calls"], "calls": [{"plain": value}]} for value in (
        None, 5, "x", [], ["list", [1, 2, 3]], ["tuple", [1, 2, ["dict", []]]], ["tuple", [["tuple", []], 1, 5]],
        ["tuple", [["tuple", []], 1, ["dict", [[1, 2]]]]], ["tuple", [["int", "0x" + "f" * 9000], 1]], ["handle", 1],
        ["tuple", [["tuple", [["Fraction", [1, 0]]]], 1]], ["tuple", [["set", [["list", []]]], 1]])),
    {**FORMS["calls"], "calls": [{"plain": ["tuple", [["tuple", []], 1]], "expected": 2}]},
])  # fmt: skip
def test_neither_are_other_forms_tasks(form: Any) -> None:
    with pytest.raises(UserError, match=ONE_LINE.pattern):
        task_of(form)


def test_numbers_of_a_call_have_a_length_that_can_be_worked_with() -> None:
    def task_with(value: Any) -> Any:
        return task_of({**FORMS["calls"], "calls": [{"plain": ["tuple", [["tuple", [value]], 1]]}]})

    for size, allowed in ((LONGEST_NUMBER, True), (LONGEST_NUMBER + 1, False)):
        digits, number = "1" * size, ["int", "0x" + "f" * (size - 2)]
        for value in (
            number, ["Decimal", digits], ["range", [0, number, 3]], ["complex", ["1", "0." + digits[2:]]],
            ["dict", [[1, ["list", [number]]]]], ["dict", [[["Decimal", digits], 1]]],
        ):  # fmt: skip
            if allowed:
                assert task_with(value)
            else:
                with pytest.raises(UserError, match=r"plain: a number of 100,001 characters; allowed: at most 100,000"):
                    task_with(value)
    texts = ["list", ["Decimal", digits]]
    assert task_with(texts).calls[0].arguments == (Written(texts),), "these are texts"


NOT_EVEN_TASKS = [
    TestsTask("f", ("assert f(1) == 1",), inprocess="no"),  # type: ignore[arg-type]
    TestsTask("f", (5,)),  # type: ignore[arg-type]
    CallsTask("f", (Call((1,), 1, named=5),)),  # type: ignore[arg-type]
    CallsTask("f", ({"arguments": [1]},)),  # type: ignore[arg-type]
    StdioTask(5),  # type: ignore[arg-type]
    StdioTask((("1", None),)),  # type: ignore[arg-type]
    SyntaxTask(docstrings=None, longest_line="5"),  # type: ignore[arg-type]
    StdioTask((("1", "1"),), limits=None),  # type: ignore[arg-type]
]


def test_a_task_made_in_python_is_held_to_the_same(judge: Judge) -> None:
    verdicts = judge.verify_many([(task, PROGRAM) for task in NOT_EVEN_TASKS])
    assert [verdict.error for verdict in verdicts] == [ErrorKind.BAD_TASK] * len(NOT_EVEN_TASKS)
    assert all("task." in verdict.detail and "allowed" in verdict.detail for verdict in verdicts)
    assert judge.verify(replace(NOT_EVEN_TASKS[0], inprocess=True), PROGRAM).flags == ("integrity: weak",)


@pytest.mark.parametrize(("name", "most"), list(AT_MOST.items()))
def test_a_limit_beyond_its_bound_is_told_with_the_bound(name: str, most: int) -> None:
    assert task_of({"kind": "syntax", "limits": {"cpu_s": 1, name: most // 4}})
    with pytest.raises(UserError, match=rf"task\.limits: .*{name} is {most + 1}.*; allowed: at most {most}$"):
        task_of({"kind": "syntax", "limits": {"wall_s": 1, name: most + 1}})


def test_output_that_would_fill_the_memory_of_the_judge_may_not_be_asked_for() -> None:
    for size in (100_000, 200_000, 1 << 24):
        with pytest.raises(UserError, match="output_mb is"):
            task_of({"kind": "syntax", "limits": {"output_mb": size}})


def test_the_most_output_that_may_be_asked_for_takes_no_memory_of_its_own(judge: Judge) -> None:
    task = StdioTask((("", "yes" * 500_000),), limits=Limits(output_mb=AT_MOST["output_mb"]))
    judge.verify(task, "print('warm')")
    tracemalloc.start()
    try:
        assert judge.verify(task, "print('yes' * 500_000)").correct
        assert tracemalloc.get_traced_memory()[1] < 64 * MEGABYTE
    finally:
        tracemalloc.stop()


NO_SQL_TASKS: dict[str, list[Any]] = {
    "database": [None, 5], "gold": [5, None], "twins": ["abc", [5], None], "engine": ["x", None, []],
    "float_tolerance": [math.nan, math.inf, -1.0, 1.5, 10**400, True, "0"],
    "most_rows": [0, -5, 10**30, 1.5, True, None], "limits": [None, 5],
}  # fmt: skip


def test_tasks_of_sql_and_mathematics_are_held_to_their_fields(judge: Judge, tmp_path: Path) -> None:
    assert set(NO_SQL_TASKS) == {one.name for one in fields(SqlTask)}
    with closing(sqlite3.connect(tmp_path / "a.sqlite")) as connection:
        connection.execute("CREATE TABLE a (b)")
    right = SqlTask(str(tmp_path / "a.sqlite"), "SELECT 1")
    odd = [(name, replace(right, **{name: value})) for name, values in NO_SQL_TASKS.items() for value in values]
    *verdicts, last = judge.verify_many([(task, "SELECT 1") for task in (*(task for _, task in odd), right)])
    for (name, task), verdict in zip(odd, verdicts, strict=True):
        assert verdict.error is ErrorKind.BAD_TASK, task
        assert f"task.{name}" in verdict.detail and "allowed: " in verdict.detail
    assert last.correct, "its neighbours are no reason to leave it unjudged"
    wide = replace(right, most_rows=10_000_000, float_tolerance=1)
    assert judge.verify(wide, "SELECT 1").correct
    verdict = judge.verify(MathTask(5), "5")  # type: ignore[arg-type]
    assert (verdict.error, "task.gold: 5; allowed: a text" in verdict.detail) == (ErrorKind.BAD_TASK, True)


@pytest.mark.parametrize("answer", [None, 5, True, b"x = 1", ["x = 1"], {"x": 1}], ids=repr)
def test_an_answer_that_is_no_text_is_a_malformed_request_and_never_wrong(judge: Judge, answer: Any) -> None:
    right = CallsTask("f", (Call((1,), 1),))
    tasks = (right, StdioTask((("1", "1"),)), SyntaxTask(), MathTask("5"), SqlTask("none.sqlite", "SELECT 1"))
    *verdicts, neighbour = judge.verify_many([*((task, answer) for task in tasks), (right, PROGRAM)])
    assert all(one.error is ErrorKind.BAD_TASK and "answer: " in one.detail for one in verdicts), verdicts
    assert neighbour.correct
    verdict = judge.call(CodeJudge(judge.pools["code"]).judge(answer, right))
    assert verdict.error is ErrorKind.BAD_TASK and "program: " in verdict.detail


@pytest.mark.parametrize(
    "content", [b"\xff\xfe\x00", b"# coding: latin-1\nx = '\xe9'\n", PROGRAM.encode("utf-16")], ids=repr
)
def test_a_file_that_is_no_text_is_no_wrong_answer(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "s.py").write_bytes(content)
    (tmp_path / "t.json").write_text(json.dumps({"kind": "syntax"}))
    result = CliRunner().invoke(command, [str(tmp_path / "s.py"), "-p", str(tmp_path / "t.json")])
    assert isinstance(result.exception, UserError) and result.exception.exit_code == 2
    assert str(tmp_path / "s.py") in str(result.exception)


def test_rlvr_judge_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "s.py").write_text(PROGRAM)
    (tmp_path / "t.json").write_text(json.dumps({**FORMS["tests"], "inprocess": "false"}))
    result = CliRunner().invoke(command, [str(tmp_path / "s.py"), "-p", str(tmp_path / "t.json")])
    assert isinstance(result.exception, UserError) and result.exception.exit_code == 2
    assert str(result.exception) == f"{tmp_path / 't.json'}: task.inprocess: 'false'; allowed: true or false"


@pytest.mark.parametrize("name", ["class", "", " f", "f\n", "a b", "f.", ".f", "a.b.c", "None", "1f", "f()", "A.class"])
def test_a_name_that_no_program_can_define_makes_a_bad_task(judge: Judge, name: str) -> None:
    program = "def f(x):\n    return x + 1\n"
    tasks = (CallsTask(name, (Call((1,), 2),)), TestsTask(name, ("assert candidate(1) == 2",)))
    for task in (*tasks, replace(tasks[1], inprocess=True)):
        verdict = judge.verify(task, program)
        assert verdict.error is ErrorKind.BAD_TASK and "entry_point" in verdict.detail, verdict
    with pytest.raises(UserError, match="entry_point"):
        task_of({"kind": "calls", "entry_point": name, "calls": [{"arguments": [1], "expected": 2}]})


def test_names_are_read_as_python_reads_them(judge: Judge) -> None:
    """Letters of full width are plain ones to Python, in a program and in its tests."""
    program = "def \uff46(x):\n    return x + 1\n"
    for name in ("f", "\uff46"):
        assert judge.verify(CallsTask(name, (Call((1,), 2),)), program).detail == "accepted"
        assert judge.verify(TestsTask(name, ("assert \uff46(1) == 2",)), program).detail == "accepted"


def test_a_method_is_no_plain_function(judge: Judge) -> None:
    task = CallsTask("f.g", (Call((1,), 2),))
    assert judge.verify(task, "def f(x):\n    return x + 1\n").correct is False
    assert judge.verify(task, "class f:\n    def g(self, x):\n        return x + 1\n").detail == "accepted"


def test_a_longest_line_has_a_length(judge: Judge) -> None:
    for length in (-1, 0):
        assert judge.verify(SyntaxTask(longest_line=length), "x = 1").error is ErrorKind.BAD_TASK
    assert judge.verify(SyntaxTask(longest_line=5), "x = 1").detail == "accepted"
