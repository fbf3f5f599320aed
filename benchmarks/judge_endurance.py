"""Does the judge stay as small as it was? python benchmarks/judge_endurance.py [--checks N] [--server]

Programs, queries and formulas of every mode, each different from all others, right, wrong, raising, exiting, writing
files and (one in a thousand) endless. At ten points the resident memory and the open descriptors of every process are
printed: the judge's own, then each worker and its keeper in the order they were started. What grows from point to point
leaks. With --server the same programs go to `rlvr serve judge`, and the processes are the server's.
The judge keeps its last 20,000 verdicts, so the first column grows until there are as many.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import platform
import sqlite3
import tempfile
import time
from collections import Counter
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

from scale import Server

from rlvrlab.judge.fusion.client import FusionClient
from rlvrlab.judge.jail.limits import Limits
from rlvrlab.judge.judge import Item, Judge
from rlvrlab.judge.modes.mathematics import MathTask
from rlvrlab.judge.modes.sql import SqlTask
from rlvrlab.judge.tasks import Call, CallsTask, StdioTask, SyntaxTask, TestsTask
from rlvrlab.types import Verdict

POINTS, BATCH, ENDLESS_EVERY, SYMBOLS_EVERY = 10, 500, 1000, 50
QUICK = Limits(cpu_s=0.05, job_cpu_s=0.05, wall_s=0.2)
STDIO = StdioTask((("1 2 3\n", "6\n"),))
CALLS = CallsTask("f", (Call((1,), 2), Call((2,), 3)))
READ = TestsTask("f", ("assert f(1) == 2\nassert f(2) == 3",))
RUN = TestsTask("f", ("for i in range(3):\n    assert f(i) == i + 1",))
BESIDE = TestsTask("f", ("assert f(1) == 2",), inprocess=True)
PROGRAMS: list[Item] = [
    (STDIO, "print(sum(map(int, input().split())))"),
    (STDIO, "print(7)"),
    (STDIO, "open('x', 'w').write('y' * 100)\nprint(6)"),
    (STDIO, "raise ValueError(input())"),
    (STDIO, "import os\nos._exit(3)"),
    (CALLS, "def f(x): return x + 1"),
    (CALLS, "def f(x): return [x] * 1000"),
    (CALLS, "def g(x): return x"),
    (READ, "def f(x): return x + 1"),
    (RUN, "def f(x): return x + 1"),
    (RUN, "def f(x): raise KeyError(x)"),
    (BESIDE, "def f(x): return x + 1"),
    (SyntaxTask(), "def f(x): return x"),
    (SyntaxTask(), "def f(x:"),
]


def item(number: int, database: str | None) -> Item:
    """One thing to judge that was never judged before."""
    if number % ENDLESS_EVERY == 0:
        return CallsTask("f", (Call((1,), 2),), limits=QUICK), f"def f(x):\n    while True: pass  # {number}"
    if database and number % SYMBOLS_EVERY == 1 and find_spec("math_verify"):
        return MathTask("\\frac{\\sqrt{2}}{2}"), f"\\frac{{{number}}}{{{number}\\sqrt{{2}}}}"
    if database and number % 7 == 0:
        return SqlTask(database, "SELECT sum(v) FROM t"), f"SELECT sum(v) FROM t WHERE v >= {-(number % 3)} -- {number}"
    if database and number % 11 == 0:
        return MathTask(str(number)), f"{number}.0"
    task, program = PROGRAMS[number % len(PROGRAMS)]
    return task, f"{program}\n# {number}"


def below(pid: int) -> list[int]:
    """A process and all that descend from it, in the order they were started."""
    try:
        lists = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children")]
    except OSError:
        return []
    children = sorted(int(child) for text in lists for child in text.split())
    return [pid, *(one for child in children for one in below(child))]


def footprint(pid: int) -> dict[str, list[float]]:
    """Resident MB and descriptors of each process."""
    gc.collect()
    sizes, files = [], []
    for one in below(pid):
        try:
            pages = int(Path(f"/proc/{one}/statm").read_text().split()[1])
            files.append(len(list(Path(f"/proc/{one}/fd").iterdir())))
            sizes.append(round(pages * os.sysconf("SC_PAGE_SIZE") / 2**20, 1))
        except OSError:  # a child that has just ended
            continue
    return {"resident_mb": sizes, "descriptors": files}


def told(verdict: Verdict) -> str:
    return verdict.error.value if verdict.correct is not None else f"unjudged: {verdict.detail[:80]}"


def here(checks: int) -> tuple[list[dict], Counter[str]]:
    points, outcomes = [], Counter[str]()
    with tempfile.TemporaryDirectory() as folder, Judge() as judge:
        database = str(Path(folder) / "numbers.sqlite")
        with closing(sqlite3.connect(database)) as connection:
            connection.execute("CREATE TABLE t (v INTEGER)")
            connection.executemany("INSERT INTO t VALUES (?)", [(i,) for i in range(100)])
            connection.commit()
        done = 0
        for point in range(POINTS):
            while done < checks * (point + 1) // POINTS:
                size = min(BATCH, checks * (point + 1) // POINTS - done)
                outcomes.update(map(told, judge.verify_many([item(done + i, database) for i in range(size)])))
                done += size
            points.append({"checks": done, **footprint(os.getpid())})
            print(json.dumps(points[-1]), flush=True)
    return points, outcomes


def served(checks: int) -> tuple[list[dict], Counter[str]]:
    points, outcomes = [], Counter[str]()
    server = Server(queue=256)

    async def ask(first: int, size: int) -> list[Verdict]:
        client = FusionClient((server.url,), concurrency=64)
        try:
            items = [item(first + i, None) for i in range(size)]
            return await asyncio.gather(*(client.judge(program, task) for task, program in items))
        finally:
            await client.close()

    try:
        done = 0
        for point in range(POINTS):
            while done < checks * (point + 1) // POINTS:
                size = min(BATCH, checks * (point + 1) // POINTS - done)
                outcomes.update(map(told, asyncio.run(ask(done, size))))
                done += size
            time.sleep(1.5)
            points.append({"checks": done, **footprint(server.process.pid)})
            print(json.dumps(points[-1]), flush=True)
    finally:
        server.process.terminate()
        server.process.wait()
    return points, outcomes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checks", type=int, default=50_000)
    parser.add_argument("--server", action="store_true", help="ask `rlvr serve judge` instead of a judge in here")
    given = parser.parse_args()
    print(f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {platform.python_version()}")
    started = time.monotonic()
    points, outcomes = (served if given.server else here)(given.checks)
    print(f"{given.checks} checks in {time.monotonic() - started:.0f} s: {dict(outcomes)}")
    middle, last = points[len(points) // 2 - 1], points[-1]
    for name in ("resident_mb", "descriptors"):
        print(f"{name}: {sum(middle[name]):.1f} half-way, {sum(last[name]):.1f} at the end")


if __name__ == "__main__":
    main()
