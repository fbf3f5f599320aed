"""How often the intervals of `rlvrlab.evals.statistics` hold the truth, and how often its tests find what is not there.

    python benchmarks/seed_statistics.py [--repeats 1000] [--only shares] [--output FILE]

Every cell draws whole experiments: problems of different difficulty, runs whose skill differs by seed, right-or-wrong
answers, and (second column of each size) arms that are each good at other problems. The truth is known, the statistics
see the answers only. The grid is computed for many experiments at once, and held against the library in every batch.
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
from scipy import optimize, sparse, stats

from rlvrlab.evals.statistics import compare_seeds, estimate, seeds_needed

SEEDS = (1, 2, 3, 5, 10)
SPREADS = (0.0, 0.02, 0.06, 0.10)
"""Standard deviation of a run's true accuracy over seeds."""
PROBLEMS = (50, 200, 500)
APART = (0.0, 0.1)
"""Standard deviation, over problems, of what an arm is better or worse at."""
EFFECT = 0.1
OTHERS = ((2, 0.06, 200, 0.0), (3, 0.06, 500, 0.0), (5, 0.1, 500, 0.0), (10, 0.0, 500, 0.1))
"""Seeds, spread, problems, apart: where other methods go wrong."""
RHO = np.concatenate([[0.0], np.geomspace(0.05, 3000, 45)])[:, None]
"""Variance of the seeds, in units of that of the answers."""
Z = float(stats.norm.ppf(0.975))
Rng = np.random.Generator
Answers = np.ndarray[Any, np.dtype[np.float64]]


def draw(rng: Rng, many: int, seeds: int, spread: float, problems: int, apart: float, gain: float) -> list[Answers]:
    """So many experiments: both arms, experiments × seeds × problems. Chances hardly ever leave [0, 1], where they are
    cut, so that the gain is what it is called."""
    edge = 0.5 - 0.5 * gain
    width = max(0.02, edge - 2.5 * math.hypot(spread, apart)) if spread or apart else edge
    easy = rng.uniform(-width, width, (many, 1, problems))
    sides = []
    for shift in (-gain / 2, gain / 2):
        own = rng.normal(0, apart, (many, 1, problems))
        luck = rng.normal(0, spread, (many, seeds, 1))
        chance = np.clip(0.5 + shift + easy + own + luck, 0.0, 1.0)
        sides.append((rng.random((many, seeds, problems)) < chance).astype(np.float64))
    return sides


def intervals(before: Answers, after: Answers, paired: bool) -> tuple[Answers, Answers]:
    """`compare_seeds` for many experiments at once: centres and half-widths."""
    _, seeds, problems = before.shape
    delta = after.mean(axis=1) - before.mean(axis=1)
    squares, differing = (delta**2).sum(axis=1), (np.abs(delta) > 1e-12).sum(axis=1)
    made_up = np.where(differing > 0, squares / np.maximum(differing, 1), 1.0)
    centre = delta.sum(axis=1) / (problems + 2)
    over_problems = ((squares + 2 * made_up) / (problems + 2) - centre**2) / (problems + 2)
    over_problems_t = stats.t.ppf(0.975, problems - 1) ** 2 * over_problems
    if seeds == 1:
        return centre, np.sqrt(over_problems_t)
    sides = [after - before] if paired else [before, after]
    parts = [side.mean(axis=2).var(axis=1, ddof=1) / seeds for side in sides]
    over_seeds = np.sum(parts, axis=0)
    df = over_seeds**2 / np.maximum(np.sum([part**2 for part in parts], axis=0) / (seeds - 1), 1e-300)
    df = np.where(over_seeds > 0, df, (seeds - 1) * len(sides))
    shared = np.zeros(len(before))
    for side in sides:
        rest = side - side.mean(axis=2, keepdims=True) - side.mean(axis=1, keepdims=True)
        rest += side.mean(axis=(1, 2), keepdims=True)
        shared += (rest**2).sum(axis=(1, 2)) / ((seeds - 1) * (problems - 1) * seeds * problems)
    more = stats.t.ppf(0.975, problems - 1) ** 2 * np.maximum(0.0, over_problems - shared)
    return centre, np.sqrt(np.maximum(over_problems_t, stats.t.ppf(0.975, df) ** 2 * over_seeds + more))


def checked(sides: list[Answers], paired: bool) -> tuple[Answers, Answers]:
    """The same, held against the library on the first experiment of every batch."""
    centre, half = intervals(sides[0], sides[1], paired)
    found = compare_seeds(sides[0][0], sides[1][0], paired=paired and sides[0].shape[1] > 1)
    assert np.allclose(found[1:3], np.clip([centre[0] - half[0], centre[0] + half[0]], -1, 1)), "the benchmark is wrong"
    return centre, half


class Found(NamedTuple):
    """Shares over many experiments."""

    covered: float
    rejected: float
    """Of a true null: how often a difference is shown."""
    power: float
    """How often a true difference of EFFECT is shown."""
    half: float
    """Mean half-width of the interval."""
    covered_one: float
    """Of the intervals of a single arm."""


def measured(rng: Rng, repeats: int, seeds: int, spread: float, problems: int, apart: float, paired: bool) -> Found:
    """One cell of the table."""
    found = []
    many = max(1, min(repeats, 400_000 // (seeds * problems)))
    for _ in range(math.ceil(repeats / many)):
        null = draw(rng, many, seeds, spread, problems, apart, 0.0)
        centre, half = checked(null, paired)
        alone = [estimate(one) for one in null[0][: max(1, many // 4)]]
        held = float(np.mean([one.low <= 0.5 <= one.high for one in alone]))
        real, width = checked(draw(rng, many, seeds, spread, problems, apart, EFFECT), paired)
        covered = float(np.mean(np.abs(real - EFFECT) <= width))
        shown = float(np.mean(real > width))
        found.append(Found(covered, float(np.mean(np.abs(centre) > half)), shown, float(np.mean(width)), held))
    return Found(*(float(value) for value in np.mean(found, axis=0)))


def grid_table(repeats: int, paired: bool) -> list[str]:
    """Lowest and highest number over sizes of the problem set and arms apart or not, for each spread of the seeds."""
    head = "| seeds | spread | difference covered | one arm covered | false findings | finds +10 points | half-width |"
    lines = [head, "|---|---|---|---|---|---|---|"]
    for seeds in SEEDS[1:] if paired else SEEDS:
        for spread in SPREADS if seeds > 1 else (0.0,):
            cells = []
            for problems in PROBLEMS:
                for apart in APART:
                    rng = np.random.default_rng([seeds, round(100 * spread), problems, round(100 * apart), paired])
                    cells.append(measured(rng, repeats, seeds, spread, problems, apart, paired))
            ranges = [f"{100 * min(column):.1f}–{100 * max(column):.1f}" for column in zip(*cells, strict=True)]
            covered, rejected, power, half, one_arm = ranges
            row = (str(seeds), f"{100 * spread:g}", covered, one_arm, rejected, power, half)
            lines.append(f"| {' | '.join(row)} |")
    return lines


def shares_table(repeats: int) -> list[str]:
    """Single shares: Wilson for right or wrong, its generalisation for pass@k and partial scores, at every height."""
    heights = (0.01, 0.05, 0.2, 0.5, 0.9, 0.99)
    lines = ["| scores | problems | " + " | ".join(f"at {100 * p:g} %" for p in heights) + " |",
             "|---|---|---|---|---|---|---|---|"]  # fmt: skip

    def binary(rng: Rng, p: float, n: int) -> Answers:
        return (rng.random(n) < p).astype(np.float64)

    def sampled(rng: Rng, p: float, n: int) -> Answers:  # the mean of 8 answers, problems of different difficulty
        return rng.binomial(8, rng.beta(2 * p, 2 * (1 - p), n)) / 8

    def formed(rng: Rng, p: float, n: int) -> Answers:  # a reward that pays for the form, which all answers have
        return np.where(rng.random(n) < p, 1.0, 0.1)

    def partial_credit(rng: Rng, p: float, n: int) -> Answers:  # form and numbers are paid for
        return np.where(rng.random(n) < p, 1.0, rng.choice([0.0, 0.1, 0.3], n, p=[0.2, 0.7, 0.1]))

    kinds: dict[str, tuple[Callable[[Rng, float, int], Answers], float]] = {
        "right or wrong": (binary, 0.0), "mean of 8 answers": (sampled, 0.0),
        "right, else 0.1": (formed, 0.1), "right, else 0, 0.1 or 0.3": (partial_credit, 0.1),
    }  # fmt: skip
    for name, (make, otherwise) in kinds.items():
        for n in PROBLEMS:
            cells = []
            for p in heights:
                rng = np.random.default_rng([n, round(100 * p), len(name)])
                held, truth = (estimate(make(rng, p, n)) for _ in range(repeats)), p + (1 - p) * otherwise
                cells.append(f"{100 * np.mean([one.low <= truth <= one.high for one in held]):.1f}")
            lines.append(f"| {name} | {n} | {' | '.join(cells)} |")
    return lines


def rare_table(repeats: int) -> list[str]:
    """One run on each side that differ on few problems: where discreteness rules."""
    lines = ["| problems | differing | false findings | null covered |", "|---|---|---|---|"]
    for n in PROBLEMS:
        for rate in (0.02, 0.05, 0.1, 0.3):
            rng = np.random.default_rng([n, round(100 * rate)])
            held = 0
            for _ in range(repeats):
                delta = rng.choice([-1.0, 0.0, 1.0], n, p=[rate / 2, 1 - rate, rate / 2])
                found = compare_seeds(np.maximum(-delta, 0), np.maximum(delta, 0))
                held += found.verdict == "not shown"
            share = 100 * held / repeats
            lines.append(f"| {n} | {100 * rate:g} % | {100 - share:.1f} | {share:.1f} |")
    return lines


def one_sided_table(repeats: int) -> list[str]:
    """Non-inferiority and equivalence where the truth lies exactly on the margin: both must be found 5 times in 100."""
    lines = ["| seeds | spread | problems | called not worse | called equivalent |", "|---|---|---|---|---|"]
    for seeds, spread, problems in ((1, 0.0, 200), (3, 0.02, 500), (5, 0.06, 200), (10, 0.06, 500), (10, 0.0, 200)):
        rng = np.random.default_rng([seeds, round(100 * spread), problems, 7])
        worse = alike = 0
        for _ in range(repeats):
            [before], [after] = draw(rng, 1, seeds, spread, problems, 0.05, EFFECT)
            worse += compare_seeds(after, before).not_worse(EFFECT)
            alike += compare_seeds(before, after).equivalent(EFFECT)
        cells = (f"{100 * worse / repeats:.1f}", f"{100 * alike / repeats:.1f}")
        lines.append(f"| {seeds} | {100 * spread:g} | {problems} | {' | '.join(cells)} |")
    return lines


def others_table(repeats: int) -> list[str]:
    """False findings of what is not offered, on the same experiments."""
    lines = ["| seeds | spread | problems | arms apart | offered | t over seeds alone | bootstrap of seeds |",
             "|---|---|---|---|---|---|---|"]  # fmt: skip
    for seeds, spread, problems, apart in OTHERS:
        rng = np.random.default_rng([seeds, round(100 * spread), problems, 3])
        sides = draw(rng, repeats, seeds, spread, problems, apart, 0.0)
        centre, half = checked(sides, False)
        before, after = (side.mean(axis=2) for side in sides)
        welch = stats.ttest_ind(after, before, axis=1, equal_var=False).pvalue < 0.05
        drawn = rng.integers(0, seeds, (2, 1000, seeds))
        means = after[:, drawn[1]].mean(axis=2) - before[:, drawn[0]].mean(axis=2)  # experiments × resamples
        low, high = np.percentile(means, [2.5, 97.5], axis=1)
        shares = (np.mean(np.abs(centre) > half), np.mean(welch), np.mean((low > 0) | (high < 0)))
        about = (str(seeds), f"{100 * spread:g}", str(problems), f"{100 * apart:g}")
        lines.append(f"| {' | '.join((*about, *(f'{100 * share:.1f}' for share in shares)))} |")
    return lines


def covered(half: Callable[[Answers], Answers], df: int) -> Answers:
    """Share of intervals that hold the truth, for every variance of the seeds in RHO, in the normal model: answers err
    by 1, seeds by √ρ, and the variance A = (1 + ρ)·χ²(df)/df is seen."""
    seen = (1 + RHO) * stats.chi2.ppf((np.arange(2000) + 0.5) / 2000, df) / df
    found: Answers = (2 * stats.norm.cdf(half(seen) / np.sqrt(1 + RHO)) - 1).mean(axis=1)
    return found


def narrower_table() -> list[str]:
    """What narrower intervals for few seeds would cover, from the normal model without simulation.

    The half-width offered is the root of max(z², t²·A).
    """
    rules: dict[str, Callable[[Answers, float, int], Answers]] = {
        "offered": lambda seen, t, df: np.maximum(Z, t * np.sqrt(seen)),
        "t alone, no floor": lambda seen, t, df: t * np.sqrt(seen),
        "Satterthwaite": lambda seen, t, df: (
            np.sqrt(np.maximum(1, seen)) * stats.t.ppf(0.975, df * np.maximum(1, 1 / np.maximum(seen, 1e-6) ** 2))
        ),
        "floor while A < 1": lambda seen, t, df: np.where(seen < 1, Z, t * np.sqrt(seen)),
        "20 % less": lambda seen, t, df: np.sqrt(np.maximum(Z**2, t**2 * seen - 0.2 * (t**2 - Z**2))),
        "100 % less": lambda seen, t, df: np.sqrt(np.maximum(Z**2, t**2 * seen - (t**2 - Z**2))),
    }
    lines = [f"| degrees of freedom | {' | '.join(rules)} | least possible | with three quarters of the floor |",
             "|" + "---|" * (len(rules) + 3)]  # fmt: skip
    for df in (1, 2, 4, 8):
        t = float(stats.t.ppf(0.975, df))
        found = [covered(partial(rule, t=t, df=df), df) for rule in rules.values()]
        cells = [f"{100 * one[0]:.1f}, {100 * one.min():.1f}" for one in found]
        cells += [f"{100 * least_covered(df, floor):.1f}" for floor in (Z, 0.75 * Z)]
        lines.append(f"| {df} | {' | '.join(cells)} |")
    return lines


def least_covered(df: int, floor: float, at_least: float = 0.945) -> float:
    """A bound for every rule: how much its intervals cover at some spread, if nowhere less than `at_least`.

    A rule is an area in the plane of |error| and A that holds all errors up to the floor, all smaller errors with every
    error, and with every A all larger ones. Its share of each cell of a grid obeys the same order, so the linear
    programme over such shares has an optimum that no rule can be below.
    """
    error = np.concatenate([[0.0], np.geomspace(0.3, 1000, 35), [np.inf]])
    error[np.searchsorted(error, floor)] = floor
    seen = np.concatenate([[0.0], np.geomspace(1e-4, 36_000, 50), [np.inf]])
    of_error = np.diff(2 * stats.norm.cdf(error / np.sqrt(1 + RHO)) - 1)
    of_seen = np.diff(stats.chi2.cdf(seen * df / (1 + RHO), df))
    chance = (of_seen[:, :, None] * of_error[:, None, :]).reshape(len(RHO), -1)
    wide, high = len(error) - 1, len(seen) - 1
    in_order = sparse.vstack([
        sparse.kron(sparse.eye(high - 1, high) - sparse.eye(high - 1, high, k=1), sparse.eye(wide)),
        sparse.kron(sparse.eye(high), sparse.eye(wide - 1, wide, k=1) - sparse.eye(wide - 1, wide)),
    ])  # fmt: skip
    most = np.ones((len(RHO), 1))  # the last unknown is the largest share covered, which is made as small as it can be
    rows = sparse.vstack([np.hstack([-chance, 0 * most]), np.hstack([chance, -most]),
                          sparse.hstack([in_order, np.zeros((in_order.shape[0], 1))])])  # fmt: skip
    limits = np.concatenate([np.full(len(RHO), -at_least), np.zeros(len(RHO) + in_order.shape[0])])
    lower = np.append(np.tile(error[1:] <= floor, high), 0.0)
    goal = np.append(np.zeros(wide * high), 1.0)
    return float(optimize.linprog(goal, rows, limits, bounds=np.column_stack([lower, np.ones_like(lower)])).fun)


def planned_table(repeats: int) -> list[str]:
    """Power that the planned number of seeds really has."""
    lines = ["| effect | spread of runs | seeds planned | found |", "|---|---|---|---|"]
    for effect, spread in ((0.1, 0.02), (0.1, 0.04), (0.1, 0.06), (0.05, 0.02)):
        seeds = seeds_needed(effect, math.hypot(spread, 0.5 / math.sqrt(500)), 500) or 0
        rng = np.random.default_rng([round(100 * effect), round(100 * spread)])
        centre, half = checked(draw(rng, repeats, seeds, spread, 500, 0.0, effect), False)
        lines.append(f"| {100 * effect:g} | {100 * spread:g} | {seeds} | {100 * np.mean(centre > half):.0f} |")
    return lines


def main() -> None:
    """All tables, to the screen or a file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=1000)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--only", help="tables whose title contains this")
    asked = parser.parse_args()
    started = time.process_time()
    tables = {
        "Differences, runs not paired": partial(grid_table, asked.repeats, False),
        "Differences, runs in pairs": partial(grid_table, asked.repeats, True),
        "One run on each side, few problems that differ": partial(rare_table, asked.repeats),
        "Shares of one run": partial(shares_table, asked.repeats),
        "Not worse, and equivalent, with the truth on the margin": partial(one_sided_table, asked.repeats),
        "Planned seeds": partial(planned_table, asked.repeats),
        "What is not offered": partial(others_table, asked.repeats),
        "Narrower intervals for few seeds": narrower_table,
    }
    wanted = {title: make for title, make in tables.items() if (asked.only or "").lower() in title.lower()}
    lines = [line for title, make in wanted.items() for line in ("", f"### {title}", "", *make())]
    text = "\n".join(lines[1:]) + "\n"
    asked.output.write_text(text, encoding="utf-8") if asked.output else print(text)
    print(f"{asked.repeats} experiments per cell, {time.process_time() - started:.0f} s of CPU", file=sys.stderr)


if __name__ == "__main__":
    main()
