"""How fast the SQL, mathematics and logic environments judge answers and make problems.

    python benchmarks/sql_math_logic.py [--json]

CPU seconds of one process, best of the rounds, for what is judged here; wall seconds on all cores for what is judged in
jailed workers. Half the answers are right, half are right for the neighbouring problem. Goal: at least 5,000 arithmetic
answers per CPU second.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import time
from collections.abc import Callable
from typing import Any

from rlvrlab import __version__
from rlvrlab.envs.clrs import Clrs
from rlvrlab.envs.gsm8k import Gsm8k
from rlvrlab.envs.mathematics import Mathematics
from rlvrlab.envs.sql import Sql
from rlvrlab.envs.zebra import Zebra
from rlvrlab.types import Problem

ROUNDS = 5
GROUP = 16
"""Answers to one problem, as training asks for them."""
JUDGED_HERE: dict[str, tuple[Any, int]] = {
    "gsm8k": (Gsm8k(), 1000),
    "gsm8k, thinking": (Gsm8k(style="think", levels=(4,)), 1000),
    "math, numbers and letters": (Mathematics(), 1000),
    "zebra 3x3": (Zebra(levels=(2,)), 200),
    "zebra 6x6": (Zebra(levels=(5,)), 10),
    "clrs": (Clrs(), 500),
    "clrs, traces": (Clrs(trace=True, lengths=(8,)), 200),
}


def best(work: Callable[[], object], clock: Callable[[], float], rounds: int = ROUNDS) -> float:
    found = []
    for _ in range(rounds):
        start = clock()
        work()
        found.append(clock() - start)
    return min(found)


def mixed(env: Any, problems: list[Problem]) -> list[tuple[Problem, str]]:
    texts = [str(env.gold(problem)) for problem in problems]
    return list(zip(problems + problems, texts + texts[1:] + texts[:1], strict=True))


def judged_here(env: Any, size: int) -> dict[str, int]:
    problems = env.problems("train", size, 0)
    # A few in-process answers of "math" may need the worker; only those settled here belong to this figure.
    items = [item for item in mixed(env, problems) if env.verify(*item).isolation == "none"]
    judging = best(lambda: env.verify_many(items), time.process_time)
    making = best(lambda: env.problems("train", size, 1), time.process_time, 2)
    return {"judged_per_s": round(len(items) / judging), "made_per_s": round(size / making)}


def judged_in_workers() -> dict[str, int]:
    env = Sql()
    making = best(lambda: env.problems("train", 200, 1), time.process_time, 2)
    problems = env.problems("train", 40, 0)

    def group(number: int) -> list[tuple[Problem, str]]:
        # A comment makes each answer a new one: equal answers would come from the judge's memory.
        return [
            (problem, f"```sql\n{problem.reference['gold']} -- {number}.{i}\n```")
            for problem in problems
            for i in range(GROUP)
        ]

    first = best(lambda: env.verify_many(group(0)), time.monotonic, 1)
    rounds = iter(range(1, 100))
    later = best(lambda: env.verify_many(group(next(rounds))), time.monotonic, 3)
    return {
        "made_per_s": round(200 / making),
        "first_groups_per_wall_s": round(GROUP * len(problems) / first),
        "later_groups_per_wall_s": round(GROUP * len(problems) / later),
    }


def symbols() -> dict[str, int] | None:
    if importlib.util.find_spec("math_verify") is None:
        return None
    env = Mathematics()
    problem = Problem("p", "math", "math", "", {"answer": "\\frac{\\sqrt{2}}{2}", "choices": 0})
    env.verify(problem, "\\boxed{\\sqrt{3}}")
    texts = [f"\\boxed{{\\frac{{{i}}}{{{i}\\sqrt{{2}}}}}}" for i in range(2, 102)]
    wall = best(lambda: env.verify_many([(problem, text) for text in texts]), time.monotonic, 1)
    return {"symbolic_per_wall_s": round(len(texts) / wall)}


def measure() -> dict[str, Any]:
    return {
        "machine": {
            "cpu": platform.machine(),
            "cores": os.cpu_count(),
            "load": round(os.getloadavg()[0], 1),
            "python": platform.python_version(),
            "rlvrlab": __version__,
        },
        "here": {name: judged_here(env, size) for name, (env, size) in JUDGED_HERE.items()},
        "sql": judged_in_workers(),
        "symbols": symbols(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    as_json = parser.parse_args().json
    found = measure()
    if as_json:
        print(json.dumps(found))
        return
    print(" · ".join(f"{name} {value}" for name, value in found["machine"].items()))
    print("\nper CPU second                 judged     made")
    for name, row in found["here"].items():
        print(f"  {name:<26} {row['judged_per_s']:>8,} {row['made_per_s']:>8,}")
    sql = found["sql"]
    print(
        f"\nsql: {sql['made_per_s']:,} problems made per CPU second; answers per wall second, on three databases each:"
    )
    print(
        f"  first groups of {GROUP} {sql['first_groups_per_wall_s']:,}, later ones {sql['later_groups_per_wall_s']:,}"
    )
    if found["symbols"]:
        print(f"math-verify in the jail: {found['symbols']['symbolic_per_wall_s']:,} answers per wall second")
    slow = [name for name in ("gsm8k", "gsm8k, thinking", "math, numbers and letters")
            if found["here"][name]["judged_per_s"] < 5000]  # fmt: skip
    print(f"\ngoal of 5,000 arithmetic answers per CPU second: {'missed by ' + ', '.join(slow) if slow else 'met'}")


if __name__ == "__main__":
    main()
