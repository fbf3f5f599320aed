"""A SandboxFusion that only runs programs: what it may judge, what has to be allowed, and how weak that is."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from test_fusion_client import FINE, Flaky, answered

from rlvrlab.errors import JudgeLost
from rlvrlab.judge.fusion.client import FusionClient
from rlvrlab.judge.fusion.plain_sandbox import judge_plain
from rlvrlab.judge.fusion.server import run_code
from rlvrlab.judge.isolation import probe
from rlvrlab.judge.outcomes import WEAK
from rlvrlab.judge.tasks import Call, CallsTask, StdioTask, SyntaxTask, Task, TestsTask
from rlvrlab.judge.workers.pool import Pool
from rlvrlab.types import ErrorKind, Verdict

TASK = TestsTask("double", ("assert double(2) == 4", "assert double(0) == 0", "assert double(5) == 10"),
                 setup="import math\ndef double(x):\n    pass\n")  # fmt: skip
RIGHT = "from __future__ import annotations\ndef double(x):\n    return x * 2\n"


def judged(*programs: str, task: Task = TASK) -> list[Verdict]:
    """By a sandbox that runs what it is sent: the laboratory's own, asked as a plain one."""

    async def go() -> list[Verdict]:
        pool = Pool(size=1)

        async def run(code: str, stdin: str = "", **options: Any) -> dict[str, Any]:
            return await run_code(pool, {"code": code, "language": "python", "stdin": stdin, **options})

        try:
            return [await judge_plain(run, code, task, every_test=True, allowed=True) for code in programs]
        finally:
            pool.close()

    return asyncio.run(go())


@pytest.mark.skipif(probe().best == "weak", reason="this machine cannot isolate programs")
def test_when_allowed_it_judges_assert_code_and_says_that_it_is_weak() -> None:
    some = "def double(x):\n    return 4 if x == 2 else 0\n"
    leaves = "import os\ndef double(x):\n    os._exit(0)\n"
    right, wrong, early, broken, raises = judged(
        RIGHT, some, leaves, "def double(x:\n", "def double(x):\n    return 1 // 0\n"
    )
    assert right.correct and right.score == 1.0 and (right.passed, right.total) == (3, 3)
    assert (wrong.correct, wrong.error, wrong.passed) == (False, ErrorKind.WRONG, 2)
    assert wrong.score == pytest.approx(2 / 3), "the share of tests, not the first failure"
    assert early.correct is False and "early_exit" in early.flags
    assert broken.error is ErrorKind.SYNTAX and raises.error is ErrorKind.RUNTIME
    assert all(WEAK in verdict.flags for verdict in (right, wrong, early, broken))
    assert [v.correct for v in judged("x = 1", "x = = 1", task=SyntaxTask())] == [True, False]


def test_what_stands_for_unreadable_bytes_is_no_expected_output() -> None:
    async def run(*_: object, **__: object) -> dict[str, Any]:
        return {"status": "Success", "run_result": {"stdout": "\ufffd", "status": "Finished", "return_code": 0}}

    task = StdioTask((("", "\ufffd"),))
    verdict = asyncio.run(judge_plain(run, "", task, every_test=True, allowed=False))
    assert (verdict.correct, verdict.error) == (None, ErrorKind.BAD_TASK)


@pytest.mark.parametrize("task", [TASK, SyntaxTask(), CallsTask("double", (Call((2,), 4),))])
def test_what_is_not_allowed_stops_the_run_instead_of_leaving_answers_unjudged(task: Task) -> None:
    async def go() -> Verdict:
        server = Flaky(answered(200, FINE))
        client = FusionClient((await server.start(),))
        try:
            return await client.judge(RIGHT, task)
        finally:
            await client.close()
            await server.stop()

    with pytest.raises(JudgeLost, match="rlvr serve judge"):
        asyncio.run(go())
