"""Assert code that is nothing but data needs no tester: its calls are judged like those of `calls` mode.

The code is read in the jail (jail/roles/asserts.py), once per task; in a group of completions the reading is free.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field, replace

from rlvrlab.judge.compare import EXACT, Comparison
from rlvrlab.judge.finding import Finding, records_of
from rlvrlab.judge.modes.calls import EncodedCall, judge_encoded
from rlvrlab.judge.tasks import TestsTask
from rlvrlab.judge.workers.orders import Order
from rlvrlab.judge.workers.worker import Worker

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
