"""What is kept is kept under everything it depends on: two tasks that differ in anything never share a verdict."""

from __future__ import annotations

import json
import sqlite3
import time
from collections import deque
from contextlib import closing
from dataclasses import fields, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rlvrlab.envs.data_set import split_rows
from rlvrlab.envs.mathematics import Mathematics
from rlvrlab.envs.sql.databases import prepared, schema_of
from rlvrlab.judge.compare import Comparison
from rlvrlab.judge.jail import plain
from rlvrlab.judge.jail.limits import Limits
from rlvrlab.judge.judge import Judge
from rlvrlab.judge.keys import key_of, state_of
from rlvrlab.judge.modes.mathematics import MathTask
from rlvrlab.judge.modes.sql import SqlTask
from rlvrlab.judge.modes.sql_blueprint import blueprint_of
from rlvrlab.judge.tasks import Call, CallsTask, StdioTask, SyntaxTask, TestsTask

LONG = np.arange(2000)
DIFFERENT: list[Any] = [
    0, 0.0, -0.0, False, None, "", "0", b"", bytearray(), [], (), {}, set(), frozenset(), deque(), range(0), 2**60,
    2**60 + 1, 0.1, 0.1 + 2**-56, Decimal("1"), Decimal("1.0"), Fraction(1), 1, True, 1.0, complex(1), float("nan"),
    date(2020, 1, 1), datetime(2020, 1, 1), timedelta(1), [0], [[0]], [(0,)], {0: 1}, {1: 0}, "a\0b", ["a", "b"],
    ["ab", ""], LONG, np.where(LONG == 1000, -1, LONG), LONG.reshape(2, 1000), LONG.astype("int32"), np.int64(1),
    np.array([0.1234567891]), np.array([0.1234567892]), np.float32(1), Call((), 0), Call((0,), 0), "\ud800",
    "\ud800\udc00", "\U00010000",
]  # fmt: skip
TASKS: list[tuple[Any, dict[str, Any]]] = [
    (StdioTask((("1", "2"),)), {"tests": (("1", "3"),), "comparison": Comparison("float", 1e-9), "checker": "x"}),
    (CallsTask("f", (Call((1,), 2),)), {"entry_point": "g", "calls": (Call((1,), 2.0),), "comparison": Comparison()}),
    (TestsTask("f", ("assert f",)), {
        "entry_point": "g", "tests": ("assert g",), "setup": "x", "preamble": "x", "inprocess": True,
    }),
    (SyntaxTask(), {"functions": ("f",), "docstrings": True, "longest_line": 9, "forbidden": ("eval",)}),
    (SqlTask("a", "b"), {
        "database": "c", "gold": "c", "twins": ("c",), "engine": "duckdb", "float_tolerance": 0.5, "most_rows": 9,
    }),
    (MathTask("1"), {"gold": "2", "percent": True, "cents": True, "imaginary": True}),
]  # fmt: skip


def test_values_that_differ_have_different_keys_and_equal_ones_the_same() -> None:
    keys = [key_of(value) for value in DIFFERENT]
    assert len(set(keys)) == len(DIFFERENT)
    assert key_of("a", "b") != key_of("ab") and key_of(["a", "b"]) != key_of("a", "b")
    assert key_of(TASKS[1][0], "x" * 2) == key_of(replace(TASKS[1][0]), "".join(["x", "x"]))
    with pytest.raises(plain.NotPlain):
        key_of(object())


@pytest.mark.parametrize(("task", "others"), TASKS, ids=[type(task).__name__ for task, _ in TASKS])
def test_every_field_of_a_task_and_of_its_limits_counts(task: Any, others: dict[str, Any]) -> None:
    common: dict[str, Any] = {"limits": replace(task.limits, cpu_s=0.07), "packages": ("numpy",)}
    names = [one.name for one in fields(task)]
    changed = {name: {**common, **others}[name] for name in names}
    if isinstance(task, CallsTask):
        changed["comparison"] = Comparison("json")
    keys = [key_of(task), *(key_of(replace(task, **{name: value})) for name, value in changed.items())]
    keys += [key_of(replace(task, limits=replace(task.limits, **{one.name: 77}))) for one in fields(Limits)]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [(LONG, np.where(LONG == 1000, -1, LONG)), (np.array([0.1234567891]), np.array([0.1234567892]))],
    ids=["in the middle", "a late digit"],
)
def test_arrays_are_told_apart_by_every_member(numpy_judge: Judge, right: Any, wrong: Any) -> None:
    task = CallsTask("f", (Call((), right),), Comparison("json"), packages=("numpy",))
    program = f"import numpy as np\ndef f(): return np.array({right.tolist()})"
    assert numpy_judge.verify(task, program).correct is True
    other = replace(task, calls=(Call((), wrong),))
    assert numpy_judge.verify(other, program).correct is False
    assert "cached" in numpy_judge.verify(replace(task), program).cost


def test_a_database_that_has_changed_is_asked_again(judge: Judge, tmp_path: Path) -> None:
    path = tmp_path / "changing.sqlite"

    def holds(value: int) -> None:
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("CREATE TABLE IF NOT EXISTS t (a)")
            connection.execute("DELETE FROM t")
            connection.execute("INSERT INTO t VALUES (?)", (value,))
            connection.commit()

    holds(1)
    task, before = SqlTask(str(path), "SELECT a FROM t"), state_of(path)
    assert judge.verify(task, "SELECT 1").correct is True
    time.sleep(0.02)
    holds(2)
    assert state_of(path) != before and state_of(tmp_path / "nothing") == ()
    assert judge.verify(task, "SELECT 1").correct is False
    assert judge.verify(task, "SELECT 2").correct is True


def test_what_was_read_of_a_database_is_read_again_once_it_has_changed(tmp_path: Path) -> None:
    path, gold = tmp_path / "growing.sqlite", "SELECT a FROM t WHERE a < 3"

    def run(*statements: str) -> None:
        with closing(sqlite3.connect(path)) as connection:
            for statement in statements:
                connection.execute(statement)
            connection.commit()

    run("CREATE TABLE t (a INTEGER)", "INSERT INTO t VALUES (1), (2), (5)")
    before = schema_of(path), blueprint_of(path), prepared(path, gold)
    assert (schema_of(path), blueprint_of(path), prepared(path, gold)) == before
    assert prepared(path, gold) is before[2]
    time.sleep(0.02)
    run("CREATE TABLE u (b TEXT)", "INSERT INTO u VALUES ('x')", "INSERT INTO t VALUES (0), (7)")
    after = schema_of(path), blueprint_of(path), prepared(path, gold)
    assert all(one != other for one, other in zip(before, after, strict=True))


def test_rows_are_read_again_once_their_file_has_changed(tmp_path: Path) -> None:
    path, env = tmp_path / "rows.jsonl", Mathematics()
    sizes = []
    for number in (1, 2):
        rows = [{"question": f"What is {one} + 1?", "answer": f"#### {one + 1}"} for one in range(number)]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        sizes.append(len(split_rows(env, path)))
    assert sizes == [1, 2] and split_rows(env, path) is split_rows(env, path)


def test_what_gold_may_return_is_known_for_each_number_of_rows(judge: Judge, tmp_path: Path) -> None:
    path = tmp_path / "ties.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE t (id INTEGER, x INTEGER)")
        connection.executemany("INSERT INTO t VALUES (?, ?)", [(number, number // 4) for number in range(40)])
        connection.commit()
    gold, other = "SELECT id FROM t ORDER BY x LIMIT 5", "SELECT id FROM t ORDER BY x, id DESC LIMIT 5"
    few = SqlTask(str(path), gold, most_rows=5)
    assert judge.verify(few, gold).correct is True
    assert judge.verify(replace(few, most_rows=10_000), other).correct is True
