"""Does load change a verdict? python benchmarks/judge_under_load.py [--count N] [--load N] [--rounds N]

Right, wrong, slow, threaded, large, endless and sleeping programs are judged in every mode, first as the machine is and
then beside as many spinning processes as asked for. What differs is printed; the exit status is 0 when nothing does.
Half of the slow and sleeping programs stay clearly below their limit, half are clearly above it.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Callable

from turns import spinning

from rlvrlab.judge.jail.limits import Limits
from rlvrlab.judge.judge import Item, Judge
from rlvrlab.judge.tasks import Call, CallsTask, StdioTask, TestsTask

LIMITS = Limits(cpu_s=0.5, job_cpu_s=3.0, wall_s=1.5)
BURN = "import time\ndef burn(s):\n    end = time.process_time() + s\n    while time.process_time() < end: pass\n"
SUM = "print(sum(map(int, input().split())))"
THREAD = "import threading\ndef main():\n{body}\nt = threading.Thread(target=main)\nt.start()\nt.join()\n"


def stdio(program: str) -> Item:
    return StdioTask((("1 2", "3"),), limits=LIMITS), program


def calls(program: str, expected: object) -> Item:
    return CallsTask("f", (Call((1,), expected),) * 3, limits=LIMITS), program


def tests(program: str, expected: object) -> Item:
    """In a tester: what is asserted is no literal, so that it has to be run."""
    return TestsTask("f", (f"assert f(1) == ({expected!r}, 0)[0]",) * 3, limits=LIMITS), program


def one_by_one(program: str) -> str:
    """A thread for each small piece of work, each gone before anybody looks."""
    work = "for _ in range(30):\n    t = threading.Thread(target=burn, args=(0.01,))\n    t.start()\n    t.join()\n"
    return f"import threading\n{BURN}{work}{program}"


KINDS: dict[str, list[Callable[[], Item]]] = {
    "right": [
        lambda: stdio(SUM),
        lambda: calls("def f(x): return x + 1", 2),
        lambda: tests("def f(x): return x + 1", 2),
    ],
    "wrong": [
        lambda: stdio("print(4)"),
        lambda: calls("def f(x): return x", 2),
        lambda: tests("def f(x): return x", 2),
    ],
    "slow": [
        lambda: stdio(f"{BURN}burn(0.3)\n{SUM}"),
        lambda: stdio(f"{BURN}burn(0.7)\n{SUM}"),
        lambda: calls(f"{BURN}def f(x):\n    burn(0.3)\n    return 2", 2),
        lambda: calls(f"{BURN}def f(x):\n    burn(0.7)\n    return 2", 2),
        lambda: tests(f"{BURN}def f(x):\n    burn(0.3)\n    return 2", 2),
        lambda: tests(f"{BURN}def f(x):\n    burn(0.7)\n    return 2", 2),
    ],
    "threaded": [
        lambda: stdio(BURN + THREAD.format(body=f"    burn(0.3)\n    {SUM}")),
        lambda: stdio(one_by_one(SUM)),
        lambda: tests(f"from concurrent.futures import ThreadPoolExecutor\n{BURN}"
                      "def f(x):\n    with ThreadPoolExecutor(4) as p: list(p.map(burn, [0.05] * 4))\n    return 2", 2),
    ],
    "large": [
        lambda: calls("def f(x): return 'x' * 1_000_000", "x" * 1_000_000),
        lambda: tests("def f(x): return 'x' * 1_000_000", "x" * 1_000_000),
        lambda: stdio("print('3' + ' ' * 3_000_000)"),
    ],
    "endless": [
        lambda: stdio("while True: pass"),
        lambda: calls("def f(x):\n    while True: pass", 2),
        lambda: tests("def f(x):\n    while True: pass", 2),
        lambda: stdio(THREAD.format(body="    while True: pass")),
    ],
    "sleeping": [
        lambda: stdio(f"import time\ntime.sleep(0.8)\n{SUM}"),
        lambda: stdio(f"import time\ntime.sleep(60)\n{SUM}"),
        lambda: stdio("import time\nwhile True: time.sleep(0.01)"),
        lambda: tests("import time\ndef f(x):\n    time.sleep(0.8)\n    return 2", 2),
        lambda: tests("import time\ndef f(x):\n    time.sleep(60)\n    return 2", 2),
    ],
}  # fmt: skip


def programs(count: int) -> list[tuple[str, Item]]:
    """So many, the kinds in turn; each differs from the others by a comment, or it would be judged once."""
    kinds, chosen = list(KINDS.items()), []
    for number in range(count):
        name, makers = kinds[number % len(kinds)]
        task, program = makers[number // len(kinds) % len(makers)]()
        chosen.append((name, (task, f"{program}\n# {number}\n")))
    return chosen


def judged(items: list[tuple[str, Item]], load: int) -> tuple[list[str], float]:
    with spinning(load), Judge() as judge:
        started = time.monotonic()
        verdicts = judge.verify_many([item for _, item in items])
        seconds = time.monotonic() - started
    return [f"{verdict.detail.partition(':')[0]} {verdict.passed}/{verdict.total}" for verdict in verdicts], seconds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--load", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=2)
    given = parser.parse_args()
    items = programs(given.count)
    print(f"{given.count} programs, {os.cpu_count()} processors, load before the run {os.getloadavg()[0]:.1f}")
    first, seconds = judged(items, 0)
    print(f"idle: {seconds:.0f} s; {dict(Counter(word.split()[0] for word in first))}")
    differences = 0
    for number in range(given.rounds):
        again, seconds = judged(items, given.load)
        different = [i for i, (a, b) in enumerate(zip(first, again, strict=True)) if a != b]
        differences += len(different)
        print(f"{given.load} spinning, round {number + 1}: {seconds:.0f} s, {len(different)} differ")
        for i in different:
            print(f"  {items[i][0]:10} idle {first[i]:24} loaded {again[i]:24} {items[i][1][1].splitlines()[-2]:.60}")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
