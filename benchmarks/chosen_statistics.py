"""How often a run's page finds a loss, a recovery rate or a conflict that is not there, where numbers were chosen as
the best of many or come from several answers to one problem.

    python benchmarks/chosen_statistics.py [--repeats 2000] [--output FILE]

`losses` compares the end of a run with its best evaluation; *not counted in* is the same comparison as if the best one
had not been chosen. Every experiment has a known truth.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rlvrlab.evals.pooled import estimate_pooled
from rlvrlab.evals.statistics import wilson
from rlvrlab.report.gather.intervals import change
from rlvrlab.report.gather.peaks import Measured, losses
from rlvrlab.report.story.conflict import chance_of, more_than_noise

RUNS = ((3, 1, 100), (10, 2, 100), (20, 4, 50), (20, 4, 200), (50, 4, 200))
"""Evaluations, skills, problems of each."""
SHARE, GAIN, LOSS = 0.5, 0.3, 0.25
Numbers = np.ndarray[Any, np.dtype[np.float64]]


def peaks_table(repeats: int) -> list[str]:
    """Level: every skill stays. Risen: it rises over the first half and stays. Fallen: it rises and falls."""
    lines = ["| evaluations | skills | problems | level | risen | level, not counted in | fallen: found | held |",
             "|---|---|---|---|---|---|---|---|"]  # fmt: skip
    for evaluations, skills, problems in RUNS:
        rng = np.random.default_rng([evaluations, skills, problems])
        time_E = np.linspace(0, 1, evaluations)
        rise_E = SHARE - GAIN * np.maximum(0, 1 - 2 * time_E)
        fall_E = rise_E + np.where(time_E > 0.5, -LOSS * (2 * time_E - 1), 0.0)
        chances = {"level": np.full(evaluations, SHARE), "risen": rise_E, "fallen": fall_E}
        cells: dict[str, list[bool]] = {name: [] for name in ("level", "risen", "alone", "fallen", "held")}
        for name, chance_E in chances.items():
            truth = float(chance_E.max() - chance_E[-1])
            for drawn in rng.binomial(problems, chance_E, (repeats, skills, evaluations)).tolist():
                found = losses({str(i): course(rights, problems) for i, rights in enumerate(drawn)}).values()
                cells[name].append(any(one.beyond_chance for one in found))
                if name == "level":
                    cells["alone"].append(any(not_counted_in(rights, problems) for rights in drawn))
                if name == "fallen":
                    bounds = [(one.low or 0.0, one.high or 1.0) for one in found]
                    cells["held"].append(all(low <= truth <= high for low, high in bounds))
        shares = " | ".join(f"{100 * np.mean(cell):.1f}" for cell in cells.values())
        lines.append(f"| {evaluations} | {skills} | {problems} | {shares} |")
    return lines


def course(rights: Sequence[int], problems: int) -> list[Measured]:
    """The evaluations of one skill."""
    return [Measured(step, right / problems, (right, problems)) for step, right in enumerate(rights)]


def not_counted_in(rights: Sequence[int], problems: int) -> bool:
    """Whether the highest is above the last, taken for two numbers that nobody chose."""
    best, last = ((right / problems, wilson(right, problems)) for right in (max(rights), rights[-1]))
    return bool(change(last, best)["low"] > 0)


def pooled_table(repeats: int) -> list[str]:
    """Shares over answers, of which a problem has 1 to `most`, and problems differ as Beta(a, b) does."""
    lines = ["| problems | answers to each | correlation | over problems | answers taken for problems |",
             "|---|---|---|---|---|"]  # fmt: skip
    for problems, most, alike in ((20, 8, 1.0), (50, 8, 1.0), (50, 8, 4.0), (200, 8, 1.0), (200, 2, 1.0)):
        rng, share = np.random.default_rng([problems, most, round(alike)]), 0.3
        held = np.zeros(2)
        for _ in range(repeats):
            chance_P = rng.beta(alike * share, alike * (1 - share), problems)
            groups = [(rng.random(rng.integers(1, most + 1)) < one).astype(float).tolist() for one in chance_P]
            found = estimate_pooled(groups)
            answers = wilson(round(sum(map(sum, groups))), sum(map(len, groups)))
            held += [found.low <= share <= found.high, answers.low <= share <= answers.high]
        correlation = 1 / (1 + alike)
        cells = " | ".join(f"{value:.1f}" for value in 100 * held / repeats)
        lines.append(f"| {problems} | 1 to {most} | {correlation:.1f} | {cells} |")
    return lines


def checks_table() -> list[str]:
    """From the binomial distribution: how often noise is called a conflict, by the number of checks in a run."""
    lines = ["| checks in a run | small p needed | false findings | above a fifth of the checks |", "|---|---|---|---|"]
    for checks in (1, 2, 4, 10, 20, 100):
        needed = next(small for small in range(checks + 2) if more_than_noise(small, checks))
        fifth = math.floor(0.2 * checks) + 1
        false = f"{100 * chance_of(needed, checks):.1f} | {100 * chance_of(fifth, checks):.1f}"
        lines.append(f"| {checks} | {needed} | {false} |")
    return lines


def main() -> None:
    """All tables, to the screen or a file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=2000)
    parser.add_argument("--output", type=Path)
    asked = parser.parse_args()
    started = time.process_time()
    tables = {
        "Lost since the peak": peaks_table(asked.repeats),
        "Several answers to a problem": pooled_table(asked.repeats),
        "Conflict or noise": checks_table(),
    }
    text = "\n".join(line for title, lines in tables.items() for line in (f"### {title}", "", *lines, ""))
    asked.output.write_text(text, encoding="utf-8") if asked.output else print(text)
    print(f"{asked.repeats} experiments per cell, {time.process_time() - started:.0f} s of CPU", file=sys.stderr)


if __name__ == "__main__":
    main()
