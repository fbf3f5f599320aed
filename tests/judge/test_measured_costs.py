"""A verdict tells what was measured and nothing else, for limits are learnt from it (`pipeline.limits = "learnt"`)."""

from __future__ import annotations

import asyncio
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rlvrlab.judge.fusion.plain_sandbox import judge_plain
from rlvrlab.judge.jail.limits import Limits
from rlvrlab.judge.judge import Judge
from rlvrlab.judge.modes.sql import SqlTask
from rlvrlab.judge.tasks import StdioTask
from rlvrlab.train.limits import FACTOR, SHORTEST_S, limit_after

PAIRS = "FROM t AS a JOIN t AS b ON (a.x * b.x) % 7 = 3"


@pytest.fixture
def database(tmp_path: Path) -> str:
    path = tmp_path / "numbers.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t (x INTEGER)")
        connection.executemany("INSERT INTO t VALUES (?)", [(number,) for number in range(1500)])
    connection.close()
    return str(path)


def test_a_slow_query_is_still_right_with_the_limit_that_was_learnt_from_it(judge: Judge, database: str) -> None:
    task = SqlTask(database, f"SELECT COUNT(*) {PAIRS}", limits=Limits(cpu_s=20.0, output_mb=16))
    first = judge.verify(task, task.gold)
    assert first.correct and first.cost["cpu_s"] > SHORTEST_S / FACTOR
    learnt = replace(task, limits=Limits(cpu_s=limit_after(first), output_mb=16))
    assert judge.verify(learnt, task.gold).correct, "neither it nor the gold query is out of time"


def test_what_the_gold_query_needs_is_part_of_the_cost_of_a_quick_answer(judge: Judge, database: str) -> None:
    task = SqlTask(database, f"SELECT COUNT(*) - COUNT(*) + 5 {PAIRS}", limits=Limits(cpu_s=20.0, output_mb=16))
    quick, again = (judge.verify(task, query) for query in ("SELECT 5", "SELECT 2 + 3"))
    assert quick.correct and again.correct
    assert min(quick.cost["cpu_s"], again.cost["cpu_s"]) > SHORTEST_S / FACTOR, "kept or not"


def test_what_a_checker_needs_is_part_of_the_cost_of_a_quick_program(judge: Judge) -> None:
    checker = "import time\nwhile time.process_time() < 0.3: pass"
    verdict = judge.verify(StdioTask((("", "5"),), checker=checker), "print(5)")
    assert verdict.correct and verdict.cost["cpu_s"] > 0.3


def test_a_server_that_tells_no_times_teaches_no_limit() -> None:
    async def run(*_: object, **__: object) -> dict[str, Any]:
        return {"status": "Success", "run_result": {"stdout": "5\n", "status": "Finished", "return_code": 0}}

    verdict = asyncio.run(judge_plain(run, "print(5)", StdioTask((("", "5"),)), every_test=True, allowed=False))
    assert verdict.correct and "cpu_s" not in verdict.cost
    assert limit_after(verdict) == 0.0
