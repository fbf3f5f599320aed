"""One interface for everything that is judged: `Judge().verify_many([(task, answer), …])`.

The workers live on an event loop in a thread of their own, so the judge can be called from anywhere. Equal work is done
once: verdicts are kept by content and scorer version, and failures of the judge itself are never kept.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

from rlvrlab.errors import JudgeLost, UserError
from rlvrlab.judge import code
from rlvrlab.judge.finding import judge_failed
from rlvrlab.judge.isolation import chosen_level
from rlvrlab.judge.jail.plain import NotPlain
from rlvrlab.judge.keys import key_of, state_of
from rlvrlab.judge.modes import mathematics, sql
from rlvrlab.judge.modes.asserts import UNREAD
from rlvrlab.judge.modes.mathematics import MathTask
from rlvrlab.judge.modes.sql import SqlTask
from rlvrlab.judge.modes.traces import Trace
from rlvrlab.judge.packages import check_installed
from rlvrlab.judge.statistics import Latency, Stopwatch
from rlvrlab.judge.task_forms import check, shown
from rlvrlab.judge.tasks import Task
from rlvrlab.judge.workers.orders import Image
from rlvrlab.judge.workers.pool import Pool, default_size
from rlvrlab.types import Verdict, bad_task

T = TypeVar("T")
AnyTask = Task | SqlTask | MathTask
Item = tuple[AnyTask, str]
VERDICTS_KEPT = 20_000


class Backend(Protocol):
    """Something that judges programs: the local workers, or a remote service."""

    async def judge(self, code: str, task: Task) -> Verdict:
        """The verdict on one program."""
        ...

    async def refuse(self, tasks: Sequence[Task]) -> None:
        """JudgeLost where it may not judge one of these."""
        ...

    async def close(self) -> None:
        """End its workers or connections."""
        ...


@dataclass
class Judge:
    """Code, SQL and mathematics behind one door."""

    isolation: str | None = None
    """landlock (default), bwrap, or weak where explicitly allowed."""
    workers: int = field(default_factory=default_size)
    allow_weak: bool = False
    packages: tuple[str, ...] = ()
    """Installed packages that every program and test may import: ("numpy",). Tasks can name more (packages.py)."""
    every_test: bool = True
    """Go on after a test that ended the program, for the true share of tests passed. Wrong answers never stop it."""
    remote: Backend | None = None
    """Judge programs there instead, e.g. a SandboxFusion client."""

    def __post_init__(self) -> None:
        self.level = chosen_level(self.isolation, self.allow_weak) if self.remote is None else "remote"
        check_installed(self.packages, "Judge(packages=…)")
        self.stopwatch = Stopwatch()
        self._kept: OrderedDict[bytes, Verdict] = OrderedDict()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="rlvr-judge", daemon=True)
        self._thread.start()
        local = self.level if self.remote is None else "landlock"
        self.pools = {
            "code": Pool(Image(local, tuple(sorted(self.packages))), self.workers),
            **{name: Pool(replace(image, isolation=local), self.workers) for name, image in sql.IMAGES.items()},
            "mathematics": Pool(replace(mathematics.IMAGE, isolation=local), self.workers),
        }
        here = code.CodeJudge(self.pools["code"], self.every_test)
        self._code: Backend | code.CodeJudge = self.remote or here
        self._sql = {name: sql.SqlJudge(self.pools[name]) for name in sql.IMAGES}
        self._mathematics = mathematics.MathJudge(self.pools["mathematics"])

    def verify(self, task: AnyTask, answer: str) -> Verdict:
        """Judge one answer."""
        return self.verify_many([(task, answer)])[0]

    def verify_many(self, items: Sequence[Item], labels: Sequence[str] | None = None) -> list[Verdict]:
        """Judge many, in order; labels name them among the slowest."""
        return self.call(self.averify_many(items, labels))

    def refuse(self, tasks: Sequence[AnyTask]) -> None:
        """JudgeLost where programs are judged elsewhere and may not be for one of these tasks."""
        if self.remote is not None:
            self.call(self.remote.refuse([task for task in tasks if not isinstance(task, SqlTask | MathTask)]))

    def trace_many(self, items: Sequence[tuple[Task, str]]) -> list[tuple[Trace, ...]]:
        """What each program does on the calls of its task, state by state; nothing is scored by it.

        Nothing is known where programs are judged by a server: it has no such request.
        """
        if not isinstance(self._code, code.CodeJudge):
            return [()] * len(items)
        judge = self._code

        async def all_of_them() -> list[tuple[Trace, ...]]:
            return await asyncio.gather(*(judge.trace(program, task) for task, program in items))

        return self.call(all_of_them())

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the judge's loop and wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def averify_many(self, items: Sequence[Item], labels: Sequence[str] | None = None) -> list[Verdict]:
        """The same, for callers on the judge's own loop."""
        # The answers of a group have one task mostly, which is read once.
        tasks = {number: self._task_key(task) for number, task in {id(task): task for task, _ in items}.items()}
        keys = [_answer_key(tasks[id(task)], answer) for task, answer in items]
        fresh = {key: i for i, key in reversed(list(enumerate(keys))) if key not in self._kept}
        names = [labels[i] if labels else f"item {i}" for i in fresh.values()]
        new = dict(zip(fresh, await self._judge([items[i] for i in fresh.values()], names), strict=True))
        self.stopwatch.cached += len(items) - len(fresh)
        verdicts = []
        for i, key in enumerate(keys):
            verdict = new.get(key) or self._kept[key]
            if fresh.get(key) != i:
                verdict = replace(verdict, cost={**verdict.cost, "cached": 1.0})
            verdicts.append(verdict)
        # Those that would be the same at another time: not where the machine failed, or had no time to read the tests.
        self._kept.update((key, one) for key, one in new.items() if one.correct is not None and UNREAD not in one.flags)
        while len(self._kept) > VERDICTS_KEPT:
            self._kept.popitem(last=False)
        return verdicts

    async def _judge(self, items: Sequence[Item], labels: Sequence[str]) -> list[Verdict]:
        refused = {i: verdict for i, item in enumerate(items) if (verdict := self._refusal(*item))}
        others = [i for i, (task, _) in enumerate(items) if not isinstance(task, SqlTask) and i not in refused]
        sought = [(i, _engine(task)) for i, (task, _) in enumerate(items) if i not in refused]
        queries = [[i for i, wanted in sought if wanted == engine] for engine in self._sql]
        *answered, rest = await asyncio.gather(
            *(self._judge_queries([items[i] for i in some]) for some in queries),
            asyncio.gather(*(self._timed(*items[i], labels[i]) for i in others)),
        )
        order = [i for some in (*queries, others) for i in some]
        placed = dict(zip(order, [verdict for some in (*answered, rest) for verdict in some], strict=True))
        return [refused.get(i) or placed[i] for i in range(len(items))]

    def _refusal(self, task: AnyTask, answer: object) -> Verdict | None:
        """bad_task where a task of SQL or mathematics is malformed, or an answer is no text: neither can be wrong.

        The code judge checks its own tasks.
        """
        if not isinstance(answer, str):
            return bad_task(f"answer: {shown(answer)}; allowed: a text", isolation=self.level)
        if isinstance(task, SqlTask | MathTask):
            try:
                check(task)
            except UserError as error:
                return bad_task(str(error), isolation=self.level)
        return None

    async def _timed(self, task: AnyTask, answer: str, label: str) -> Verdict:
        try:
            if isinstance(task, MathTask):
                verdict = await self._mathematics.judge(answer, task)
            else:
                assert not isinstance(task, SqlTask)
                verdict = await self._code.judge(answer, task)
        except JudgeLost:
            raise
        except Exception as error:
            verdict = judge_failed(error, self.level)
        self.stopwatch.note(verdict.cost.get("wall_s", 0.0), label, verdict.error, verdict.correct is not None)
        return verdict

    async def _judge_queries(self, items: Sequence[Item]) -> list[Verdict]:
        if not items:
            return []
        started, engine = time.monotonic(), _engine(items[0][0])
        pairs = [(answer, task) for task, answer in items if isinstance(task, SqlTask)]
        try:
            verdicts = await self._sql[engine].judge_many(pairs)
        except Exception as error:  # one of them: each is judged by itself, and only that one fails
            if len(items) == 1:
                return [judge_failed(error, self.level)]
            return [verdict for item in items for verdict in await self._judge_queries([item])]
        for verdict in verdicts:
            each = (time.monotonic() - started) / len(verdicts)
            self.stopwatch.note(each, "sql", verdict.error, verdict.correct is not None)
        return verdicts

    def _task_key(self, task: AnyTask) -> bytes:
        """Of everything that a verdict depends on beside the answer: also of what the databases of a query hold."""
        versions = (code.SCORER_VERSION, sql.SCORER_VERSION, mathematics.SCORER_VERSION)
        try:
            files = [state_of(path) for path in task.databases] if isinstance(task, SqlTask) else []
            return key_of(versions, self.level, self.packages, self.every_test, task, files)
        except Exception:  # it is malformed, or holds what is no plain data: judged anew each time
            return secrets.token_bytes()

    def latency(self) -> Latency:
        """Percentiles and the slowest checks so far."""
        return self.stopwatch.summary()

    def close(self) -> None:
        """End all workers and the loop."""
        if self._loop.is_closed():
            return

        async def end_workers() -> None:
            for pool in self.pools.values():
                pool.close()
            if self.remote is not None:
                await self.remote.close()

        self.call(end_workers())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __enter__(self) -> Judge:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _answer_key(task: bytes, answer: str) -> bytes:
    try:
        return key_of(task, answer)
    except NotPlain:  # no text, which the judge refuses
        return secrets.token_bytes()


def _engine(task: AnyTask) -> str:
    return task.engine if isinstance(task, SqlTask) else ""
