"""Traces that the traced program cannot write itself, and reports of them that cost no more than an honest one."""

# ruff: noqa: E501 - a program per line
from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import pytest

from rlvrlab.judge.jail.limits import Limits
from rlvrlab.judge.jail.roles.trace import MOST_NAMES, MOST_STATES
from rlvrlab.judge.judge import Judge
from rlvrlab.judge.modes import traces
from rlvrlab.judge.modes.traces import trace_calls
from rlvrlab.judge.tasks import Call, CallsTask, TestsTask
from rlvrlab.judge.workers.orders import Ran

TASK = CallsTask("f", (Call((1,), 2), Call((2,), 3)))
HONEST = "def f(x):\n    y = x + 1\n    return y\n"
STATES = "[['return', 1]]"
TAMPERING = {
    "f_trace": f"import sys\ndef f(x):\n    sys._getframe().f_trace.__self__.states.append([2, {STATES}])\n    return x\n",
    "no f_trace": "import sys\ndef f(x):\n    sys._getframe().f_trace = None\n    return x\n",
    "f_trace_lines": "import sys\ndef f(x):\n    sys._getframe().f_trace_lines = False\n    return x\n",
    "settrace": "import sys\ndef f(x):\n    sys.settrace(None)\n    return x\n",
    "threading": "import threading\ndef f(x):\n    threading.settrace(None)\n    return x\n",
    "caller": f"import sys\ndef f(x):\n    sys._getframe(1).f_locals['states'].append([2, {STATES}])\n    return x\n",
    "generator": "def f(x):\n    (i for i in ()).gi_frame.f_back.f_trace = None\n    return x\n",
    "traceback": "def f(x):\n    try: 1 / 0\n    except ZeroDivisionError as e: e.__traceback__.tb_frame.f_trace = None\n    return x\n",
    "heap": "import gc\ndef f(x):\n    [o.clear() for o in gc.get_objects() if type(o) is list]\n    return x\n",
    "report": f"import os\nos.write(3, b'[\"states\", [[2, {json.dumps([['return', 1]])}]]]\\n')\ndef f(x):\n    return x\n",
    "replaced module": "import zlib\nzlib.crc32 = len\ndef f(x):\n    return x\n",
    "another encoding": "# coding: utf-7\n#+AAo-import sys+AAo-sys.settrace(None)\ndef f(x):\n    return x\n",
    "no code": "class F:\n    __code__ = (lambda x: x).__code__\n    def __call__(self, x): return x\nf = F()\n",
}  # fmt: skip


def test_a_program_that_can_reach_its_trace_has_none(judge: Judge) -> None:
    honest, *found = judge.trace_many([(TASK, HONEST), *((TASK, program) for program in TAMPERING.values())])
    assert [[seen.line for seen in call] for call in honest] == [[0, 2, 3]] * 2
    assert [name for name, trace in zip(TAMPERING, found, strict=True) if trace] == []


def test_a_name_that_the_task_imported_is_not_the_programs_own(judge: Judge) -> None:
    reaching = "def f(x):\n    inner.settrace(None)\n    return x\n"
    above = [TestsTask("f", ("assert f(1) == 2",), preamble=text) for text in ("import math", "import sys as inner")]
    harmless, reached = judge.trace_many([(above[0], HONEST), (above[1], reaching)])
    assert len(harmless) == 1 and reached == ()


def followed(report: bytes, calls: int) -> tuple[traces.Trace, ...]:
    """What is made of a report."""

    async def run(_: object) -> Ran:
        return Ran(0, "", 0.0, 0.0, 1.0, report=report)

    worker: Any = SimpleNamespace(run=run)
    return asyncio.run(trace_calls(worker, HONEST, "f", [((), ())] * calls, Limits()))


def line(states: int, names: int = 1) -> bytes:
    state = [1, [[f"v{at}", 7] for at in range(names)]]
    return json.dumps(["states", [state] * states]).encode() + b"\n"


def test_a_report_of_more_than_there_can_be_says_nothing() -> None:
    largest = line(MOST_STATES, MOST_NAMES + 1)
    assert [len(call) for call in followed(largest * 2, 2)] == [MOST_STATES] * 2
    assert followed(line(1) * 3, 2) == ()
    assert followed(line(MOST_STATES + 1), 2) == ()


def test_such_a_report_is_not_even_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    from rlvrlab.judge.workers import worker

    monkeypatch.setattr(worker, "scan", None)
    for report in (line(520_000, 0), line(1, 430_000), b"1\n" * 199_999):
        assert followed(report, 2) == ()


def test_only_so_many_variables_are_looked_at(judge: Judge) -> None:
    names = [f"v{at}" for at in range(MOST_NAMES + 20)]
    program = f"def f(x):\n    {' = '.join(names)} = x\n    return x\n"
    [(call, _)] = judge.trace_many([(TASK, program)])
    assert len(call[-1].values) == MOST_NAMES + 1 and "return" in call[-1].values
