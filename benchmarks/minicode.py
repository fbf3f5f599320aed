"""How fast minicode makes problems and judges answers.

    python benchmarks/minicode.py [--json]

Problems per CPU second of one process, by skill, level and role; answers per second of the jailed judge, asked in one
batch as a training step asks (half of them right, half right for the neighbouring problem), first and again.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from rlvrlab import __version__
from rlvrlab.envs.minicode import Minicode
from rlvrlab.types import Problem

SKILLS = ("gen", "fix", "min", "out")
MADE = 600
JUDGED = 256


def rate(count: int, clock: Callable[[], float], work: Callable[[], object]) -> int:
    start = clock()
    work()
    return round(count / (clock() - start))


def making(levels: tuple[int, ...], role: Any) -> dict[str, int]:
    found = {}
    for skill in SKILLS:
        make = partial(Minicode(skills=(skill,), levels=levels).problems, role, MADE)
        found[skill] = max(rate(MADE, time.process_time, partial(make, seed)) for seed in range(3))
    return found


def answers(env: Minicode) -> list[tuple[Problem, str]]:
    problems = env.problems("train", JUDGED, 1)
    gold = [env.gold(problem) or "" for problem in problems]
    return [(problem, gold[i if i % 2 else i - 4]) for i, problem in enumerate(problems)]


def judging(levels: tuple[int, ...]) -> dict[str, Any]:
    env = Minicode(skills=("gen", "fix", "min"), levels=levels)
    items = answers(env)
    env.verify(*items[0])
    first = rate(JUDGED, time.monotonic, lambda: env.verify_many(items))
    again = rate(JUDGED, time.monotonic, lambda: env.verify_many(items))
    predictions = Minicode(skills=("out",), levels=levels)
    values = answers(predictions)
    return {
        "batched_per_s": first,
        "again_per_s": again,
        "predictions_per_s": rate(JUDGED, time.monotonic, lambda: predictions.verify_many(values)),
    }


def measure() -> dict[str, Any]:
    levels: list[tuple[int, ...]] = [(1, 2, 3), *((level,) for level in range(1, 10))]
    return {
        "machine": {
            "cpu": platform.machine(),
            "cores": os.cpu_count(),
            "python": platform.python_version(),
            "rlvrlab": __version__,
        },
        "made_per_s": {str(some): {role: making(some, role) for role in ("train", "test")} for some in levels},
        "judged": {str(some): judging(some) for some in ((1, 2, 3), (9,))},
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
    print("\nproblems made per CPU second" + "".join(f"{f'{r} {s}':>11}" for r in ("train", "test") for s in SKILLS))
    for levels, row in found["made_per_s"].items():
        print(f"  levels {levels:<19}" + "".join(f"{row[r][s]:>11,}" for r in ("train", "test") for s in SKILLS))
    print(f"\nanswers judged per second, {JUDGED} in one call")
    for levels, row in found["judged"].items():
        print(f"  levels {levels:<12}" + "  ".join(f"{name} {value:,}" for name, value in row.items()))


if __name__ == "__main__":
    main()
