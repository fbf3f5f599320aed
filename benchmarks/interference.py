"""What surgery and the skill-safe update cost beside the gradients themselves.

    python benchmarks/interference.py [--json] [--rows 8] [--parameters 10000000]

Gramian, quadratic program and recombination for some skills on flat float32 gradients, as an engine does them: products
of blocks in double precision. Then every surgery and the projection alone, on the small Gramian. Last, on the toy
engine, a step with memory gradients against the same step without. Seconds of wall clock, the best of five.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from rlvrlab import __version__
from rlvrlab.recipe import load_recipe
from rlvrlab.registry import find, names
from rlvrlab.surgery.base import Scene
from rlvrlab.surgery.projection import project
from rlvrlab.train.lab import build_lab

BLOCK = 1 << 14
CORES = ThreadPoolExecutor(2)
LIMIT_S = 0.25
RECIPE = Path(__file__).parent.parent / "studies" / "interference" / "toy.toml"


def best(work: Callable[[], object], rounds: int = 5) -> float:
    found = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        found.append(time.perf_counter() - start)
    return min(found)


def gramian(rows: list[np.ndarray]) -> np.ndarray:
    """Block by block, so that a block of all rows in double precision stays in the cache; half of them per core."""

    def half(bounds: tuple[int, int]) -> np.ndarray:
        total, block = np.zeros((len(rows), len(rows))), np.empty((len(rows), BLOCK))
        for at in range(*bounds, BLOCK):
            width = min(BLOCK, bounds[1] - at)
            for i, row in enumerate(rows):
                block[i, :width] = row[at : at + width]
            total += block[:, :width] @ block[:, :width].T
        return total

    return sum(CORES.map(half, halves(len(rows[0]))), np.zeros((len(rows), len(rows))))


def recombine(theta: np.ndarray, rows: list[np.ndarray], weights: np.ndarray) -> None:
    def half(bounds: tuple[int, int]) -> None:
        for at in range(*bounds, BLOCK):
            part = theta[at : min(at + BLOCK, bounds[1])]
            for row, weight in zip(rows, weights, strict=True):
                if weight:
                    part += np.float32(weight) * row[at : at + len(part)]

    list(CORES.map(half, halves(len(theta))))


def halves(size: int) -> list[tuple[int, int]]:
    return [(0, size // 2), (size // 2, size)]


def large(count: int, size: int) -> dict[str, float]:
    rng = np.random.default_rng(0)
    common = rng.standard_normal(size, dtype=np.float32)
    rows = [rng.standard_normal(size, dtype=np.float32) + np.float32(rng.uniform(-1, 1)) * common for _ in range(count)]
    step = -np.mean(rows, axis=0, dtype=np.float32) + rng.standard_normal(size, dtype=np.float32) * np.float32(0.1)
    theta = np.zeros(size, dtype=np.float32)
    G = gramian([*rows, step])
    along, norm = G[:-1, -1], float(np.sqrt(G[-1, -1]))
    found = project(G[:-1, :-1], along, np.zeros(count), norm)
    parts = {
        "gramian_s": best(lambda: gramian([*rows, step])),
        "projection_s": best(lambda: project(G[:-1, :-1], along, np.zeros(count), norm)),
        "recombination_s": best(lambda: recombine(theta, rows, found.multiplier_S)),
    }
    before = time.process_time()
    recombine(theta, rows, project(gramian([*rows, step])[:-1, :-1], along, np.zeros(count), norm).multiplier_S)
    parts |= {"together_s": sum(parts.values()), "together_cpu_s": time.process_time() - before}
    return {**parts, "active": float(found.active_S.sum()), "limit_s": LIMIT_S}


def small(count: int) -> dict[str, float]:
    rng = np.random.default_rng(1)
    J = rng.standard_normal((count, 50))
    scene = Scene(J @ J.T, np.full(count, 1 / count), np.full(count, 0.5), tuple(map(str, range(count))), (0,))
    methods = {name: find("surgery", name)() for name in names("surgery")}
    return {name: 1000 * best(lambda method=method: method(scene, {})) for name, method in methods.items()}


def toy() -> dict[str, float]:
    """CPU milliseconds of a training step with two skills protected, by refresh interval, against none."""
    found = {}
    for name, words in {
        "plain": [],
        "skill_safe": ["guard.type=skill_safe"],
        "skill_safe, refresh 5": ["guard.type=skill_safe", "guard.refresh=5"],
    }.items():
        lab = build_lab(load_recipe(RECIPE, [*words, "grpo.steps=120"]))
        phase = lab.resolved.phase("grpo")
        for step in range(80):
            phase.step(lab, step)
        start = time.process_time()
        for step in range(80, 120):
            phase.step(lab, step)
        found[name] = 1000 * (time.process_time() - start) / 40
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rows", type=int, default=8)
    parser.add_argument("--parameters", type=int, default=10_000_000)
    args = parser.parse_args()
    facts: dict[str, Any] = {
        "rlvrlab": __version__,
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "large": large(args.rows, args.parameters),
        "small_ms": small(args.rows),
        "toy_step_cpu_ms": toy(),
    }
    if args.json:
        print(json.dumps(facts))
        return
    for title, numbers in ((key, value) for key, value in facts.items() if isinstance(value, dict)):
        print(title)
        for key, value in numbers.items():
            print(f"  {key:24} {value:10.4f}")


if __name__ == "__main__":
    main()
