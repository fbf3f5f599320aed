"""The tools of an agent: Python in the judge's jail, and queries on a read-only copy of a database.

A tool never raises on what a policy asks: a mistake is told, as it would be on a terminal. What the machine fails at is
an InfrastructureError, which is nobody's mistake.
"""

from __future__ import annotations

import ast
import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rlvrlab.envs.code.shared_judge import shared_judge
from rlvrlab.envs.python_trees import NOT_PYTHON, parsed
from rlvrlab.envs.tool_calls import Call, Result, unmarked
from rlvrlab.judge.finding import failure_of, records_of, tried, word
from rlvrlab.judge.jail.limits import Limits
from rlvrlab.judge.workers.orders import Order
from rlvrlab.judge.workers.pool import Pool

MOST_ROWS = 50
LONGEST_READ = 10_000
"""Characters of a program that is looked at for a last expression; reading takes up to a millisecond per thousand."""


@dataclass(frozen=True)
class Bench:
    """What one problem's tools may use and spend."""

    database: str = ""
    """The file that sql reads; empty where the question has none."""
    timeout_s: float = 2.0
    """CPU seconds per call."""
    most_chars: int = 400
    """A longer result is cut, and says so."""

    @property
    def limits(self) -> Limits:
        """What the jail holds a call to."""
        return Limits(cpu_s=self.timeout_s, job_cpu_s=self.timeout_s, memory_mb=256, output_mb=1)


def used(asked: Sequence[tuple[Bench, Call]]) -> list[Result]:
    """Carry out many calls abreast, in order."""
    if not asked:
        return []
    judge = shared_judge()
    pools = {"python": judge.pools["code"], "sql": judge.pools["sqlite"]}

    async def every() -> list[Result]:
        results = await asyncio.gather(*(_use(pools, bench, call) for bench, call in asked))
        return [Result(unmarked(text), ok) for text, ok in results]

    return judge.call(every())


async def _use(pools: dict[str, Pool], bench: Bench, call: Call) -> Result:
    if call.mistake:
        return Result(f"error: {call.mistake}", ok=False)
    run = {"python": _python, "sql": _sql}[call.tool]
    text, ok = await run(pools[call.tool], bench, call.argument)
    text = text.encode("utf-8", "replace").decode()  # half of a surrogate pair is no text for a tokenizer or a file
    if len(text) > bench.most_chars:
        text = f"{text[: bench.most_chars]}… ({len(text)} characters, cut)"
    return Result(text, ok)


async def _python(pool: Pool, bench: Bench, code: str) -> Result:
    limits = bench.limits
    order = Order({"role": "program", "code": printing(code)}, limits)

    async def run() -> Result:
        ran = await pool.run(order)
        failure = failure_of(ran, limits, records_of(ran))
        if failure is not None:
            return Result(f"error: {failure[1] or failure[0]}", ok=False)
        return Result(ran.stdout.decode("utf-8", "replace").rstrip("\n") or "(it printed nothing)", ok=True)

    return await tried(run)


async def _sql(pool: Pool, bench: Bench, query: str) -> Result:
    if not bench.database:
        return Result("error: this question has no database", ok=False)
    limits = bench.limits
    job = {"role": "sql", "queries": [(bench.database, query)], "most_rows": MOST_ROWS}
    order = Order(job, limits, readable=(bench.database,), scratch=False)

    async def run() -> Result:
        ran = await pool.run(order)
        records = records_of(ran)
        failure = failure_of(ran, limits, ())
        if failure is not None or not records:
            return Result(f"error: {failure[1] if failure else 'the query ended the worker'}", ok=False)
        record = records[0]
        if record[0] != "rows":
            return Result(f"error: {word(record, 2)}", ok=False)
        lines = [" | ".join(_shown(value) for value in row) for row in record[2]]
        return Result("\n".join(lines) or "(no rows)", ok=True)

    return await tried(run)


def _shown(value: Any) -> str:
    """A value of a row; what JSON cannot say, large integers among it, comes as [kind, text]."""
    match value:
        case None:
            return "NULL"
        case ["int", digits]:
            return str(int(digits, 16))
        case [_, text]:
            return str(text)
    return str(value)


def printing(code: str) -> str:
    """The program, with the value of a last bare expression printed, as an interactive session would.

    It is read in the trainer's own process, so one that is too long to be written by hand is run as it is.
    """
    if len(code) > LONGEST_READ:
        return code
    try:
        match parsed(code).body:
            case [*_, ast.Expr(ast.Call(ast.Name("print")))]:
                return code
            case [*before, ast.Expr(value)]:
                shown = ast.Expr(ast.Call(ast.Name("print", ast.Load()), [value], []))
                return ast.unparse(ast.fix_missing_locations(ast.Module([*before, shown], [])))
    except NOT_PYTHON:  # also a tree too deep to be written down again
        pass
    return code
