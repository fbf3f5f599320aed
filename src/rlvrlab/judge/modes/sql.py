"""The SQL judge: a predicted query must return what the gold query returns, on the database and on its perturbed twins.

Gold and prediction never share a connection, nor a process; the rows are compared here. Several predictions share a
jailed child (SQL cannot reach its neighbours), which is ended and replaced when one of them takes too long.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

from rlvrlab.errors import InfrastructureError
from rlvrlab.judge.finding import Failure, Finding, failure_of, records_of, tried, word
from rlvrlab.judge.jail.limits import LONGEST_SQL, Limits
from rlvrlab.judge.keys import key_of, state_of
from rlvrlab.judge.modes.sql_gold import changes_after, gold_of, gold_queries
from rlvrlab.judge.modes.sql_rows import Gold, Result, literals_of, same_result
from rlvrlab.judge.modes.sql_text import ending_of
from rlvrlab.judge.outcomes import Outcome
from rlvrlab.judge.workers.orders import Image, Order, Ran
from rlvrlab.judge.workers.pool import Pool
from rlvrlab.types import Verdict, bad_task, unjudged

SCORER_VERSION = "sql-11"
IMAGES = {"sqlite": Image(roles=("sql",)), "duckdb": Image(preload=("duckdb",), roles=("duckdb",))}
ROLES = {"sqlite": "sql", "duckdb": "duckdb"}
QUERIES_PER_CHILD = 16
GOLD_KEPT = 4096
NOT_A_QUERY = (
    "syntax error", "no such", "incomplete input", "unrecognized token", "ambiguous", "one statement at a time",
)  # fmt: skip
"""What the engines say of a text that they cannot compile."""

T = TypeVar("T")
Query = tuple[str, str]
"""Database and SQL text."""


@dataclass(frozen=True, slots=True)
class SqlTask:
    """A question answered by a query."""

    database: str
    """Its file; a relative path counts from the current folder."""
    gold: str
    twins: tuple[str, ...] = ()
    """Perturbed copies of the database (sql_twins.py): an accidental match fails on one of them.

    Gold must return something else on at least one of them, or the task is bad: a literal would pass."""
    engine: Literal["sqlite", "duckdb"] = "sqlite"
    """duckdb needs the extra `rlvrlab[duckdb]`."""
    float_tolerance: float = 1e-9
    """By how much of their size two reals may differ; integers and decimals are compared exactly."""
    most_rows: int = 10_000
    limits: Limits = field(default_factory=lambda: Limits(cpu_s=3.0, output_mb=16))

    @property
    def databases(self) -> tuple[str, ...]:
        """All databases on which the results must agree."""
        return (self.database, *self.twins)


BESIDE_DATABASES = tuple(one.name for one in fields(SqlTask) if one.name not in ("database", "twins"))


class BadGold(Exception):
    """The gold query does not run, or does not tell a right answer from a literal."""


@dataclass
class SqlJudge:
    """Queries against gold queries."""

    pool: Pool = field(default_factory=lambda: Pool(IMAGES["sqlite"]))
    """Its image decides which engine the tasks may ask for."""
    _gold: OrderedDict[bytes, Gold] = field(default_factory=OrderedDict)
    _told_apart: set[bytes] = field(default_factory=set)
    """Tasks whose gold queries return something else on one of the twins."""

    async def judge_many(self, items: Sequence[tuple[str, SqlTask]]) -> list[Verdict]:
        """Judge all queries at once, several to a child; verdicts in the order of the items."""
        await self._learn_gold([task for _, task in items])
        judged = await asyncio.gather(*(self._judge_chunk(chunk) for chunk in _chunks(items)))
        while len(self._gold) > GOLD_KEPT:
            self._gold.popitem(last=False)
        if len(self._told_apart) > GOLD_KEPT:
            self._told_apart.clear()
        return [verdict for chunk in judged for verdict in chunk]

    async def _learn_gold(self, tasks: Sequence[SqlTask]) -> None:
        """Run gold queries not known yet, several to a child; one that fails here is run again, alone, by `gold`."""
        missing: dict[bytes, tuple[str, SqlTask]] = {}
        for task in {id(task): task for task in tasks}.values():
            if len(task.gold) > LONGEST_SQL or changes_after(task.gold) is not None:
                continue
            for database in task.databases:
                key = _gold_key(database, task)
                if key not in self._gold and Path(database).is_file():
                    missing[key] = database, task
        alike: dict[object, list[tuple[bytes, str, SqlTask]]] = {}
        for key, (database, task) in missing.items():
            alike.setdefault((task.limits, task.most_rows, task.engine), []).append((key, database, task))
        chunks = [chunk for some in alike.values() for chunk in _chunks(some)]
        await asyncio.gather(*(self._learn_some(chunk) for chunk in chunks))

    async def _learn_some(self, wanted: Sequence[tuple[bytes, str, SqlTask]]) -> None:
        endings = [ending_of(task.gold, task.most_rows) for *_, task in wanted]
        queries = [gold_queries(task.gold, ending) for (*_, task), ending in zip(wanted, endings, strict=True)]
        asked = [(database, query) for (_, database, _), some in zip(wanted, queries, strict=True) for query in some]
        try:
            answers = iter(await self._answers(asked, wanted[0][2]))
        except InfrastructureError:
            return
        for (key, *_), ending, some in zip(wanted, endings, queries, strict=True):
            answer, *more = [next(answers) for _ in some]
            if isinstance(answer, Result):
                self._gold[key] = _timed(gold_of(ending, answer, _result(more)), [answer, *more])

    async def _judge_chunk(self, items: Sequence[tuple[str, SqlTask]]) -> list[Verdict]:
        task = items[0][1]
        if any(other.limits != task.limits or other.most_rows != task.most_rows for _, other in items):
            return [(await self._judge_chunk([item]))[0] for item in items]
        queries = [(database, query) for query, other in items for database in other.databases]
        absent = [database for database, _ in queries if not Path(database).is_file()]
        if absent:  # one task's missing file must not unjudge its neighbours
            if len(items) > 1:
                return [(await self._judge_chunk([item]))[0] for item in items]
            return [self._bad_task(f"no database {absent[0]}")]
        try:
            answers = await self._answers(queries, task)
        except InfrastructureError as error:
            return [unjudged(f"{Outcome.JUDGE_ERROR}: {error}", isolation=self.pool.image.isolation) for _ in items]
        waiting = iter(answers)
        return [await self._verdict(other, [next(waiting) for _ in other.databases]) for _, other in items]

    async def _verdict(self, task: SqlTask, answers: list[Any]) -> Verdict:
        finding = Finding(total=len(answers))
        try:
            golds = [await self.gold(database, task) for database in task.databases]
            self._check_twins(task, golds)
        except BadGold as error:
            return self._bad_task(str(error))
        except InfrastructureError as error:
            return unjudged(f"{Outcome.JUDGE_ERROR}: {error}", isolation=self.pool.image.isolation)
        finding.cpu_s = _seconds(answers) + sum(gold.cpu_s for gold in golds)
        for gold, answer in zip(golds, answers, strict=True):
            if not isinstance(answer, Result):
                finding.fail(*_failure(answer))
            elif difference := same_result(answer, gold, task.float_tolerance):
                finding.fail(Outcome.WRONG_ANSWER, difference)
            else:
                finding.passed += 1
        return finding.verdict(self.pool.image.isolation)

    def _check_twins(self, task: SqlTask, golds: Sequence[Gold]) -> None:
        """A task with twins on all of which gold returns what it returns on the database is bad."""
        if not task.twins:
            return
        key = key_of(task, [state_of(database) for database in task.databases])
        if key in self._told_apart:
            return
        for literal in literals_of(golds[0]):
            if any(same_result(literal, twin, task.float_tolerance) for twin in golds[1:]):
                continue
            raise BadGold(
                "the gold query returns the same on the database and on all its twins, so a literal would pass"
            )
        self._told_apart.add(key)

    def _bad_task(self, why: str) -> Verdict:
        """The verdict on a task that cannot be judged: unjudged, since the answer is not to blame."""
        return bad_task(why, isolation=self.pool.image.isolation)

    async def gold(self, database: str, task: SqlTask) -> Gold:
        """The gold result, computed once per database, query and settings."""
        key = _gold_key(database, task)
        if key in self._gold:
            self._gold.move_to_end(key)
            return self._gold[key]
        if not Path(database).is_file():
            raise BadGold(f"no database {database}")
        try:
            ending = ending_of(task.gold, task.most_rows)
        except ValueError as error:
            raise BadGold(f"the gold query cannot be read: {error}") from None
        queries = [(database, query) for query in gold_queries(task.gold, ending)]
        answer, *more = await self._answers(queries, task)
        if not isinstance(answer, Result):
            raise BadGold(f"the gold query fails: {word(answer, 1)}: {word(answer, 2)}")
        gold = _timed(gold_of(ending, answer, _result(more)), [answer, *more])
        seconds = changes_after(task.gold)
        if seconds is not None:  # it reads a clock or draws at random, and must return the same when asked again
            await asyncio.sleep(seconds)
            (again,) = await self._answers([(database, task.gold)], task)
            if not isinstance(again, Result) or same_result(again, gold, task.float_tolerance):
                raise BadGold("the gold query returns something else each time")
        self._gold[key] = gold
        return gold

    async def _answers(self, queries: Sequence[Query], task: SqlTask) -> list[Any]:
        """A Result or a failure record per query; a child that dies on one query is replaced for the rest."""
        answers: list[Any] = []
        while len(answers) < len(queries):
            answers += await self._one_child(queries[len(answers) :], task)
        return answers

    async def _one_child(self, queries: Sequence[Query], task: SqlTask) -> list[Any]:
        if task.engine == "duckdb":
            queries = queries[:1]
        limits = replace(task.limits, job_cpu_s=task.limits.cpu_s * len(queries))
        files = {database: str(Path(database).resolve()) for database, _ in queries}  # the child has another folder
        asked = [(files[database], query) for database, query in queries]
        job = {"role": ROLES[task.engine], "queries": asked, "most_rows": task.most_rows}

        async def run() -> tuple[Ran, Failure | None]:
            ran = await self.pool.run(Order(job, limits, readable=tuple(sorted(set(files.values()))), scratch=False))
            return ran, failure_of(ran, limits, ())

        ran, failure = await tried(run)
        records = records_of(replace(ran, report=ran.report[: ran.report.rfind(b"\n") + 1])) or ()
        answers = [Result(*record[1:4]) if record[0] == "rows" else record for record in records]
        # A child that died unkilled, or wrote too much, may have failed from all its queries together: the unanswered
        # ones get a new child. Time is counted for each query by itself.
        if not answers or (ran.killed in ("cpu", "wall") and len(answers) < len(queries)):
            answers.append(["failed", *(failure or (Outcome.RUNTIME_ERROR, "the query ended the worker", ()))])
        return answers


def _gold_key(database: str, task: SqlTask) -> bytes:
    """Of all that decides what gold may return: what the file holds, and every setting of the task."""
    return key_of(database, state_of(database), [getattr(task, name) for name in BESIDE_DATABASES])


def _chunks(items: Sequence[T]) -> list[Sequence[T]]:
    return [items[start : start + QUERIES_PER_CHILD] for start in range(0, len(items), QUERIES_PER_CHILD)]


def _timed(gold: Gold, answers: Sequence[Any]) -> Gold:
    """The same with the time of the queries behind it: an answer's limits bound them too, so they are part of its cost.

    Otherwise limits that are learnt from right answers could end the gold query itself, or the one that tells its ties.
    """
    return replace(gold, cpu_s=_seconds(answers))


def _seconds(answers: Sequence[Any]) -> float:
    return sum(answer.cpu_s for answer in answers if isinstance(answer, Result))


def _result(answers: Sequence[Any]) -> Result | None:
    return answers[0] if answers and isinstance(answers[0], Result) else None


def _failure(record: Any) -> tuple[Any, ...]:
    """Outcome, words and flags of a query that returned no rows."""
    if record[0] == "failed":
        return record[1], record[2], *record[3]
    kind, message = word(record, 1), word(record, 2)
    if message.startswith("more than"):
        return Outcome.OUTPUT_LIMIT, message
    outcome = Outcome.COMPILE_ERROR if any(text in message for text in NOT_A_QUERY) else Outcome.RUNTIME_ERROR
    return outcome, f"{kind}: {message}"
