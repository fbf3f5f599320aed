"""The toy comparison of the second generation of guards: declared in SECOND_DECLARATION.md before it ran.

    python studies/interference/second_guards.py tune      eight candidates of each mechanism on the tuning seeds
    python studies/interference/second_guards.py test      the four that span the largest area, on the fresh seeds
    python studies/interference/second_guards.py report    tables from these -> results/second_guards.md
    python studies/interference/second_guards.py cost      one run of each mechanism, and what the rest would take

Runs are those of run.py (the same recipe, worlds and measurements); lines already there are not run again.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from run import HALF, Job, measured, run_all
from tables import REFERENCE, SHOWN, Rows, interval, table

from rlvrlab.evals.statistics import holm
from rlvrlab.skills.metrics import Retention, retention
from rlvrlab.skills.pareto import LEVEL, Area, area, compare_areas, hypervolume
from rlvrlab.student import t_quantile, t_tails

RESULTS = Path(__file__).parent / "results"
LINES = RESULTS / "second_guards.jsonl"
VARIANT = "second generation, kl 0.1 throughout, four of eight settings"
TUNING, FRESH = tuple(range(108, 116)), tuple(range(200, 248))
"""No earlier round has used any of them."""
KEPT = 4
COMMON = ["kl.coef=0.1"]
Candidates = dict[str, list[str]]


def settings(guard: str, key: str, values: Sequence[float], *words: str) -> Candidates:
    """One candidate for each value of a key."""
    return {f"{key}={value}": [f"guard.type={guard}", *words, f"guard.{key}={value}"] for value in values}


def crossed(
    guard: str, key: str, values: Sequence[float], other: str, choices: Sequence[Any], *words: str
) -> Candidates:
    """One candidate for each pair of values of two keys."""
    own = {choice: settings(guard, key, values, f"guard.{other}={choice}", *words) for choice in choices}
    return {f"{choice} {name}": found for choice, many in own.items() for name, found in many.items()}


COEFFICIENTS = (0.03, 0.1, 0.2, 0.3, 0.6, 1.0, 2.0, 5.0)
EPSILONS = (-0.2, -0.1, 0.0, 0.4)
MECHANISMS: dict[str, Candidates] = {
    "l2": settings("l2", "coef", (0.01, 0.03, 0.06, 0.1, 0.2, 0.3, 0.6, 1.0)),
    "ewc": settings("ewc", "coef", (3.0, 10.0, 20.0, 30.0, 60.0, 100.0, 300.0, 1000.0), HALF),
    "replay": settings("replay", "share", (0.0625, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875), HALF),
    "average": {
        **settings("average", "weight", (0.2, 0.5, 0.8)),
        **{f"decay={d}": ["guard.type=average", "guard.weight=1.0", f"guard.decay={d}"] for d in (0.9, 0.98)},
        **settings("average", "weight", (0.005, 0.02, 0.05), "guard.every=1"),
    },
    "penalty": settings("penalty", "coef", COEFFICIENTS, HALF),
    "replay as SFT": settings("penalty", "coef", COEFFICIENTS, "guard.loss=accepted", "guard.rows=32", HALF),
    "exact KL": settings("penalty", "coef", COEFFICIENTS, "guard.loss=kl_full", HALF),
    "gem": crossed("gem", "margin", (0.0, 0.1, 0.3, 1.0), "loss", ("likelihood", "kl"), HALF),
    "a-gem": crossed("gem", "margin", (0.0, 0.1, 0.3, 1.0), "loss", ("likelihood", "kl"), "guard.average=true", HALF),
    "safe": crossed("skill_safe", "epsilon", EPSILONS, "gradient", ("likelihood", "kl"), HALF),
    "safe, exact KL": settings(
        "skill_safe", "epsilon", (-0.2, -0.1, 0.0, 0.003, 0.01, 0.03, 0.1, 0.3), "guard.gradient=kl_full", HALF
    ),
    "proximal": crossed(
        "proximal", "kappa", (0.001, 0.003, 0.01, 0.03), "gradient", ("likelihood", "kl"),
        "guard.constraints=1", "guard.epsilon=-0.1", HALF,
    ),
    "clusters": crossed(
        "proximal", "epsilon", EPSILONS, "gradient", ("likelihood", "kl"), "guard.constraints=8", "guard.kappa=0", HALF
    ),
}  # fmt: skip
"""Eight settings of each."""
BASELINES = ("l2", "penalty", "average")
"""What costs no idea of ours."""
CHALLENGERS = ("exact KL", "safe", "safe, exact KL", "proximal", "clusters")


def jobs(chosen: dict[str, list[str]], seeds: Sequence[int]) -> list[Job]:
    """Plain training and the chosen settings of every mechanism, seed by seed."""
    arms = {"plain": [], **{f"{m}: {n}": MECHANISMS[m][n] for m, names in chosen.items() for n in names}}
    return [(VARIANT, arm, seed, [*COMMON, *words]) for seed in seeds for arm, words in arms.items()]


def choose(rows: Rows) -> dict[str, list[str]]:
    """Of every mechanism the settings that, with plain training's point, span the largest area on these lines."""
    tables: dict[str, list[Retention]] = {}
    for row in rows:
        tables.setdefault(row["name"], []).append(retention(np.array(row["table"]), [0, 1, 2]))
    point = {
        name: np.mean([(one.learning, 1 - one.forgetting) for one in many], axis=0) for name, many in tables.items()
    }

    def size(mechanism: str, names: Sequence[str]) -> float:
        return hypervolume(np.array([point["plain"], *(point[f"{mechanism}: {n}"] for n in names)]), REFERENCE)

    return {
        m: list(max(combinations(own, KEPT), key=lambda names, m=m: size(m, names))) for m, own in MECHANISMS.items()
    }


def read(seeds: Sequence[int]) -> Rows:
    """The lines of these seeds; every candidate must be there for every seed that is."""
    found = [json.loads(text) for text in LINES.read_text().splitlines()] if LINES.exists() else []
    return [row for row in found if row["seed"] in seeds]


def whole(rows: Rows, seeds: Sequence[int]) -> Rows:
    """The lines of these seeds, if each has every arm: with fewer nothing is reported, as declared."""
    own = [row for row in rows if row["seed"] in seeds]
    arms = {seed: {row["name"] for row in own if row["seed"] == seed} for seed in seeds}
    every = set[str]().union(*arms.values())
    if short := [seed for seed, names in arms.items() if not names or names != every]:
        raise SystemExit(
            f"{len(short)} of {len(seeds)} seeds lack runs: {short}; nothing is reported before `test` ends"
        )
    return own


def p_value(gap: Area, seeds: int) -> float:
    """Two-sided, from an interval that is Student's t over seeds."""
    error = (gap.high - gap.value) / t_quantile(LEVEL, seeds - 1)
    return t_tails(gap.value / error, seeds - 1) if error > 0 else 1.0


def report(rows: Rows) -> str:
    """Every arm, the areas of the mechanisms, and the declared comparisons."""
    seeds = sorted({row["seed"] for row in rows})
    found = {(row["name"], row["seed"]): retention(np.array(row["table"]), [0, 1, 2]) for row in rows}
    arms = {name: [found[name, seed] for seed in seeds] for name in dict.fromkeys(row["name"] for row in rows)}
    cost = {name: np.mean([row["cpu_s"] for row in rows if row["name"] == name]) for name in arms}
    lines = [
        [n, *(interval([getattr(o, key) for o in many]) for key in SHOWN), f"{cost[n]:.1f}"] for n, many in arms.items()
    ]
    text = f"### {len(seeds)} fresh seeds\n\n" + table(["arm", *SHOWN, "CPU s"], lines)
    curve = {m: _curve(arms, m) for m in MECHANISMS}
    sizes = [[m, _words(area(points, REFERENCE)), _words(area(points, (0.4, 0.0)))] for m, points in curve.items()]
    text += f"\n### Areas\n\n{table(['mechanism', f'above {REFERENCE}', 'above (0.4, 0)'], sizes)}"
    pairs = [(one, other) for one in CHALLENGERS for other in BASELINES]
    gaps = [compare_areas(curve[one], curve[other], REFERENCE) for one, other in pairs]
    adjusted = holm([p_value(gap, len(seeds)) for gap in gaps])
    compared = [
        [f"{one} − {other}", _words(gap, "+"), f"{p:.3f}"]
        for (one, other), gap, p in zip(pairs, gaps, adjusted, strict=True)
    ]
    return f"{text}\n### Declared comparisons\n\n{table(['areas', 'difference [95 %]', 'p (Holm)'], compared)}"


def _curve(arms: dict[str, list[Retention]], mechanism: str) -> Any:
    """Seeds × settings × (learning, 1 − forgetting), plain training's point among them."""
    own = [many for name, many in arms.items() if name == "plain" or name.startswith(f"{mechanism}: ")]
    return np.array([[(one.learning, 1 - one.forgetting) for one in many] for many in own]).transpose(1, 0, 2)


def _words(found: Area, sign: str = "") -> str:
    return f"{found.value:{sign}.3f} [{found.low:{sign}.3f}, {found.high:{sign}.3f}]"


def cost() -> str:
    """One run of each mechanism, and what tuning and test would take at that."""
    each = {"plain": _seconds("plain", [])}
    each |= {m: _seconds(m, next(iter(own.values()))) for m, own in MECHANISMS.items()}
    tune = len(TUNING) * (each["plain"] + sum(8 * s for m, s in each.items() if m != "plain"))
    test = len(FRESH) * (each["plain"] + sum(KEPT * s for m, s in each.items() if m != "plain"))
    return f"{json.dumps(each, indent=1)}\ntuning {tune / 3600:.1f} h, test {test / 3600:.1f} h of one core"


def _seconds(name: str, words: list[str]) -> float:
    return float(measured((VARIANT, name, TUNING[0], [*COMMON, *words]))["cpu_s"])


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["tune", "test", "report", "cost"])
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=math.inf, help="no run is started that would not end by then")
    asked = parser.parse_args()
    if asked.what == "cost":
        print(cost())
    elif asked.what == "tune":
        run_all(LINES, jobs({m: list(own) for m, own in MECHANISMS.items()}, TUNING), asked.processes, asked.seconds)
    elif asked.what == "test":
        chosen = choose(read(TUNING))
        print("chosen on the tuning seeds:", json.dumps(chosen, indent=1))
        run_all(LINES, jobs(chosen, FRESH), asked.processes, asked.seconds)
    else:
        text = report(whole(read(FRESH), FRESH))
        (RESULTS / "second_guards.md").write_text(text)
        print(text)


if __name__ == "__main__":
    main()
