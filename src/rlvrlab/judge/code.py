"""The code judge: a program and a task in, a verdict out. Infrastructure trouble is retried and never scored."""

from __future__ import annotations

from dataclasses import dataclass, field

from rlvrlab.errors import InfrastructureError
from rlvrlab.judge.finding import BadTask, Finding, Starved
from rlvrlab.judge.modes.assert_data import AssertReader
from rlvrlab.judge.modes.asserts import judge_inprocess, judge_tests
from rlvrlab.judge.modes.calls import judge_calls
from rlvrlab.judge.modes.stdio import judge_stdio
from rlvrlab.judge.modes.syntax import judge_syntax
from rlvrlab.judge.outcomes import Outcome
from rlvrlab.judge.tasks import CallsTask, StdioTask, SyntaxTask, Task, TestsTask
from rlvrlab.judge.workers.pool import Pool
from rlvrlab.judge.workers.worker import Worker
from rlvrlab.types import Verdict, unjudged

SCORER_VERSION = "code-2"
LARGEST_PROGRAM = 2 << 20
ATTEMPTS = 3


@dataclass
class CodeJudge:
    """Programs against tasks, in the workers of one pool."""

    pool: Pool = field(default_factory=Pool)
    stop_on_first_failure: bool = True
    reader: AssertReader = field(default_factory=AssertReader)

    async def judge(self, code: str, task: Task) -> Verdict:
        """One program; tried again when the machine failed it."""
        isolation = self.pool.image.isolation
        if len(code) > LARGEST_PROGRAM:
            reason = f"a program of {len(code):,} characters; at most {LARGEST_PROGRAM:,}"
            return Finding(Outcome.COMPILE_ERROR, reason).verdict(isolation)
        trouble = ""
        for _ in range(ATTEMPTS):
            try:
                async with self.pool.worker() as worker:
                    return (await self._find(worker, code, task)).verdict(isolation)
            except BadTask as error:
                return unjudged(f"bad task: {error}", isolation=isolation, flags=("bad_task",))
            except (Starved, InfrastructureError, OSError) as error:
                trouble = str(error)
        return unjudged(f"{Outcome.JUDGE_ERROR}: {trouble}", isolation=isolation)

    async def _find(self, worker: Worker, code: str, task: Task) -> Finding:
        if not isinstance(task, SyntaxTask) and not (task.calls if isinstance(task, CallsTask) else task.tests):
            raise BadTask("it has no tests, and everything would pass them")
        match task:
            case StdioTask():
                return await judge_stdio(worker, code, task, self.stop_on_first_failure)
            case CallsTask():
                return await judge_calls(worker, code, task, self.stop_on_first_failure)
            case TestsTask(inprocess=True):
                return await judge_inprocess(worker, code, task, self.stop_on_first_failure)
            case TestsTask():
                return await judge_tests(worker, code, task, self.stop_on_first_failure, self.reader)
            case SyntaxTask():
                return await judge_syntax(worker, code, task)
