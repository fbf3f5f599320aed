"""Assert code (HumanEval, MBPP): the tests run in a jailed process of their own and call the candidate over a socket.

Assert code that is nothing but data needs no tester: its calls are judged like those of `calls` mode. The code is read
in the jail (jail/roles/asserts.py), once per task; in a group of completions the reading is free.
`inprocess` puts both into one process, for tests that use classes or other names of the solution: `integrity: weak`.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from rlvrlab.judge.compare import EXACT, Comparison
from rlvrlab.judge.finding import BadTask, Finding, failure_of, raised, records_of, word
from rlvrlab.judge.modes.calls import EncodedCall, judge_encoded
from rlvrlab.judge.outcomes import Outcome
from rlvrlab.judge.tasks import TestsTask
from rlvrlab.judge.workers.orders import Order, Ran
from rlvrlab.judge.workers.worker import Worker

WEAK = "integrity: weak"
PYTHON = Comparison("python")
PARSED_KEPT = 4096


@dataclass(frozen=True, slots=True)
class ParsedTests:
    """The calls of all pieces of a task, and how many belong to each piece."""

    calls: tuple[EncodedCall, ...]
    sizes: tuple[int, ...]


@dataclass
class AssertReader:
    """Reads the tests of a task once and keeps the plan for the next completion."""

    parsed: OrderedDict[tuple[str, tuple[str, ...]], ParsedTests | None] = field(default_factory=OrderedDict)

    async def parse(self, worker: Worker, task: TestsTask) -> ParsedTests | None:
        """The task as data; None when its tests have to be run."""
        key = (task.entry_point, task.tests)
        if key not in self.parsed:
            job = {"role": "asserts", "entry_point": task.entry_point, "tests": task.tests}
            ran = await worker.run(Order(job, replace(task.limits, output_mb=16), scratch=False))
            first = (records_of(ran) or [("",)])[0]
            _, calls, sizes = first if first[0] == "calls" else ("", (), ())
            encoded = (EncodedCall(given, named, want, EXACT if same else PYTHON) for given, named, want, same in calls)
            self.parsed[key] = ParsedTests(tuple(encoded), tuple(sizes)) if calls else None
            if len(self.parsed) > PARSED_KEPT:
                self.parsed.popitem(last=False)
        return self.parsed[key]


async def judge_parsed(worker: Worker, code: str, parsed: ParsedTests, task: TestsTask, stop: bool) -> Finding:
    """A piece passes when all its calls do."""
    finding, right = await judge_encoded(worker, code, task.entry_point, parsed.calls, task.limits, stop)
    finding.total, start = len(parsed.sizes), 0
    for size in parsed.sizes:
        finding.passed += start + size <= len(right) and all(right[start : start + size])
        start += size
    return finding


async def judge_tests(worker: Worker, code: str, task: TestsTask, stop: bool, reader: AssertReader) -> Finding:
    """As data where the tests are nothing else, by running them otherwise."""
    if parsed := await reader.parse(worker, task):
        return await judge_parsed(worker, _program(code, task), parsed, task, stop)
    return await judge_split(worker, code, task, stop)


async def judge_split(worker: Worker, code: str, task: TestsTask, stop: bool) -> Finding:
    """Two children, one socket between them; the tester's report decides."""
    job = {"entry_point": task.entry_point, "setup": task.setup, "tests": task.tests, "stop": stop}
    ours, theirs = socket.socketpair()
    with ours, theirs:
        candidate = worker.start(
            Order({**_candidate_job(code, task), "role": "candidate"}, task.limits, peer=ours.fileno())
        )
        tester = worker.start(Order({**job, "role": "tester"}, task.limits, peer=theirs.fileno(), scratch=False))
    tested = await worker.finish(tester)
    if b'["candidate_gone"' not in tested.report:
        worker.cancel_soon(candidate)  # the tester has hung up, at which the candidate should end by itself
    ran = await worker.finish(candidate)
    finding = Finding(total=len(task.tests))
    finding.spent(ran, tested)
    _read_tester(finding, tested, ran, task)
    return finding


def _candidate_job(code: str, task: TestsTask) -> dict[str, Any]:
    return {"code": _program(code, task), "entry_point": task.entry_point}


def _program(code: str, task: TestsTask) -> str:
    return f"{task.preamble}\n{code}" if task.preamble else code


def _read_tester(finding: Finding, tester: Ran, candidate: Ran, task: TestsTask) -> None:
    records = records_of(tester)
    if records is None:
        raise BadTask("the tests wrote into the judge's channel")
    if candidate.killed != "cancelled":
        # Why the candidate ended, unless we cancelled it; exceptions in its calls are in the tester's report.
        known = ("compile", "no_entry_point", "memory")
        told = records_of(candidate) or ()
        fatal = [record for record in told if record[0] in known or (record[0] == "raised" and candidate.exit)]
        if failure := failure_of(candidate, task.limits, fatal):
            finding.fail(failure[0], failure[1], *failure[2])
    for record in records:
        if record[0] == "bad_test":
            raise BadTask(word(record, 1))
        _count(finding, record)
    if failure := failure_of(tester, task.limits, [record for record in records if record[0] != "raised"]):
        finding.fail(failure[0], f"while testing: {failure[1]}", *failure[2])
    if not any(record[0] == "complete" for record in records):
        finding.fail(Outcome.RUNTIME_ERROR, "the tests did not come to their end", "early_exit")


def _count(finding: Finding, record: Sequence[Any]) -> None:
    match record[0]:
        case "passed":
            finding.passed += 1
        case "failed":
            finding.fail(Outcome.WRONG_ANSWER, f"test {finding.passed + 1} of {finding.total}: {word(record, 1)}")
        case "raised" | "memory":
            outcome, detail, flags = raised(record)
            finding.fail(outcome, f"{detail} (test {finding.passed + 1} of {finding.total})", *flags)
        case "candidate_gone":
            finding.fail(Outcome.RUNTIME_ERROR, f"it ended before the tests did: {word(record, 1)}", "early_exit")


async def judge_inprocess(worker: Worker, code: str, task: TestsTask, stop: bool) -> Finding:
    """One child; the tests are sent once the candidate's top level has run."""
    job = {**_candidate_job(code, task), "role": "inprocess", "stop": stop}
    ours, theirs = socket.socketpair()
    with ours, _Sender(ours, [task.setup, *task.tests]):
        with theirs:
            child = worker.start(Order(job, task.limits, peer=theirs.fileno()))
        ran = await worker.finish(child)
    finding = Finding(total=len(task.tests), flags=[WEAK])
    finding.spent(ran)
    records = records_of(ran) or ()
    for record in records:
        if record[0] in ("passed", "failed"):
            _count(finding, record)
    finding.passed = max(0, finding.passed - 1)  # the first piece is the set-up
    if failure := failure_of(ran, task.limits, records):
        finding.fail(failure[0], failure[1], *failure[2])
    if not any(record[0] == "complete" for record in records):
        finding.fail(Outcome.RUNTIME_ERROR, "it ended before the tests did", "early_exit")
    return finding


class _Sender:
    """Hands over the tests once the child asks for them, and as fast as it takes them."""

    def __init__(self, channel: socket.socket, pieces: list[str]) -> None:
        body = json.dumps(pieces).encode()
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
