"""What is found out about a task without an answer: labels are never lost, and no task decides about another."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from rlvrlab.judge.finding import BadTask
from rlvrlab.judge.jail.limits import Limits
from rlvrlab.judge.judge import Judge
from rlvrlab.judge.modes import task_reader
from rlvrlab.judge.modes.asserts import STOPS_AT_FAILURE, UNREAD
from rlvrlab.judge.modes.task_reader import TaskReader
from rlvrlab.judge.outcomes import WEAK
from rlvrlab.judge.tasks import TestsTask
from rlvrlab.judge.workers.orders import Image, Ran

FORGES = """def f(x): return "type('A', (), {'__eq__': lambda s, o: True})()" """
EVALUATES = "assert eval(candidate(1)) == 2"
BUSY = "import time\nt = time.process_time()\nwhile time.process_time() - t < {seconds}: pass\n"


def numbers(count: int) -> str:
    return "DATA = [" + ",".join(map(str, range(count))) + "]"


def fresh(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> TaskReader:
    reader = TaskReader()
    monkeypatch.setattr(judge._code, "reader", reader)
    return reader


def test_tests_that_cannot_be_read_have_every_label_and_are_read_again(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = fresh(judge, monkeypatch)
    task = TestsTask("f", (EVALUATES,), setup=numbers(60_000))
    with monkeypatch.context() as hurried:
        hurried.setattr(task_reader, "READING", Limits(cpu_s=0.05, job_cpu_s=0.05))
        verdict = judge.verify(task, FORGES)
        assert {WEAK, STOPS_AT_FAILURE, UNREAD} <= set(verdict.flags)
        assert not reader.known
    again = judge.verify(task, FORGES)
    assert "cached" not in again.cost and WEAK in again.flags and UNREAD not in again.flags
    assert "cached" in judge.verify(task, FORGES).cost


def test_labels_do_not_depend_on_the_time_that_answers_have(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh(judge, monkeypatch)
    task = TestsTask("f", (EVALUATES,), setup=numbers(40_000), limits=Limits(cpu_s=0.3, job_cpu_s=0.3))
    verdict = judge.verify(task, FORGES)
    assert WEAK in verdict.flags and UNREAD not in verdict.flags


class Scripted:
    """A worker whose children end as the test says."""

    image = Image()

    def __init__(self, *ends: Ran) -> None:
        self.ends, self.orders = list(ends), 0

    async def run(self, order: Any) -> Ran:
        self.orders += 1
        return self.ends.pop(0)


SLOW, FINE = Ran(-9, "cpu", 3.1, 3.1, 9.0), Ran(0, "", 0.1, 0.1, 9.0, report=b'["complete"]\n')
BROKEN = Ran(0, "", 0.1, 0.1, 9.0, report=b'["bad_test", "ImportError: x"]\n')
DATA = Ran(0, "", 0.1, 0.1, 9.0, report=b'["stopping", false]\n')


@pytest.mark.parametrize(
    "end",
    [
        SLOW,
        Ran(-11, "", 0.1, 0.1, 9.0),
        Ran(1, "", 0.1, 0.1, 9.0),
        Ran(0, "", 0.1, 0.1, 9.0),
        replace(SLOW, report=DATA.report),
    ],
)
def test_no_end_of_the_reading_leaves_a_task_without_labels(end: Ran) -> None:
    reader, worker = TaskReader(), Scripted(end, DATA)
    read = asyncio.run(reader.read(worker, TestsTask("f", ("assert f(1)",))))  # type: ignore[arg-type]
    assert read.weak and read.stopping and read.unread and not reader.known
    read = asyncio.run(reader.read(worker, TestsTask("f", ("assert f(1)",))))  # type: ignore[arg-type]
    assert (read.weak, read.stopping, read.unread) == (False, True, False) and len(reader.known) == 1


def test_a_task_that_ran_out_of_time_by_itself_is_tried_again() -> None:
    reader, task = TaskReader(), TestsTask("f", ("assert f(1)",))
    worker: Any = Scripted(SLOW, FINE, FINE)
    with pytest.raises(BadTask):
        asyncio.run(reader.blame(worker, task, as_data=False))
    for _ in range(2):
        asyncio.run(reader.blame(worker, task, as_data=False))
    assert worker.orders == 3


def test_a_text_that_could_not_be_read_in_time_is_not_to_blame_and_read_again() -> None:
    reader, task = TaskReader(), TestsTask("f", ("assert f(1)",))
    worker: Any = Scripted(FINE, SLOW, FINE)
    for _ in range(3):
        asyncio.run(reader.blame(worker, task, as_data=False))
    assert worker.orders == 3


@pytest.mark.parametrize(
    "changed",
    [
        {"limits": Limits(cpu_s=0.7)}, {"entry_point": "g"}, {"setup": "x = 1"},
        {"inprocess": True}, {"tests": ("assert f(2)",)},
    ],
)  # fmt: skip
def test_nothing_that_was_found_out_is_said_of_another_task(changed: dict[str, Any]) -> None:
    reader, task = TaskReader(), TestsTask("f", ("assert f(1)",))
    with pytest.raises(BadTask):
        asyncio.run(reader.blame(Scripted(BROKEN), task, as_data=False))  # type: ignore[arg-type]
    with pytest.raises(BadTask):
        asyncio.run(reader.blame(Scripted(), task, as_data=False))  # type: ignore[arg-type]
    worker: Any = Scripted(FINE, FINE)
    asyncio.run(reader.blame(worker, replace(task, **changed), as_data=False))
    assert worker.orders >= 1


def test_a_task_with_little_time_does_not_spoil_the_same_one_with_more(judge: Judge) -> None:
    task = TestsTask("f", ("assert candidate(1) + 0 == 2",), setup="for step in range(3_000_000): pass")
    assert judge.verify(replace(task, limits=Limits(cpu_s=0.03, job_cpu_s=0.03)), "def f(x): return 0").correct is None
    assert judge.verify(task, "def f(x): return 0").correct is False


@pytest.mark.parametrize("inprocess", [False, True])
def test_every_piece_has_its_budget_where_the_task_is_tried_alone(judge: Judge, inprocess: bool) -> None:
    pieces = tuple(BUSY.format(seconds=0.2) + f"assert f({number}) + 0 == {number + 1}" for number in range(4))
    task = TestsTask("f", pieces, inprocess=inprocess, limits=Limits(cpu_s=0.5, job_cpu_s=5.0))
    right, wrong = judge.verify_many([(task, "def f(x): return x + 1"), (task, "def f(x): return x")])
    assert right.correct is True and wrong.correct is False


def test_the_preamble_has_a_budget_of_its_own(judge: Judge) -> None:
    task = TestsTask(
        "f",
        (BUSY.format(seconds=0.3) + "assert f(1) + 0 == 2",),
        preamble=BUSY.format(seconds=0.3),
        limits=Limits(cpu_s=0.5, job_cpu_s=0.5),
    )
    right, wrong = judge.verify_many([(task, "def f(x): return x + 1"), (task, "def f(x): return x")])
    assert right.correct is True and wrong.correct is False
