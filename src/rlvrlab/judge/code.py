"""The code judge: a program and a task in, a verdict out. Infrastructure trouble is retried and never scored."""

from __future__ import annotations

from dataclasses import dataclass, field

from rlvrlab.errors import InfrastructureError, UserError
from rlvrlab.judge import packages
from rlvrlab.judge.finding import BadTask, Finding, tried
from rlvrlab.judge.modes.asserts import AssertReader, judge_inprocess, judge_tests
from rlvrlab.judge.modes.calls import judge_calls
from rlvrlab.judge.modes.stdio import judge_stdio
from rlvrlab.judge.modes.syntax import judge_syntax
from rlvrlab.judge.outcomes import Outcome
from rlvrlab.judge.tasks import CallsTask, StdioTask, SyntaxTask, Task, TestsTask
from rlvrlab.judge.workers.pool import Pool
from rlvrlab.types import Verdict, unjudged

SCORER_VERSION = "code-3"
LARGEST_PROGRAM = 2 << 20


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
        if not isinstance(task, SyntaxTask) and not (task.calls if isinstance(task, CallsTask) else task.tests):
            trouble = "bad task: it has no tests, and everything would pass them"
            return unjudged(trouble, isolation=isolation, flags=("bad_task",))
        try:
            pool = self._pool_for(task)
        except UserError as error:
            return unjudged(f"bad task: {error}", isolation=isolation, flags=("bad_task",))

        async def find() -> Finding:
            async with pool.worker() as worker:
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

        try:
            return (await tried(find)).verdict(isolation)
        except BadTask as error:
            return unjudged(f"bad task: {error}", isolation=isolation, flags=("bad_task",))
        except InfrastructureError as error:
            return unjudged(f"{Outcome.JUDGE_ERROR}: {error}", isolation=isolation)

    def _pool_for(self, task: Task) -> Pool:
        """Workers that have imported what the task needs; UserError where it asks for what is not there."""
        needed = [name for name in packages.needed_by(task) if name not in self.pool.image.preload]
        packages.check_known(needed, "task.packages")
        return self.pool.having(tuple(needed))
