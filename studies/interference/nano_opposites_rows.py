"""How few remembered answers per step are enough? The second chapter of OPPOSITES_DECLARATION.md.

    python studies/interference/nano_opposites_rows.py run --processes 8    every arm on fresh seeds
    python studies/interference/nano_opposites_rows.py report               tables -> results/nano_opposites_rows.md

The pair of nano_opposites.py, with penalty and exact KL at the strength chosen there, and `guard.rows` remembered
answers in each step instead of all 96. Lines already there are not run again.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from nano_opposites import MEMORY, RESULTS, Job, arms_table, kept, label, run_all, second_stage
from second_guards import Candidates
from smollm2_report import mean_interval, told
from tables import table

from rlvrlab.evals.statistics import holm
from rlvrlab.skills.metrics import Retention
from rlvrlab.student import t_tails

sys.path.append(str(Path(__file__).parents[1]))
from job_lines import Row, rows_of

LINES = RESULTS / "nano_opposites_rows.jsonl"
SEEDS = tuple(range(20, 30))
COEF = "guard.coef=3.0"
"""What the tuning seeds of the first chapter chose, for both."""


def with_rows(counts: Sequence[int], *words: str) -> Candidates:
    """The penalty on so many remembered answers per step; 0 takes all of them."""
    common = ["guard.type=penalty", *words, COEF, MEMORY]
    return {f"rows={count or 'all'}": [*common, f"guard.rows={count}"] for count in counts}


MECHANISMS: dict[str, Candidates] = {
    "plain": {"": []},
    "l2": {"coef=0.3": ["guard.type=l2", "guard.coef=0.3"]},
    "exact KL": with_rows((4, 8, 16, 0), "guard.loss=kl_full"),
    "penalty": with_rows((8, 0)),
}
CUT, LOST, MORE = 0.80, 0.03, 0.15
"""Aims: of forgetting at least so much less than plain training's, of learning and of CPU seconds at most so much."""


def jobs() -> dict[str, Job]:
    """Every arm, seed by seed."""
    arms = [(mechanism, name) for mechanism, names in MECHANISMS.items() for name in names]
    return {f"{label(*arm)} {seed}": (*arm, seed) for seed in SEEDS for arm in arms}


def run(job: Job) -> Row:
    """One arm of a seed."""
    mechanism, name, seed = job
    return second_stage(label(mechanism, name), MECHANISMS[mechanism][name], seed)


@dataclass(frozen=True)
class Excess:
    """How far an arm is beyond each aim, seed by seed; below zero the aim is kept."""

    forgetting: list[float]
    learning: list[float]
    cpu: list[float]

    def p(self) -> float:
        """One-sided, that not all three are below zero: the largest of their own."""
        return max(map(below_zero, (self.forgetting, self.learning, self.cpu)))

    @property
    def kept(self) -> bool:
        """Are all three aims kept on average?"""
        return all(np.mean(one) <= 0 for one in (self.forgetting, self.learning, self.cpu))


def excess(own: Sequence[Retention], plain: Sequence[Retention], cost: Sequence[tuple[float, float]]) -> Excess:
    """Linear in each seed's own values, so that a ratio of means needs no approximation."""
    pairs = list(zip(own, plain, strict=True))
    return Excess(
        [arm.forgetting - (1 - CUT) * base.forgetting for arm, base in pairs],
        [(1 - LOST) * base.learning - arm.learning for arm, base in pairs],
        [(arm - (1 + MORE) * base) / base for arm, base in cost],
    )


def below_zero(values: Sequence[float]) -> float:
    """One-sided p of a mean that is not below zero, Student's t over seeds."""
    mean, error = float(np.mean(values)), float(np.std(values, ddof=1)) / math.sqrt(len(values))
    if error == 0:
        return float(mean >= 0)
    half = t_tails(mean / error, len(values) - 1) / 2
    return half if mean < 0 else 1 - half


def complete(rows: Sequence[Row]) -> list[Row]:
    """The lines, if every arm of every seed is there: with fewer nothing is reported, as declared."""
    there = {(row["name"], row["seed"]) for row in rows}
    missing = [name for name, (*arm, seed) in jobs().items() if (label(*arm), seed) not in there]
    if missing:
        raise SystemExit(
            f"{len(missing)} of {len(jobs())} runs are missing; nothing is reported before `run` has ended"
        )
    return list(rows)


def report(rows: Sequence[Row]) -> str:
    """The arms, and which of them keep all three aims."""
    found = kept(rows, SEEDS)
    found = {name: found[name] for name in dict.fromkeys(label(*arm) for *arm, _ in jobs().values())}
    cpu = {(row["name"], row["seed"]): row["cpu_s"] for row in rows if "cpu_s" in row}
    cost = {name: float(np.mean([cpu[name, seed] for seed in SEEDS])) for name in found}
    plain = [found["plain"][seed] for seed in SEEDS]
    beyond = {
        name: excess([by[seed] for seed in SEEDS], plain, [(cpu[name, seed], cpu["plain", seed]) for seed in SEEDS])
        for name, by in found.items()
        if name != "plain"
    }
    adjusted = holm([one.p() for one in beyond.values()])
    lines = [
        [name, *(told(mean_interval(values), "+") for values in (one.forgetting, one.learning, one.cpu)),
         "yes" if one.kept else "no", f"{p:.3f}"]
        for (name, one), p in zip(beyond.items(), adjusted, strict=True)
    ]  # fmt: skip
    heads = ["arm", f"forgetting − {1 - CUT:.0%} of plain's", f"{1 - LOST:.0%} of plain's learning − its own",
             f"CPU above +{MORE:.0%}", "all aims kept", "p (Holm)"]  # fmt: skip
    first = f"### {len(SEEDS)} fresh seeds, in %\n\n{arms_table(found, cost)}"
    return f"{first}\n### Beyond the aims, in points [95 %]: below zero is kept\n\n{table(heads, lines)}"


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "report"])
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=math.inf, help="no run is started that would not end by then")
    asked = parser.parse_args()
    if asked.what == "run":
        run_all(jobs(), asked.processes, asked.seconds, LINES, run)
    else:
        text = report(complete(rows_of(LINES)))
        LINES.with_suffix(".md").write_text(text)
        print(text)


if __name__ == "__main__":
    main()
