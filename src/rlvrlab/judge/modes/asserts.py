"""Assert code (HumanEval, MBPP): the tests run in a jailed process of their own and call the candidate over a socket.

Assert code that is nothing but data needs no tester: its calls are judged like those of `calls` mode. The code is read
in the jail (jail/roles/asserts.py), once per task (task_reader.py); in a group of completions the reading is free.
`inprocess` puts both into one process, for tests that use classes or other names of the solution: `integrity: weak`.

Before an answer is called wrong, the task is tried without it (jail/roles/unaided.py), once: a preamble, setup or test
that fails by itself is the task's fault.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from rlvrlab.judge.finding import BadTask, Finding, failure_of, raised, records_of, word
from rlvrlab.judge.jail.frames import HALVES
from rlvrlab.judge.modes.calls import EncodedCall, judge_encoded
from rlvrlab.judge.modes.task_reader import ReadTests, TaskReader
from rlvrlab.judge.outcomes import WEAK, Outcome
from rlvrlab.judge.tasks import TestsTask
from rlvrlab.judge.workers.orders import Order, Ran
from rlvrlab.judge.workers.worker import Worker

STOPS_AT_FAILURE = "stops_at_failure"
"""Flag of a verdict whose tests may end, or call no more, after a wrong answer: the program can tell that it was wrong.

They might catch a failed assert, or go on only after a right answer by themselves (`and`, `all`, `raise`, `break`).
"""
UNREAD = "tests_unread"
"""Flag of a verdict whose tests could not be read in their budget: whether they are weak or stop is not known, so they
are flagged as both. That may have been the machine's doing, so neither the reading nor the verdict is kept."""


async def judge_tests(worker: Worker, code: str, task: TestsTask, every_test: bool, reader: TaskReader) -> Finding:
    """As data where the tests are nothing else, by running them otherwise."""
    read = ReadTests((), task) if task.inprocess else await reader.read(worker, task)
    if task.inprocess:
        finding = await judge_inprocess(worker, code, task)
    elif read.calls:
        finding = await judge_parsed(worker, code, read.calls, task, every_test)
    else:
        finding = await judge_split(worker, code, read.running, every_test)
    said = {STOPS_AT_FAILURE: read.stopping, WEAK: read.weak, UNREAD: read.unread}
    finding.flags += [flag for flag, deserved in said.items() if deserved]
    if finding.outcome is not Outcome.ACCEPTED and (task.preamble or not read.calls):
        await reader.blame(worker, task, as_data=bool(read.calls))
    return finding


async def judge_parsed(
    worker: Worker, code: str, calls: Sequence[EncodedCall], task: TestsTask, every_test: bool
) -> Finding:
    """A piece passes when all its calls do."""
    program = whole_program(code, task)
    finding, right = await judge_encoded(worker, program, task.entry_point, calls, task.limits, every_test)
    finding.total = len(task.tests)
    failed = {call.piece for call, fine in zip_longest(calls, right) if not fine}
    finding.passed = finding.total - len(failed)
    return finding


async def judge_split(worker: Worker, code: str, task: TestsTask, every_test: bool) -> Finding:
    """The pieces against one candidate; after a piece that ended it the others get a new one."""
    finding, done = Finding(total=len(task.tests)), 0
    while done < len(task.tests):
        end = finding.next_few(done)
        candidate, tester = await _both(worker, code, replace(task, tests=task.tests[done:end]))
        finding.spent(candidate, tester)
        ended: Outcome | None = None
        with finding.reading():
            reported, ended = _read_tester(finding, tester, candidate, task, first=done == 0)
            done += reported + (ended is not None)
        if finding.outcome is Outcome.ACCEPTED and ["complete", False] in (records_of(tester) or ()):
            raise BadTask(f"the tests never call {task.entry_point}, and everything would pass them")
        given_up = ended is not None and finding.stops(ended, every_test, len(task.tests) - done)
        if given_up or (ended is None and done < end):
            break
    return finding


async def _both(worker: Worker, code: str, task: TestsTask) -> tuple[Ran, Ran]:
    """Two children, one socket between them; the tester's report decides."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        job = {**_candidate_job(code, task), "role": "candidate"}
        candidate = worker.start(Order(job, task.limits, peer=ours.fileno(), followed=True))
        job = {"role": "tester", "entry_point": task.entry_point, "setup": task.setup, "tests": task.tests}
        tester = worker.start(Order(job, task.limits, peer=theirs.fileno(), scratch=False))
    candidate.look_later()  # or its report would fill the pipe, for which the clocks of both stand still
    try:
        tested = await worker.finish(tester)
    except BaseException:
        candidate.close()
        raise
    if b'["candidate_gone"' not in tested.report:
        worker.cancel_soon(candidate)  # the tester has hung up, at which the candidate should end by itself
    return await worker.finish(candidate), tested


def _candidate_job(code: str, task: TestsTask) -> dict[str, Any]:
    return {"code": whole_program(code, task), "entry_point": task.entry_point}


def whole_program(code: str, task: TestsTask) -> str:
    """The answer's program below what the task puts before it."""
    return f"{task.preamble}\n{code}" if task.preamble else code


def _read_tester(
    finding: Finding, tester: Ran, candidate: Ran, task: TestsTask, first: bool
) -> tuple[int, Outcome | None]:
    """How many pieces were reported, and what ended the candidate or the tester during the next one, if anything."""
    records = records_of(tester)
    if records is None:
        raise BadTask("the tests wrote into the judge's channel")
    ended: Outcome | None = None
    if candidate.killed != "cancelled":
        # Why the candidate ended, unless we cancelled it; exceptions in its calls are in the tester's report.
        known = ("compile", "no_entry_point", "memory")
        told = records_of(candidate) or ()
        fatal = [record for record in told if record[0] in known or (record[0] == "raised" and candidate.exit)]
        if failure := failure_of(candidate, task.limits, fatal):
            ended = failure[0]
            finding.fail(ended, failure[1], *failure[2])
    for record in records:
        if record[0] == "bad_test" and first:
            raise BadTask(word(record, 1))
        _count(finding, record)
    if failure := failure_of(tester, task.limits, [record for record in records if record[0] != "raised"]):
        ended = ended or failure[0]
        finding.fail(failure[0], f"while testing: {failure[1]}", *failure[2])
    reported = sum(record[0] in ("passed", "failed", "raised", "bad_test") for record in records)
    if any(record[0] == "complete" for record in records):
        return reported, None
    finding.fail(Outcome.RUNTIME_ERROR, "the tests did not come to their end", "early_exit")
    loaded = any(record[0] == "loaded" for record in records)
    return reported, (ended or Outcome.RUNTIME_ERROR) if loaded else None


def _count(finding: Finding, record: Sequence[Any]) -> None:
    match record[0]:
        case "passed":
            finding.passed += 1
        case "failed" | "bad_test":
            finding.fail(Outcome.WRONG_ANSWER, f"test {finding.passed + 1} of {finding.total}: {word(record, 1)}")
        case "raised" | "memory":
            outcome, detail, flags = raised(record)
            finding.fail(outcome, f"{detail} (test {finding.passed + 1} of {finding.total})", *flags)
        case "candidate_gone":
            finding.fail(Outcome.RUNTIME_ERROR, f"it ended before the tests did: {word(record, 1)}", "early_exit")


async def judge_inprocess(worker: Worker, code: str, task: TestsTask) -> Finding:
    """One child; the tests are sent once the candidate's top level has run."""
    job = {**_candidate_job(code, task), "role": "inprocess"}
    ours, theirs = socket.socketpair()
    with ours, _Sender(ours, [task.setup, *task.tests]):
        with theirs:
            child = worker.start(Order(job, task.limits, peer=theirs.fileno()))
        ran = await worker.finish(child)
    finding = Finding(total=len(task.tests), flags=[WEAK])
    finding.spent(ran)
    with finding.reading():
        records = records_of(ran) or ()
        setup, *results = [one for one in records if one[0] in ("passed", "failed", "raised", "memory")] or [
            ("passed",)
        ]
        if setup[0] == "failed":
            finding.fail(Outcome.WRONG_ANSWER, f"the setup: {word(setup, 1)}")
        for record in results:
            _count(finding, record)
        if failure := failure_of(ran, task.limits, records):
            finding.fail(failure[0], failure[1], *failure[2])
        if not any(record[0] == "complete" for record in records):
            finding.fail(Outcome.RUNTIME_ERROR, "it ended before the tests did", "early_exit")
    return finding


class _Sender:
    """Hands over the tests once the child asks for them, and as fast as it takes them."""

    def __init__(self, channel: socket.socket, pieces: list[str]) -> None:
        body = json.dumps(pieces, ensure_ascii=False).encode("utf-8", HALVES)
        self._channel, self._left = channel, memoryview(struct.pack("=I", len(body)) + body)
        self._loop = asyncio.get_running_loop()

    def __enter__(self) -> None:
        self._channel.setblocking(False)
        self._loop.add_reader(self._channel, self._asked)

    def __exit__(self, *_: object) -> None:
        self._loop.remove_reader(self._channel)
        self._loop.remove_writer(self._channel)

    def _asked(self) -> None:
        self._loop.remove_reader(self._channel)
        with suppress(OSError):
            if self._channel.recv(1):
                self._send()

    def _send(self) -> None:
        try:
            self._left = self._left[self._channel.send(self._left) :]
        except BlockingIOError:
            pass
        except OSError:  # the child is gone
            self._left = self._left[:0]
        if self._left:
            self._loop.add_writer(self._channel, self._send)
        else:
            self._loop.remove_writer(self._channel)
