"""The code judge: a program and a task in, a verdict out.

The machine's trouble is tried again and never scored, the task's is told as such, and whatever goes wrong while one
program is judged stays with that program.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from rlvrlab.errors import JudgeLost, UserError
from rlvrlab.judge import packages
from rlvrlab.judge.finding import BadTask, Finding, judge_failed, tried
from rlvrlab.judge.jail import plain
from rlvrlab.judge.modes.asserts import judge_tests, whole_program
from rlvrlab.judge.modes.calls import judge_calls
from rlvrlab.judge.modes.stdio import judge_stdio
from rlvrlab.judge.modes.syntax import judge_syntax
from rlvrlab.judge.modes.task_reader import TaskReader
from rlvrlab.judge.modes.traces import Trace, trace_calls
from rlvrlab.judge.names import as_python_reads
from rlvrlab.judge.outcomes import Outcome
from rlvrlab.judge.task_forms import check, shown
from rlvrlab.judge.tasks import CallsTask, StdioTask, SyntaxTask, Task, TestsTask
from rlvrlab.judge.workers.pool import Pool
from rlvrlab.judge.workers.worker import WorkerDied
from rlvrlab.types import Verdict, bad_task

SCORER_VERSION = "code-12"
LARGEST_PROGRAM = 2 << 20
T = TypeVar("T", bound=Task)


@dataclass
class CodeJudge:
    """Programs against tasks, in the workers of one pool."""

    pool: Pool = field(default_factory=Pool)
    every_test: bool = True
    """Go on after a test that ended the program, for the true share of tests passed. Wrong answers never stop it."""
    reader: TaskReader = field(default_factory=TaskReader)

    async def judge(self, code: str, task: Task) -> Verdict:
        """One program; tried again when the machine failed it."""
        isolation = self.pool.image.isolation
        answer: object = code  # callers may hand over anything
        if not isinstance(answer, str):
            return bad_task(f"program: {shown(answer)}; allowed: a text", isolation=isolation)
        if len(code) > LARGEST_PROGRAM:
            reason = f"a program of {len(code):,} characters; at most {LARGEST_PROGRAM:,}"
            return Finding(Outcome.COMPILE_ERROR, reason).verdict(isolation)

        async def find(task: Task) -> Finding:
            async with self._pool_for(task).worker() as worker:
                match task:
                    case StdioTask():
                        return await judge_stdio(worker, code, task, self.every_test, self.reader)
                    case CallsTask():
                        return await judge_calls(worker, code, task, self.every_test)
                    case TestsTask():
                        return await judge_tests(worker, code, task, self.every_test, self.reader)
                    case SyntaxTask():
                        return await judge_syntax(worker, code, task)

        try:
            check(task)
            if not _asks_something(task):
                raise BadTask("it has no tests, and everything would pass them")
            return (await tried(partial(find, _as_python_reads(task)))).verdict(isolation)
        except (BadTask, UserError) as error:
            return bad_task(str(error), isolation=isolation)
        except Exception as error:
            if isinstance(error, WorkerDied) and self.pool.image.can_kill:
                return Finding(Outcome.RUNTIME_ERROR, "whenever it ran, its worker was killed").verdict(isolation)
            return judge_failed(error, isolation)

    async def trace(self, code: str, task: Task) -> tuple[Trace, ...]:
        """What a program does on the calls of a task; nothing where the task is no list of calls, or it cannot run."""
        if len(code) > LARGEST_PROGRAM or not isinstance(task, CallsTask | TestsTask):
            return ()

        task = _as_python_reads(task)

        async def follow() -> tuple[Trace, ...]:
            async with self._pool_for(task).worker() as worker:
                if isinstance(task, CallsTask):
                    pairs = [(plain.encode(call.arguments), plain.encode(call.named)) for call in task.calls]
                    return await trace_calls(worker, code, task.entry_point, pairs, task.limits)
                read = () if task.inprocess else (await self.reader.read(worker, task)).calls
                pairs = [(call.arguments, call.named) for call in read]
                above = task.preamble.count("\n") + 1 if task.preamble else 0
                return await trace_calls(worker, whole_program(code, task), task.entry_point, pairs, task.limits, above)

        try:
            return await tried(follow)
        except JudgeLost:
            raise
        except Exception:  # whatever goes wrong, nothing is known of this program, and nothing depends on it
            return ()

    def _pool_for(self, task: Task) -> Pool:
        """Workers that have imported what the task needs; UserError where it asks for what is not there."""
        needed = [name for name in packages.needed_by(task) if name not in self.pool.image.preload]
        packages.check_known(needed, "task.packages")
        return self.pool.having(tuple(needed))


def _as_python_reads(task: T) -> T:
    """The task with the name of its function as it stands in a program that was read."""
    if not isinstance(task, CallsTask | TestsTask) or task.entry_point.isascii():
        return task
    return replace(task, entry_point=as_python_reads(task.entry_point))


def _asks_something(task: Task) -> bool:
    match task:
        case SyntaxTask():
            return True
        case CallsTask():
            return bool(task.calls)
        case TestsTask():
            return any(piece.strip() for piece in task.tests)
    return bool(task.tests)
