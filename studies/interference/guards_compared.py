"""What each guard keeps and costs on toy, nano and SmolLM2, from the lines of the three declared comparisons.

    python studies/interference/guards_compared.py          one line per guard: the table of docs/interference.md
    python studies/interference/guards_compared.py areas    every area minus those of L2, penalty and averaging

Nothing is run. On the toy every mechanism has four settings: its area is that of all four, and what it cuts, loses and
costs is told of the one with the largest area of its own on the tuning seeds, the rule by which nano's were chosen.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import nano_opposites
import numpy as np
import second_guards
import smollm2_report
from smollm2_arms import KEPT, complete
from smollm2_report import told
from tables import table

from rlvrlab.evals.statistics import holm
from rlvrlab.skills.metrics import Retention, retention
from rlvrlab.skills.pareto import Area, area, compare_areas, hypervolume

sys.path.append(str(Path(__file__).parents[1]))
from job_lines import rows_of

GUARDS = ("l2", "average", "replay", "penalty", "exact KL", "ewc", "gem", "safe", "safe, exact KL", "proximal")
FREE = ("l2", "penalty", "average")
ALPHA = 0.05


@dataclass(frozen=True)
class Comparison:
    """One of the three, whatever its lines look like; arms have the names of GUARDS."""

    name: str
    cost: str
    """What the cost was measured in."""
    arms: dict[str, list[Retention]]
    """Plain training and the guards, seed by seed."""
    costs: dict[str, float]
    """Against plain training: 0.05 is 5 % more."""
    curves: dict[str, np.ndarray]
    """Seeds × settings × (learning, 1 − forgetting), plain training's point among them."""
    reference: tuple[float, float]
    own: tuple[str, ...]
    """What was declared to be compared with FREE; other comparisons are described."""
    others: tuple[str, ...] = ()
    """Declared as well and corrected for, but not on the others."""


def toy() -> Comparison:
    """Forty-eight seeds of second_guards.py."""
    rows, tuning = (
        second_guards.whole(second_guards.read(seeds), seeds) for seeds in (second_guards.FRESH, second_guards.TUNING)
    )
    found = {(row["name"], row["seed"]): retention(np.array(row["table"]), [0, 1, 2]) for row in [*rows, *tuning]}
    names = {row["name"] for row in rows}
    seconds = {name: np.mean([row["cpu_s"] for row in rows if row["name"] == name]) for name in names}
    chosen = second_guards.choose(tuning)

    def alone(arm: str) -> float:
        of = [found[arm, seed] for seed in second_guards.TUNING]
        return hypervolume(np.mean([(one.learning, 1 - one.forgetting) for one in of], axis=0), second_guards.REFERENCE)

    def over(arm: str) -> list[Retention]:
        return [found[arm, seed] for seed in second_guards.FRESH]

    every = {mechanism: [f"{mechanism}: {name}" for name in names] for mechanism, names in chosen.items()}
    best = {"plain": "plain", **{mechanism: max(arms, key=alone) for mechanism, arms in every.items()}}
    return Comparison(
        "toy", "CPU", {name: over(arm) for name, arm in best.items()},
        {name: float(seconds[arm] / seconds["plain"] - 1) for name, arm in best.items()},
        {name: curve([over("plain"), *map(over, arms)]) for name, arms in every.items()},
        second_guards.REFERENCE, second_guards.CHALLENGERS[:-1], second_guards.CHALLENGERS[-1:],
    )  # fmt: skip


def nano() -> Comparison:
    """Ten seeds of nano_opposites.py."""
    rows = second_guards.whole(rows_of(nano_opposites.LINES), nano_opposites.FRESH)
    found = nano_opposites.kept(rows, nano_opposites.FRESH)
    seconds = {arm: np.mean([row["cpu_s"] for row in rows if row["name"] == arm]) for arm in found}
    arms = {arm.split(": ")[0]: [by[seed] for seed in nano_opposites.FRESH] for arm, by in found.items()}
    costs = {arm.split(": ")[0]: float(one / seconds["plain"] - 1) for arm, one in seconds.items()}
    curves = {name: curve([arms["plain"], own]) for name, own in arms.items()}
    return Comparison("nano pair", "CPU", arms, costs, curves, nano_opposites.REFERENCE, nano_opposites.OWN)


def smollm2() -> Comparison:
    """Six seeds of smollm2_skills.py."""
    names = {"kl_full": "exact KL", "safe_proximal": "proximal"}
    runs = complete([row for row in rows_of(KEPT) if row["kind"] == "run"])
    arms, costs = {}, {}
    for arm in smollm2_report.ARMS:
        arms[names.get(arm, arm)] = smollm2_report.kept_of([by[arm] for by in runs.values()])
        ratios = [sum(by[arm]["stage_seconds"]) / sum(by["plain"]["stage_seconds"]) for by in runs.values()]
        costs[names.get(arm, arm)] = float(np.mean(ratios)) - 1
    curves = {name: curve([arms["plain"], own]) for name, own in arms.items()}
    return Comparison("SmolLM2", "seconds", arms, costs, curves, smollm2_report.REFERENCE, ("safe", "proximal"))


def curve(settings: Sequence[Sequence[Retention]]) -> np.ndarray:
    """Seeds × settings × (learning, 1 − forgetting)."""
    return np.array([[(one.learning, 1 - one.forgetting) for one in own] for own in settings]).transpose(1, 0, 2)


def less(comparison: Comparison, guard: str) -> tuple[float, float]:
    """What a guard cuts of plain training's forgetting, and what it loses of its learning, in %."""
    mean = {
        (arm, key): np.mean([getattr(one, key) for one in comparison.arms[arm]])
        for arm in ("plain", guard)
        for key in ("forgetting", "learning")
    }
    cut, lost = (1 - mean[guard, key] / mean["plain", key] for key in ("forgetting", "learning"))
    return 100 * float(cut), 100 * float(lost)


def gaps(comparison: Comparison) -> dict[tuple[str, str], tuple[Area, float | None]]:
    """Guard and baseline -> difference of their areas, and p after Holm where it was declared to be tested."""
    guards = [guard for guard in (*GUARDS, *comparison.others) if guard in comparison.curves]
    pairs = [(guard, free) for guard in guards for free in FREE if guard != free]
    found = {
        (one, other): compare_areas(comparison.curves[one], comparison.curves[other], comparison.reference)
        for one, other in pairs
    }
    tested = [pair for pair in pairs if pair[0] in (*comparison.own, *comparison.others)]
    seeds = len(comparison.arms["plain"])
    adjusted = dict(zip(tested, holm([second_guards.p_value(found[pair], seeds) for pair in tested]), strict=True))
    return {pair: (gap, adjusted.get(pair)) for pair, gap in found.items() if pair[0] in GUARDS}


def below(gap: Area, p: float | None) -> bool:
    """As declared: after correction; where nothing was declared, when the interval lies below zero."""
    return gap.value < 0 and (gap.high < 0 if p is None else p < ALPHA)


def cells(comparison: Comparison, guard: str) -> list[str]:
    """Cut, learning lost and cost; dashes where the guard was not run."""
    if guard not in comparison.arms:
        return ["–"] * 3
    cut, lost = less(comparison, guard)
    return [f"{cut:.0f} %", f"{lost:+.1f} %", f"{100 * comparison.costs[guard]:+.0f} %"]


def summary(comparisons: Sequence[Comparison]) -> str:
    """One line per guard."""
    differences = {comparison.name: gaps(comparison) for comparison in comparisons}
    heads = ["guard"]
    for comparison in comparisons:
        heads += [f"{comparison.name}: cut by", "learning lost", comparison.cost]
    lines = []
    for guard in GUARDS:
        lower = [
            f"{other} ({name}{', not tested' if p is None else ''})"
            for name, found in differences.items()
            for (one, other), (gap, p) in found.items()
            if one == guard and below(gap, p)
        ]
        own = [cell for comparison in comparisons for cell in cells(comparison, guard)]
        lines.append([guard, *own, "; ".join(lower) or "none"])
    lost = (f"{one.name} {100 * np.mean([own.forgetting for own in one.arms['plain']]):.1f}" for one in comparisons)
    return f"{table([*heads, 'area below that of'], lines)}\nPlain training forgets, in points: {', '.join(lost)}"


def areas(comparisons: Sequence[Comparison]) -> str:
    """Every area, and its difference from what is free."""
    lines = []
    for comparison in comparisons:
        found = gaps(comparison)
        for guard in (one for one in GUARDS if one in comparison.curves):
            shown = []
            for free in FREE:
                gap, p = found.get((guard, free), (None, None))
                words = told(gap, "+", 1.0, 3) if gap else ""
                shown.append(f"{words}, {p:.3f}" if p is not None else words)
            size = told(area(comparison.curves[guard], comparison.reference), "", 1.0, 3)
            lines.append([comparison.name, guard, size, *shown])
    return table(["testbed", "guard", "area [95 %]", *(f"− {free}" for free in FREE)], lines)


if __name__ == "__main__":
    shown: Callable[[Sequence[Comparison]], str] = areas if sys.argv[1:] == ["areas"] else summary
    print(shown([toy(), nano(), smollm2()]))
