"""Attacks that once worked, and honest programs that were once refused: each fails without its mend."""

from __future__ import annotations

import asyncio
import itertools
import socket
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from rlvrlab.errors import UserError
from rlvrlab.judge.compare import Comparison, Kind
from rlvrlab.judge.extract import program_in
from rlvrlab.judge.fusion import wire
from rlvrlab.judge.jail.limits import Limits
from rlvrlab.judge.judge import Judge
from rlvrlab.judge.modes.sql import SqlTask
from rlvrlab.judge.task_forms import task_of
from rlvrlab.judge.tasks import Call, CallsTask, StdioTask, SyntaxTask, TestsTask
from rlvrlab.judge.workers.orders import Ran
from rlvrlab.types import ErrorKind

ONE = CallsTask("f", (Call((1,), 2),))
FORGE = "import os\ndef f(x):\n    os.write(3, {line!r})\n    os._exit(0)\n"


def printed(judge: Judge, program: str, expected: str = "ok") -> str:
    return judge.verify(StdioTask((("", expected),)), program).detail


# The report channel: whatever a candidate writes there, the judge gives a verdict.


@pytest.mark.parametrize("value", [b"[]", b'["int"]', b'["set"]', b'["Fraction", 3]', b"1" + b"0" * 400])
@pytest.mark.parametrize("kind", ["exact", "python", "float", "unordered"])
def test_malformed_results_are_wrong_answers(judge: Judge, value: bytes, kind: Kind) -> None:
    for expected in (2.5, [2], {2}):
        task = CallsTask("f", (Call((1,), expected),), Comparison(kind))
        verdict = judge.verify(task, FORGE.format(line=b'["value", ' + value + b"]\n"))
        assert verdict.error is ErrorKind.WRONG


def test_sets_within_sets_cost_the_judge_no_time(judge: Judge, quickly: Any) -> None:
    program = (
        "import os\ndef f(x):\n"
        "    nested = b'[\"set\",[' * 150 + b'\"' + b'a' * 3_900_000 + b'\"' + b']]' * 150\n"
        "    os.write(3, b'[\"value\",' + nested + b']\\n')\n    os._exit(0)\n"
    )
    task, tries = TestsTask("f", ("assert f(1) == 2",)), itertools.count()
    verdict = quickly(2, lambda: judge.verify(task, f"{program}# {next(tries)}"), clock=time.process_time)
    assert verdict.error is ErrorKind.WRONG


def test_forged_files_do_not_break_the_answer_of_run_code() -> None:
    ran = Ran(0, "", 0.1, 0.1, 1.0, report=b'["file", [], {}]\n')
    assert wire.run_code_response(ran, Limits(), "landlock")["status"] == "Success"


def test_run_code_hands_over_no_file_that_was_not_asked_for() -> None:
    """A client may write what it gets to a place of that name."""
    report = b'["file", "../../home/me/.profile", "YQ=="]\n["file", "out", ["YQ=="]]\n["file", "in", "YQ=="]\n'
    ran = Ran(0, "", 0.1, 0.1, 1.0, report=report)
    assert wire.run_code_response(ran, Limits(), "landlock", ["out", "in"])["files"] == {"in": "YQ=="}


# Isolation.


def test_datagrams_to_socket_files_are_refused(judge: Judge, tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(path))
        listening.setblocking(False)
        program = (
            "import socket\na, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
            f"a.send(b'x')\nb.recv(1)\na.sendto(b'hello', {str(path)!r})\n"
        )
        assert "PermissionError" in printed(judge, program) and "line 5" in printed(judge, program)
        with pytest.raises(BlockingIOError):
            listening.recv(10)


def test_directories_nobody_may_write_do_not_hang_the_worker(judge: Judge) -> None:
    program = "import os\nos.makedirs('a/b')\nos.mkdir('a/c', 0)\nos.mkdir('a/b/d', 0o500)\nprint('ok')"
    items = [(StdioTask((("", "ok"),)), text) for text in (program, "import os\nprint(os.listdir('.') or 'ok')")]
    judging = asyncio.run_coroutine_threadsafe(judge.averify_many(items), judge._loop)
    assert all(verdict.correct for verdict in judging.result(timeout=60))


# Escaping the penalty: a wrong program must not become an unjudged one.


@pytest.mark.slow
def test_a_program_cannot_pass_for_killed_by_the_machine(judge: Judge) -> None:
    program = (
        "import resource\nresource.getrlimit(resource.RLIMIT_CPU)\n"
        "try:\n    resource.setrlimit(resource.RLIMIT_CPU, (1, 1))\nexcept (ValueError, OSError):\n    print('no')\n"
        "while True: pass\n"
    )
    task = StdioTask((("", "ok"),), limits=Limits(cpu_s=1.5))
    assert judge.verify(task, program).error is ErrorKind.TIMEOUT


def test_a_deep_result_passed_back_is_the_candidates_fault(judge: Judge) -> None:
    program = "def f(x):\n    r = []\n    for _ in range(100): r = [r]\n    return r\n"
    task = TestsTask("f", ("x = f(1)\nassert f(x) == 1",))
    assert judge.verify(task, program).correct is False


# Wrong, and accepted.


@pytest.mark.parametrize("task", [CallsTask("f", ()), StdioTask(()), TestsTask("f", ())])
def test_a_task_without_tests_accepts_nobody(judge: Judge, task: Any) -> None:
    verdict = judge.verify(task, "def f(x): return 0")
    assert verdict.correct is None and "bad_task" in verdict.flags


@pytest.mark.parametrize(
    "program", ["from os import path", "import os.path as p", "from os.path import join", "from sys import os"]
)
def test_forbidden_modules_by_other_ways(judge: Judge, program: str) -> None:
    assert judge.verify(SyntaxTask(forbidden=("os",)), program).correct is False
    assert judge.verify(SyntaxTask(forbidden=("so",)), program).correct is True


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("attacks") / "big.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE t (id INTEGER, word TEXT)")
        rows = [(10_000_000_001 + i, f"{i % 9973:x}" * 40) for i in range(30_000)]
        connection.executemany("INSERT INTO t VALUES (?, ?)", rows)
        connection.commit()
    return str(path)


def test_sql_integers_are_exact(judge: Judge, database: str) -> None:
    task = SqlTask(database, "SELECT id FROM t WHERE id < 10000000004")
    assert judge.verify(task, "SELECT id + 1 FROM t WHERE id < 10000000004").correct is False
    assert judge.verify(task, "SELECT id FROM t WHERE id < 10000000004 ORDER BY id DESC").correct
    assert judge.verify(task, "SELECT id * 1.0 FROM t WHERE id < 10000000004").correct


@pytest.mark.slow
def test_sql_neighbours_do_not_pay_for_a_hog(judge: Judge, database: str) -> None:
    task = SqlTask(database, "SELECT count(*) FROM t")
    many = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < {}) SELECT {} FROM c"
    hogs = [many.format(20, "hex(zeroblob(1000000))"), many.format(400, "zeroblob(4000000)")]
    queries = ["SELECT 30000", hogs[0], "SELECT 30000 ", hogs[1], "SELECT 30000  "]
    verdicts = judge.verify_many([(task, query) for query in queries])
    assert [verdict.correct for verdict in verdicts] == [True, False, True, False, True]


def test_sql_sorts_without_a_folder(judge: Judge, database: str) -> None:
    gold = "SELECT count(*) FROM (SELECT DISTINCT a.word FROM t a ORDER BY a.word || a.id LIMIT 9973)"
    assert judge.verify(SqlTask(database, gold), gold + " ").correct


# Requests nobody means well.


@pytest.mark.parametrize("seconds", [float("inf"), float("nan"), -1, 1e300, "soon", [1]])
def test_limits_that_are_none(seconds: Any) -> None:
    with pytest.raises(UserError):
        wire.limits_of({"run_timeout": seconds})
    with pytest.raises(UserError):
        task_of({"kind": "stdio", "tests": [["", ""]], "limits": {"cpu_s": seconds}})


@pytest.mark.parametrize("text", ["\n" * 50_000, "``````x\n" * 5_000, "`" * 50_000, "\n " * 30_000])
def test_extraction_takes_linear_time(quickly: Any, text: str) -> None:
    quickly(1, lambda: program_in(text))


# Honest programs.


@pytest.mark.parametrize(
    "program",
    [
        "print('ok')\nexit()",
        "print('ok')\nquit(0)",
        "import resource\nresource.setrlimit(resource.RLIMIT_STACK, (2**29, 2**29))\nprint('ok')",
    ],
)
def test_contest_idioms(judge: Judge, program: str) -> None:
    assert printed(judge, program) == "accepted"


def test_integers_of_thousands_of_digits(judge: Judge) -> None:
    task = CallsTask("f", (Call((5000,), 10**5000),))
    assert judge.verify(task, "def f(x): return 10 ** x").correct
    assert judge.verify(task, "def f(x): return 10 ** x + 1").correct is False


@pytest.mark.parametrize(
    ("value", "expected", "equal"),
    [
        ("Fraction(1, 2)", "0.5", True),
        ("Decimal('2.0')", "2", True),
        ("{Decimal(2): [Fraction(3)]}", "{2: [3]}", True),
        ("Decimal('0.1')", "0.1", False),
        ("Fraction(1, 3)", "0.3333333333333333", False),
    ],
)
def test_numbers_of_other_kinds_in_asserts(judge: Judge, value: str, expected: str, equal: bool) -> None:
    program = f"from fractions import Fraction\nfrom decimal import Decimal\ndef f(): return {value}"
    assert judge.verify(TestsTask("f", (f"assert f() == {expected}",)), program).correct is equal


def test_a_database_that_went_away_is_nobodys_wrong_answer(tmp_path: Path) -> None:
    databases = [tmp_path / "one.db", tmp_path / "two.db"]
    for path in databases:
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("CREATE TABLE t (a)")
            connection.execute("INSERT INTO t VALUES (1)")
            connection.commit()
    tasks = [SqlTask(gold="SELECT a FROM t", database=str(path)) for path in databases]
    with Judge() as judge:
        assert [v.correct for v in judge.verify_many([(task, "SELECT a FROM t") for task in tasks])] == [True, True]
        databases[0].unlink()
        gone, there = judge.verify_many([(task, "SELECT a + 0 FROM t") for task in tasks])
    assert gone.correct is None and "no database" in gone.detail
    assert there.correct is True
