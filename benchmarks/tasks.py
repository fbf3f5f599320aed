"""How fast graph problems are made with a proof, and answers judged; and the repetition test.

    python benchmarks/tasks.py [--json] [--size 90000] [--workers 2] [--seed 0]

Makes --size problems of the six NP-hard tasks, half of them large (levels 3 to 5), then judges right, wrong and broken
answers to a sample of every task, every hostile answer of the self-check, and long texts for repeats. CPU seconds are
the sum over processes: a loaded machine stretches wall time, not these.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections import Counter
from random import Random
from typing import Any

from rlvrlab import __version__
from rlvrlab.envs.graphs.environment import GraphEnvironment
from rlvrlab.envs.graphs.tasks.catalogue import GRAPHWIZ, LEARNING, NP, POLYNOMIAL
from rlvrlab.rewards.repetition import tandem_period
from rlvrlab.types import Problem

CORE = (*NP, *POLYNOMIAL, *GRAPHWIZ, *LEARNING)
ANSWERS = 2000
TEXT = 20_000
WORDS = tuple(f"word{i}" for i in range(60))


def making(size: int, workers: int, seed: int) -> dict[str, Any]:
    """Half small, half large, every one proved."""
    started, cpu = time.perf_counter(), os.times()
    made: list[Problem] = []
    for levels in ((1, 2), (3, 4, 5)):
        made += GraphEnvironment(levels=levels, workers=workers).problems("train", size // 2, seed)
    used = [after - before for after, before in zip(os.times()[:4], cpu[:4], strict=True)]
    return {
        "problems": len(made),
        "distinct_shapes": len({(p.skill, p.meta["shape"]) for p in made}),
        "per_task": dict(Counter(p.skill for p in made)),
        "proved": sum(bool(p.meta["proof"]) for p in made),
        "workers": workers,
        "wall_s": round(time.perf_counter() - started, 1),
        "cpu_s": round(sum(used), 1),
    }


def judging(task: str) -> int:
    """Answers judged per CPU second: right ones, right ones after thinking, and cheats, in turn."""
    env = GraphEnvironment(tasks=(task,), levels=(1, 2, 3))
    items = []
    for problem in env.problems("train", 30, 0):
        gold = env.gold(problem) or ""
        short = [text for text in env.cheats(problem).values() if len(text) < 2000]
        items += [(problem, gold), (problem, problem.reference["answer"]), *((problem, text) for text in short)]
    items = (items * (ANSWERS // len(items) + 1))[:ANSWERS]
    best = float("inf")
    for _ in range(5):
        started = time.process_time()
        env.verify_many(items)
        best = min(best, time.process_time() - started)
    return round(len(items) / best)


def hostile() -> dict[str, Any]:
    """The slowest cheat of any task, best of three each."""
    slowest, name, tried = 0.0, "", 0
    for task in CORE:
        env = GraphEnvironment(tasks=(task,), levels=(3,))
        (problem,) = env.problems("train", 1, 0)
        gold = env.gold(problem) or ""
        texts = {
            **env.cheats(problem),
            "five million characters of thinking": f"<think>{'hm, [x] ' * 625_000}</think>{gold}",
            "a million brackets": "[" * 1_000_000,
            "hundred thousand characters of lists": "[A, B], " * 12_000,
            "forty thousand equal characters": "a" * 40_000,
        }
        for what, text in texts.items():
            times = []
            for _ in range(3):
                started = time.process_time()
                env.verify(problem, text)
                times.append(time.process_time() - started)
            tried += 1
            if min(times) > slowest:
                slowest, name = min(times), f"{task}: {what}"
    return {"tried": tried, "slowest": name, "ms": round(1000 * slowest, 2)}


def repetition() -> dict[str, Any]:
    """A thousand planted repeats in texts of 20,000 characters."""
    missed, times = 0, []
    for seed in range(1000):
        random = Random(seed)
        block = prose(random, random.randint(20, 400)) * random.randint(5, 12)
        before = random.randint(0, TEXT - len(block))
        text = prose(random, before) + block + prose(random, TEXT - before - len(block))
        started = time.process_time()
        missed += not tandem_period(text)
        times.append(time.process_time() - started)
    return {"missed": missed, "of": len(times), "mean_ms": round(sum(times), 2), "max_ms": round(1000 * max(times), 2)}


def prose(random: Random, length: int) -> str:
    return " ".join(random.choices(WORDS, k=length // 5 + 1))[:length]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--size", type=int, default=90_000, help="problems to make")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    found = {
        "machine": {"cpu": platform.machine(), "cores": os.cpu_count(), "python": platform.python_version()},
        "rlvrlab": __version__,
        "judged_per_cpu_s": {task: judging(task) for task in CORE},
        "hostile": hostile(),
        "repetition": repetition(),
        "making": making(options.size, options.workers, options.seed),
    }
    if options.json:
        print(json.dumps(found))
        return
    for what, figures in found.items():
        print(f"{what}: {json.dumps(figures)}")
    assert set(found["making"]["per_task"]) == set(NP)


if __name__ == "__main__":
    main()
