"""What is known about assert code whatever is answered: its calls, its labels, and what fails in it by itself.

Found out in the jail, once for each task, and kept for the next completion under everything that it depends on
(keys.py). What ran out of its budget says nothing about the task for certain, since that may have been the machine's
doing: it is not kept, and tests that could not be read get every label that they might deserve.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rlvrlab.judge.compare import EXACT, Comparison
from rlvrlab.judge.finding import BadTask, failure_of, records_of, word
from rlvrlab.judge.jail.limits import Limits
from rlvrlab.judge.keys import key_of
from rlvrlab.judge.modes.calls import EncodedCall
from rlvrlab.judge.outcomes import Outcome
from rlvrlab.judge.tasks import TestsTask
from rlvrlab.judge.workers.orders import Order
from rlvrlab.judge.workers.worker import Worker

PYTHON = Comparison("python")
TASKS_KEPT = 4096
READING = Limits(cpu_s=10.0, job_cpu_s=10.0, memory_mb=1024, output_mb=16)
"""For reading the tests, which is the judge's work: the labels of a task do not depend on what its answers may use."""


@dataclass(frozen=True, slots=True)
class ReadTests:
    """The calls of all pieces where the tests are nothing but data; otherwise the task as it is to be run."""

    calls: tuple[EncodedCall, ...]
    running: TestsTask
    stopping: bool = False
    """May the tests call the candidate less after a wrong answer?"""
    weak: bool = False
    """May the tests make code of what it returns (jail/evaluating.py)?"""
    unread: bool = False
    """Could the tests not be read? Then they are taken for stopping and weak."""


@dataclass
class TaskReader:
    """What was found out, by task."""

    known: OrderedDict[bytes, ReadTests] = field(default_factory=OrderedDict)
    problems: OrderedDict[bytes, str] = field(default_factory=OrderedDict)

    async def read(self, worker: Worker, task: TestsTask) -> ReadTests:
        """The task as data, or as it is to be run."""
        key = key_of(task, worker.image)
        if key in self.known:
            return self.known[key]
        job = {"role": "asserts", "entry_point": task.entry_point, "setup": task.setup, "tests": task.tests}
        ran = await worker.run(Order(job, READING, scratch=False))
        failure = failure_of(ran, READING, ())  # raises where the machine failed
        read = _read(task, records_of(ran) or () if failure is None else ())
        if not read.unread:
            _keep(self.known, key, read)
        return read

    async def blame(self, worker: Worker, task: TestsTask, as_data: bool) -> None:
        """BadTask when the task fails without any answer; tests that were read as data are not run for it."""
        for order in _trials(task, as_data):
            if problem := await self._problem(worker, order):
                raise BadTask(problem)

    async def _problem(self, worker: Worker, order: Order) -> str:
        """What fails in there without an answer, in words; empty where nothing does."""
        key = key_of(order.job, order.limits, worker.image)
        if key in self.problems:
            return self.problems[key]
        ran = await worker.run(order)
        failure, records = failure_of(ran, order.limits, ()), records_of(ran) or ()
        words = [word(record, 1) for record in records if record[0] == "bad_test"]
        if words or any(record[0] == "complete" for record in records) or order.job["role"] == "faults":
            problem = words[0] if words else ""
        else:
            problem = failure[1] if failure else "it exits"
        if failure is None or failure[0] is not Outcome.TIME_LIMIT:
            _keep(self.problems, key, problem)
        return problem


def _read(task: TestsTask, records: Sequence[Any]) -> ReadTests:
    match records:
        case [["calls", [*found], [*sizes]]]:
            pieces = [number for number, size in enumerate(sizes) for _ in range(size)]
            calls = tuple(
                EncodedCall(given, named, want, EXACT if same else PYTHON, piece)
                for (given, named, want, same), piece in zip(found, pieces, strict=True)
            )
            return ReadTests(calls, task)
        case [["going", weak, stopping, setup, *tests]]:
            return ReadTests((), replace(task, setup=setup, tests=tuple(tests)), stopping, weak)
        case [["stopping", weak]]:
            return ReadTests((), task, stopping=True, weak=weak)
    return ReadTests((), task, stopping=True, weak=True, unread=True)


def _trials(task: TestsTask, as_data: bool) -> list[Order]:
    """What the task brings along, in as many processes as an answer has, with what each of them may use.

    What its text shows is read by the judge, in the judge's time.
    """
    alone = {"role": "unaided", "entry_point": task.entry_point}
    texts = {"setup": task.setup, "tests": task.tests}
    preamble = Order({**alone, "part": "preamble", "preamble": task.preamble}, task.limits)
    trials = [preamble] if task.preamble else []
    if not as_data:
        part = "closed" if task.inprocess else "tests"
        trials.append(Order({**alone, "part": part, **texts}, task.limits, scratch=False))
        shown = {"role": "faults", "entry_point": task.entry_point, "inprocess": task.inprocess, **texts}
        trials.append(Order({**shown, "preamble": task.preamble}, READING, scratch=False))
    return trials


def _keep(known: OrderedDict[bytes, Any], key: bytes, value: Any) -> None:
    known[key] = value
    if len(known) > TASKS_KEPT:
        known.popitem(last=False)
