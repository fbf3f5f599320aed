"""How often the intervals of `rlvrlab.evals.statistics` hold the truth, and how often its tests find what is not there.

    python benchmarks/seed_statistics.py [--repeats 400] [--output docs/statistics_table.md]

Every cell draws whole experiments: problems of different difficulty, runs whose skill differs by seed, right-or-wrong
answers, and (second column of each size) arms that are each good at other problems. The truth is known, the statistics
see the answers only. A fraction of the time is the library's: it is called once per experiment, as everybody calls it.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rlvrlab.evals.statistics import compare_seeds, estimate, seeds_needed

SEEDS = (1, 2, 3, 5, 10)
SPREADS = (0.0, 0.02, 0.06, 0.10)
"""Standard deviation of a run's true accuracy over seeds."""
PROBLEMS = (50, 200, 500)
APART = (0.0, 0.1)
"""Standard deviation, over problems, of what an arm is better or worse at."""
EFFECT = 0.1
Rng = np.random.Generator
Answers = np.ndarray[Any, np.dtype[np.float64]]


class Experiment(NamedTuple):
    """Two arms of runs, right or wrong on every problem (seeds × problems), and what is true of them."""

    before: Answers
    after: Answers
    gain: float
    accuracy: float
    """Expected accuracy of the first arm, over all problems there could be."""


def draw(rng: Rng, seeds: int, spread: float, problems: int, apart: float, gain: float) -> Experiment:
    """One experiment. Chances stay within [0, 1] without being cut, so that the gain is exactly what it is called."""
    edge = 0.5 - 0.5 * gain
    width = max(0.02, edge - 3 * math.hypot(spread, apart)) if spread or apart else edge
    easy_P = rng.uniform(-width, width, problems)
    sides = []
    for shift in (-gain / 2, gain / 2):
        own_P = np.clip(rng.normal(0, apart, problems), -2.5 * apart, 2.5 * apart)
        luck_S = np.clip(rng.normal(0, spread, (seeds, 1)), -2.5 * spread, 2.5 * spread)
        chance_SP = np.clip(0.5 + shift + easy_P + own_P + luck_S, 0.0, 1.0)
        sides.append((rng.random((seeds, problems)) < chance_SP).astype(np.float64))
    return Experiment(sides[0], sides[1], gain, 0.5 - gain / 2)


class Found(NamedTuple):
    """Shares over many experiments."""

    covered: float
    covered_one: float
    """Of the intervals of a single arm."""
    rejected: float
    """Of a true null: how often a difference is shown."""
    power: float
    """How often a true difference of EFFECT is shown."""
    half: float
    """Mean half-width of the difference's interval."""


def measured(rng: Rng, repeats: int, seeds: int, spread: float, problems: int, apart: float, paired: bool) -> Found:
    """One cell of the table."""
    covered = one_arm = rejected = shown = 0
    half = 0.0
    for _ in range(repeats):
        null = draw(rng, seeds, spread, problems, apart, 0.0)
        found = compare_seeds(null.before, null.after, paired=paired)
        rejected += found.verdict != "not shown"
        alone = estimate(null.before)
        one_arm += alone.low <= null.accuracy <= alone.high
        real = draw(rng, seeds, spread, problems, apart, EFFECT)
        found = compare_seeds(real.before, real.after, paired=paired)
        covered += found.low <= real.gain <= found.high
        shown += found.verdict == "higher"
        half += (found.high - found.low) / 2
    return Found(*(value / repeats for value in (covered, one_arm, rejected, shown, half)))


def grid_table(repeats: int, paired: bool) -> list[str]:
    """Coverage, false findings and power over seeds, spreads and problems."""
    lines = ["| seeds | spread | problems | arms apart | difference covered | one arm covered | false findings "
             "| finds +10 points | half-width |", "|---|---|---|---|---|---|---|---|---|"]  # fmt: skip
    for seeds in SEEDS:
        for spread in SPREADS[:: 2 if paired else 1] if seeds > 1 else (0.0,):
            for problems in PROBLEMS:
                for apart in APART:
                    if paired and seeds == 1:
                        continue
                    rng = np.random.default_rng([seeds, round(100 * spread), problems, round(100 * apart), paired])
                    got = measured(rng, repeats, seeds, spread, problems, apart, paired)
                    cells = (f"{100 * got.covered:.1f}", f"{100 * got.covered_one:.1f}", f"{100 * got.rejected:.1f}",
                             f"{100 * got.power:.0f}", f"{100 * got.half:.1f}")  # fmt: skip
                    about = (str(seeds), f"{100 * spread:g}", str(problems), f"{100 * apart:g}")
                    lines.append(f"| {' | '.join((*about, *cells))} |")
    return lines


def shares_table(repeats: int) -> list[str]:
    """Single shares: Wilson for right or wrong, its generalisation for pass@k and partial scores, at every height."""
    lines = ["| scores | problems | " + " | ".join(f"at {p:g} %" for p in (1, 5, 20, 50, 90, 99)) + " |",
             "|---|---|---|---|---|---|---|---|"]  # fmt: skip

    def binary(rng: Rng, p: float, n: int) -> Answers:
        return (rng.random(n) < p).astype(np.float64)

    def sampled(rng: Rng, p: float, n: int) -> Answers:  # the mean of 8 answers, problems of different difficulty
        return rng.binomial(8, rng.beta(2 * p, 2 * (1 - p), n)) / 8

    kinds: dict[str, Callable[[Rng, float, int], Answers]] = {"right or wrong": binary, "mean of 8 answers": sampled}
    for name, make in kinds.items():
        for n in PROBLEMS:
            cells = []
            for p in (0.01, 0.05, 0.2, 0.5, 0.9, 0.99):
                rng = np.random.default_rng([n, round(100 * p), len(name)])
                held = (estimate(make(rng, p, n)) for _ in range(4 * repeats))
                cells.append(f"{100 * np.mean([one.low <= p <= one.high for one in held]):.1f}")
            lines.append(f"| {name} | {n} | {' | '.join(cells)} |")
    return lines


def rare_table(repeats: int) -> list[str]:
    """One run on each side that differ on few problems: where discreteness rules."""
    lines = ["| problems | differing | false findings | null covered |", "|---|---|---|---|"]
    for n in PROBLEMS:
        for rate in (0.02, 0.05, 0.1, 0.3):
            rng = np.random.default_rng([n, round(100 * rate)])
            held = 0
            for _ in range(2 * repeats):
                delta = rng.choice([-1.0, 0.0, 1.0], n, p=[rate / 2, 1 - rate, rate / 2])
                found = compare_seeds(np.maximum(-delta, 0), np.maximum(delta, 0))
                held += found.verdict == "not shown"
            share = 100 * held / (2 * repeats)
            lines.append(f"| {n} | {100 * rate:g} % | {100 - share:.1f} | {share:.1f} |")
    return lines


def one_sided_table(repeats: int) -> list[str]:
    """Non-inferiority and equivalence where the truth lies exactly on the margin: both must be found 5 times in 100."""
    lines = ["| seeds | spread | problems | called not worse | called equivalent |", "|---|---|---|---|---|"]
    for seeds, spread, problems in ((1, 0.0, 200), (3, 0.02, 500), (5, 0.06, 200), (10, 0.06, 500), (10, 0.0, 200)):
        rng = np.random.default_rng([seeds, round(100 * spread), problems, 7])
        worse = alike = 0
        for _ in range(2 * repeats):
            one = draw(rng, seeds, spread, problems, 0.05, EFFECT)
            worse += compare_seeds(one.after, one.before).not_worse(EFFECT)
            alike += compare_seeds(one.before, one.after).equivalent(EFFECT)
        cells = (f"{50 * worse / repeats:.1f}", f"{50 * alike / repeats:.1f}")
        lines.append(f"| {seeds} | {100 * spread:g} | {problems} | {' | '.join(cells)} |")
    return lines


def planned_table(repeats: int) -> list[str]:
    """Power that the planned number of seeds really has."""
    lines = ["| effect | spread of runs | seeds planned | found |", "|---|---|---|---|"]
    for effect, spread in ((0.1, 0.02), (0.1, 0.04), (0.1, 0.06), (0.05, 0.02)):
        seeds = seeds_needed(effect, math.hypot(spread, 0.5 / math.sqrt(500)), 500) or 0
        rng = np.random.default_rng([round(100 * effect), round(100 * spread)])
        shown = [compare_seeds(*draw(rng, seeds, spread, 500, 0.0, effect)[:2]).low > 0 for _ in range(repeats)]
        lines.append(f"| {100 * effect:g} | {100 * spread:g} | {seeds} | {100 * np.mean(shown):.0f} |")
    return lines


def main() -> None:
    """All tables, to the screen or a file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=400)
    parser.add_argument("--output", type=Path)
    asked = parser.parse_args()
    started = time.process_time()
    tables = {
        "Differences, runs not paired": partial(grid_table, asked.repeats, False),
        "Differences, runs in pairs": partial(grid_table, asked.repeats, True),
        "One run on each side, few problems that differ": partial(rare_table, asked.repeats),
        "Shares of one run": partial(shares_table, asked.repeats),
        "Not worse, and equivalent, with the truth on the margin": partial(one_sided_table, asked.repeats),
        "Planned seeds": partial(planned_table, asked.repeats),
    }
    lines = [line for title, make in tables.items() for line in ("", f"### {title}", "", *make())]
    text = "\n".join(lines[1:]) + "\n"
    asked.output.write_text(text, encoding="utf-8") if asked.output else print(text)
    print(f"{asked.repeats} experiments per cell, {time.process_time() - started:.0f} s of CPU", file=sys.stderr)


if __name__ == "__main__":
    main()
