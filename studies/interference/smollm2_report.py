"""Tables of smollm2_skills.py, as SMOLLM2_DECLARATION.md says: python studies/interference/smollm2_report.py

Success in %, differences in points, [ ] are 95 % intervals of Student's t over seeds. With fewer complete seeds than
the declaration asks for, what there is is described and nothing is tested.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from second_guards import p_value
from smollm2_arms import ARMS, KEPT, ROUNDS, SKILLS, STAGE, Round, chosen_rate, complete, success
from tables import SHOWN, table

from rlvrlab.evals.statistics import holm
from rlvrlab.skills.metrics import Retention, retention
from rlvrlab.skills.pareto import Area, area, compare_areas
from rlvrlab.student import t_quantile, t_tails

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent))
from job_lines import Row, rows_of  # noqa: E402

REFERENCE = (0.0, 0.5)
NEEDED = 4
"""Complete seeds without which nothing is tested."""
WHEN = ("before", *(f"after {skill}" for skill in SKILLS))
Runs = dict[int, dict[str, Row]]
"""Seed -> arm -> its run."""


def mean_interval(values: Sequence[float]) -> Area:
    """Student's t over seeds."""
    mean, half = float(np.mean(values)), math.inf
    if len(values) > 1:
        half = t_quantile(0.95, len(values) - 1) * float(np.std(values, ddof=1)) / math.sqrt(len(values))
    return Area(mean, mean - half, mean + half)


def t_test(gaps: Sequence[float]) -> float:
    """Two-sided p of a mean difference of zero over seeds."""
    error = float(np.std(gaps, ddof=1)) / math.sqrt(len(gaps))
    return t_tails(float(np.mean(gaps)) / error, len(gaps) - 1) if error > 0 else float(np.mean(gaps) == 0)


def told(found: Area, sign: str = "", factor: float = 100.0, digits: int = 1) -> str:
    """Value and interval; of one seed the value alone."""
    value, low, high = (f"{factor * one:{sign}.{digits}f}" for one in found)
    return f"{value} [{low}, {high}]" if math.isfinite(found.high) else value


def kept_of(runs: Sequence[Row]) -> list[Retention]:
    """Learning and forgetting of each run."""
    return [retention(success(row), [0, 1, 2]) for row in runs]


def arms_of(runs: Runs) -> list[str]:
    """Those of the round that these seeds belong to, in the declared order; of a trial's seeds the first round's."""
    return list(next((one.arms for one in ROUNDS.values() if runs.keys() <= {*one.seeds}), ARMS))


def matrix(runs: Runs) -> str:
    """Every skill after every stage, mean over seeds; what the arms of a seed share is told once."""
    lines = []
    for arm in arms_of(runs):
        own = np.array([success(by[arm]) for by in runs.values() if arm in by])
        if not len(own):
            continue
        for stage in range(4) if arm == "plain" else (2, 3):
            cells = [f"{100 * mean:.1f}" for mean in own[:, stage].mean(axis=0)]
            lines.append([arm if stage > 1 else "all", WHEN[stage], str(len(own)), *cells])
    return table(["arm", "examined", "seeds", *SKILLS], lines)


def arms_table(runs: Runs) -> str:
    """What each arm has at the end, what it forgot and learnt, alone and against plain training of the same seeds."""
    lines, tested = [], dict[str, float]()
    for arm in arms_of(runs):
        seeds = [seed for seed, by in runs.items() if arm in by and "plain" in by]
        if not seeds:
            continue
        own, plain = (kept_of([runs[seed][name] for seed in seeds]) for name in (arm, "plain"))
        cells = [told(mean_interval([getattr(one, key) for one in own])) for key in SHOWN]
        if arm == "plain":
            lines.append([arm, str(len(seeds)), *cells, "", "", "", ""])
            continue
        less = [one.forgetting - other.forgetting for one, other in zip(own, plain, strict=True)]
        learnt = [one.learning - other.learning for one, other in zip(own, plain, strict=True)]
        whole = float(np.mean([one.forgetting for one in plain]))
        cut = f"{-100 * np.mean(less) / whole:.0f} %" if whole > 0 else "–"
        tested[arm] = t_test(less) if len(seeds) >= NEEDED else math.nan
        lines.append([arm, str(len(seeds)), *cells, told(mean_interval(less), "+"), "", cut,
                      told(mean_interval(learnt), "+")])  # fmt: skip
    if len(runs) >= NEEDED and all(len(by) == len(arms_of(runs)) for by in runs.values()):
        for arm, p in zip(tested, holm(list(tested.values())), strict=True):
            next(line for line in lines if line[0] == arm)[7] = f"{p:.3f}"
    heads = ["arm", "seeds", "average", "worst skill", "forgetting", "learning", "forgetting − plain's", "p (Holm)",
             "cut by", "learning − plain's"]  # fmt: skip
    return table(heads, lines)


def since_own_stage(runs: Runs) -> str:
    """What is lost from the end of a skill's own stage: no best of several evaluations, which is high by luck."""
    lost = {
        arm: 100 * np.array([np.diag(success(by[arm])[1:]) - success(by[arm])[-1] for by in runs.values()])[:, :-1]
        for arm in arms_of(runs)
        if all(arm in by for by in runs.values())
    }
    lines = []
    for arm, own in lost.items():
        gap = told(mean_interval(own.mean(1) - lost["plain"].mean(1)), "+", 1.0) if arm != "plain" else ""
        by_skill = [told(mean_interval(one), "+", 1.0) for one in own.T]
        lines.append([arm, told(mean_interval(own.mean(1)), "+", 1.0), gap, *by_skill])
    return table(["arm", "lost since the end of its own stage", "− plain's", *SKILLS[:-1]], lines)


def points(runs: Runs, arm: str) -> np.ndarray:
    """Seeds × (plain, arm) × (learning, 1 − forgetting)."""
    found = [kept_of([by["plain"], by[arm]]) for by in runs.values()]
    return np.array([[(one.learning, 1 - one.forgetting) for one in both] for both in found])


def areas(runs: Runs) -> str:
    """The hypervolume of every arm, with plain's point."""
    heads = ["arm", f"area above {REFERENCE} [95 %]"]
    return table(heads, [[arm, told(area(points(runs, arm), REFERENCE), "", 1.0, 3)] for arm in arms_of(runs)])


def own_against_free(runs: Runs, asked: Round) -> str:
    """The declared differences of areas."""
    pairs = [(one, other) for one in asked.own for other in asked.free]
    gaps = [compare_areas(points(runs, one), points(runs, other), REFERENCE) for one, other in pairs]
    adjusted = holm([p_value(gap, len(runs)) for gap in gaps])
    lines = [
        [f"{one} − {other}", told(gap, "+", 1.0, 3), f"{p:.3f}"]
        for (one, other), gap, p in zip(pairs, gaps, adjusted, strict=True)
    ]
    return table(["areas", "difference [95 %]", "p (Holm)"], lines)


def costs(runs: Runs) -> str:
    """Seconds of the steps of both stages, against plain's of the same seed, and memory; several runs shared a card."""
    lines = []
    for arm in arms_of(runs):
        seeds = [seed for seed, by in runs.items() if arm in by and "plain" in by]
        if not seeds:
            continue
        own, plain = ([sum(runs[s][name]["stage_seconds"]) for s in seeds] for name in (arm, "plain"))
        more = [a / b - 1 for a, b in zip(own, plain, strict=True)]
        reserved = max(runs[seed][arm].get("reserved_gb", math.nan) for seed in seeds)
        whole = np.mean([runs[seed][arm]["seconds"] for seed in seeds])
        extra = "" if arm == "plain" else f"{told(mean_interval(more), '+')} %"
        lines.append([arm, f"{np.mean(own):.0f}", extra, f"{whole:.0f}", f"{reserved:.1f}"])
    heads = ["arm", f"seconds of {2 * STAGE} steps", "more than plain's", "seconds of a run", "GB reserved, most"]
    return table(heads, lines)


def pilots(rows: Sequence[Row]) -> str:
    """What the rate was chosen from."""
    lines = []
    for row in sorted(rows, key=lambda row: row["rate"]):
        found = retention(success(row), [0, 1, 2])
        start = success(row)[0].mean()
        lines.append([f"{row['rate']:g}", *(f"{100 * x:.1f}" for x in (start, found.learning, found.forgetting))])
    return table(["rate", "start's average", "learning", "forgetting"], lines)


def report(rows: Sequence[Row], asked: Round = ROUNDS[1]) -> str:
    """All tables of a round that the lines allow."""
    ended = [row for row in rows if row["kind"] == "run" and row["seed"] in asked.seeds]
    pilot = [row for row in rows if row["kind"] == "pilot"]
    whole = dict(sorted(complete(ended, asked).items()))
    texts = []
    if pilot:
        rate = next((row["rate"] for row in rows if row["kind"] == "rate"), chosen_rate(pilot))
        texts.append(f"### Pilot on the tuning seed, in %; chosen: {rate:g}\n\n{pilots(pilot)}")
    if len(whole) >= NEEDED:
        plain = mean_interval([one.forgetting for one in kept_of([by["plain"] for by in whole.values()])])
        verdict = "something is forgotten" if plain.low > 0 else "that something is forgotten is not shown: (b) is open"
        texts += [f"### {len(whole)} complete seeds: {', '.join(map(str, whole))}. Plain training: {verdict}\n"]
    else:
        texts.append(f"### {len(whole)} complete seeds, {NEEDED} are needed: described, not tested\n")
    runs = whole if len(whole) >= NEEDED else everything(ended)
    if runs:
        texts += [f"### Every skill after every stage, in %\n\n{matrix(runs)}", f"### Arms\n\n{arms_table(runs)}"]
        texts.append(f"### Seconds and memory\n\n{costs(runs)}")
    if whole:
        texts.append(f"### From the end of a skill's own stage, in points\n\n{since_own_stage(whole)}")
        texts.append(f"### Areas\n\n{areas(whole)}")
    if len(whole) >= NEEDED:
        texts.append(f"### Our own against what is free\n\n{own_against_free(whole, asked)}")
    return "\n".join(texts)


def everything(rows: Sequence[Row]) -> Runs:
    """Of each seed the start with most arms."""
    by: dict[int, dict[str, dict[str, Row]]] = {}
    for row in rows:
        by.setdefault(row["seed"], {}).setdefault(row["born"], {}).setdefault(row["arm"], row)
    return {seed: max(by[seed].values(), key=len) for seed in sorted(by)}


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", type=Path, default=KEPT, help="lines that are not kept yet")
    parser.add_argument("--round", type=int, choices=ROUNDS, default=1, help="which of the declared comparisons")
    asked = parser.parse_args()
    print(report(rows_of(asked.file), ROUNDS[asked.round]))


if __name__ == "__main__":
    main()
