"""Tables of the comparisons at equal calls: seeds are the units, paired, Student's t over the differences."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from equal_calls_design import Design

from rlvrlab.evals.statistics import holm
from rlvrlab.student import t_quantile

Row = dict[str, Any]
TITLES = {"end": "At {:,} verdicts", "tokens_end": "At {:,} tokens"}


def sign_flips(difference_S: np.ndarray) -> float:
    """Share of all 2ⁿ sign patterns whose mean is at least as far from zero as the one seen."""
    flips = np.array(list(itertools.product((1, -1), repeat=len(difference_S))))
    means = np.abs(flips @ difference_S)
    return float(np.mean(means >= means[0] - 1e-12))


def difference(difference_S: np.ndarray) -> tuple[float, float, float]:
    """Mean and 95 % interval of Student's t over seeds."""
    mean, half = float(difference_S.mean()), float("inf")
    if len(difference_S) > 1:
        half = t_quantile(0.95, len(difference_S) - 1) * float(difference_S.std(ddof=1)) / len(difference_S) ** 0.5
    return mean, mean - half, mean + half


def seeds_with_all_arms(rows: Sequence[Row], settings: dict[str, int], design: Design) -> list[int]:
    """The final seeds that every arm has run on with its setting."""
    there = {(row["arm"], row["seed"]) for row in rows if row["candidate"] == settings[row["arm"]]}
    return [seed for seed in design.final if all((arm, seed) in there for arm in design.arms)]


def report(rows: Sequence[Row], settings: dict[str, int], design: Design) -> str:
    """Every arm minus GRPO of the same seed, over the final seeds that every arm has run on; a table per budget."""
    seeds = seeds_with_all_arms(rows, settings, design)
    if not seeds:
        raise SystemExit(f"{design.name}: no final seed has runs of all arms; run `final` first")
    parts = []
    for at, spent in design.budgets.items():
        title = [f"**{TITLES[at].format(spent)}**", ""] if len(design.budgets) > 1 else []
        parts.append("\n".join([*title, table(rows, settings, design, seeds, at)]))
    if len(seeds) < design.least:
        parts.insert(0, f"{len(seeds)} of the {design.least} seeds asked for: described, not tested.")
    return "\n\n".join(parts)


def table(rows: Sequence[Row], settings: dict[str, int], design: Design, seeds: Sequence[int], at: str) -> str:
    """One line per arm, with what it had spent and solved by the end `at`."""
    by = {(row["arm"], row["seed"]): row[at] for row in rows if row["candidate"] == settings[row["arm"]]}
    beside = ("tokens", "calls") if len(design.budgets) > 1 else ("tokens",)
    heads = ["arm", "setting", "seeds", "steps", *beside, "accuracy", "minus GRPO [95 %]", "p (Holm)"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    gaps = {
        arm: np.array([by[arm, seed]["accuracy"] - by["grpo", seed]["accuracy"] for seed in seeds])
        for arm in design.arms
        if arm != "grpo"
    }
    found = [sign_flips(gap_S) for gap_S in gaps.values()]
    p = {arm: f"{one:.3f} ({all_:.3f})" for arm, one, all_ in zip(gaps, found, holm(found), strict=True)}
    for arm in design.arms:
        mean = {key: np.mean([by[arm, seed][key] for seed in seeds]) for key in ("step", *beside, "accuracy")}
        shown = [f"{mean['step']:.0f}", *(f"{mean[key]:,.0f}" for key in beside), f"{100 * mean['accuracy']:.1f}"]
        versus = ["", ""]
        if arm in gaps:
            interval = "{:+.1f} [{:+.1f}, {:+.1f}]".format(*(100 * one for one in difference(gaps[arm])))
            versus = [interval, p[arm] if len(seeds) >= design.least else ""]
        lines.append(f"| {' | '.join([arm, design.setting(arm, settings[arm]), str(len(seeds)), *shown, *versus])} |")
    return "\n".join(lines)
