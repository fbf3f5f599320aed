"""Tables of arms that were examined on the same problems: python studies/exam_tables.py FILE.json

The file holds, for every set of problems, whether each arm's greedy answer was right (a string of 0 and 1) and how many
of its samples were; how each arm was trained and examined; a few metrics of every step; and which kinds of arms are
compared. Arms are named KIND_sSEED; `base` is one policy that was examined once. Scores are in %, differences in
points.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence
from math import sqrt
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rlvrlab.batch import Floats
from rlvrlab.evals.statistics import Difference, compare_seeds

T_2DF = 4.302652729911275
"""Two-sided 95 % quantile of Student's t with two degrees of freedom: three seeds."""
MEASURES = ("greedy", "sampled", "reach")


class Exams:
    """One file of results."""

    def __init__(self, path: Path) -> None:
        made: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        self.samples: int = made["samples"]
        self.arms: dict[str, dict[str, Any]] = made["arms"]
        self.skills: dict[str, list[str]] = made["skills"]
        self.outcomes: dict[str, dict[str, dict[str, Any]]] = made["outcomes"]
        self.against: list[tuple[str, str]] = [(before, after) for before, after in made["against"]]

    def title(self, measure: str) -> str:
        """How a column of this measure is headed."""
        return {"greedy": "greedy", "sampled": "one sample at T = 1", "reach": f"pass@{self.samples}"}[measure]

    def measures(self, data: str) -> list[str]:
        """What was measured on these problems."""
        return [one for one in MEASURES if ("greedy" if one == "greedy" else "sampled") in self.outcomes[data]]

    def scores(self, data: str, measure: str, arm: str) -> Floats | None:
        """By problem: right or not, the share of right samples, or whether any was; None where it was not examined."""
        found = self.outcomes[data]["greedy" if measure == "greedy" else "sampled"].get(arm)
        if found is None:
            return None
        right_P = np.array([int(mark) for mark in found], dtype=np.float64)
        if measure == "greedy":
            return right_P
        return right_P / self.samples if measure == "sampled" else (right_P > 0).astype(np.float64)

    def whole(self, kind: str) -> list[str]:
        """The arms of a kind that were trained to their end, in the order of their seeds."""
        named = [arm for arm in self.arms if re.fullmatch(rf"{kind}(_s\d+)?", arm)]
        return [arm for arm in sorted(named) if not self.arms[arm].get("cut")]


class OverSeeds(NamedTuple):
    """Differences of arms with the same seed, or of several seeds from base."""

    per_seed: list[float]
    t: str
    """Mean and interval by Student's t over seeds; the mean alone where they are not three."""
    both: str
    """The interval for new seeds and new problems; where there is one run on each side, for problems only."""
    found: Difference
    """The same in numbers."""


def over_seeds(exams: Exams, data: str, measure: str, before: str, after: str) -> OverSeeds | None:
    """What `after` gained over `before`; None where nothing can be paired."""
    later = [arm for arm in exams.whole(after) if exams.scores(data, measure, arm) is not None]
    paired = exams.whole(before) != [before]
    earlier = [arm.replace(after, before) for arm in later] if paired else [before]
    known = [arm in exams.whole(before) and exams.scores(data, measure, arm) is not None for arm in earlier]
    if paired:
        later = [arm for arm, there in zip(later, known, strict=True) if there]
    earlier = [arm for arm, there in zip(earlier, known, strict=True) if there]
    if not later or not earlier:
        return None
    before_SP, after_SP = (np.array([exams.scores(data, measure, arm) for arm in arms]) for arms in (earlier, later))
    per_seed = after_SP.mean(axis=1) - before_SP.mean(axis=1)
    told = over_three(per_seed) if len(per_seed) == 3 else points(float(per_seed.mean()))
    found = compare_seeds(before_SP, after_SP, paired=paired)
    only = " problems only" if found.seeds == (1, 1) else ""
    return OverSeeds(list(per_seed), told, f"[{points(found.low)}, {points(found.high)}]{only}", found)


def over_three(per_seed: Sequence[float] | Floats) -> str:
    """Mean of three seeds' differences, with its interval by Student's t."""
    mean, half = float(np.mean(per_seed)), T_2DF * float(np.std(per_seed, ddof=1)) / sqrt(3)
    return f"{points(mean)} [{points(mean - half)}, {points(mean + half)}]"


def points(share: float) -> str:
    """A difference of shares in percentage points; a bound just below zero keeps its sign, zero has none."""
    return f"{100 * share + 0.0:+.1f}".replace("-", "−")


def markdown(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table."""
    return "\n".join("| " + " | ".join(row) + " |" for row in (heads, ["---"] * len(heads), *rows))


def arm_table(exams: Exams) -> str:
    """What every arm scored."""
    columns = [(data, measure) for data in exams.outcomes for measure in exams.measures(data)]
    rows = []
    for arm, facts in exams.arms.items():
        found = [exams.scores(data, measure, arm) for data, measure in columns]
        cells = ["–" if one is None else f"{100 * one.mean():.1f}" for one in found]
        cut = " (cut by time)" if facts.get("cut") else ""
        rows.append([f"{label(arm)}{cut}", str(facts["steps"]), f"{facts['answers']:,}", *cells])
    heads = [f"{data}: {exams.title(measure)}" for data, measure in columns]
    return markdown(["arm", "steps", "answers", *heads], rows)


def difference_table(exams: Exams) -> str:
    """Differences over seeds."""
    rows = []
    for data in exams.outcomes:
        for measure in exams.measures(data):
            for before, after in exams.against:
                if found := over_seeds(exams, data, measure, before, after):
                    each = ", ".join(points(one) for one in found.per_seed)
                    what = f"{data}: {exams.title(measure)}"
                    rows.append([what, f"{after} − {before}", each, found.t, found.both])
    heads = ["measure", "difference", "by seed", "mean [95 %, t over three seeds]", "[95 %, new seeds and problems]"]
    return markdown(heads, rows)


def skill_table(exams: Exams, data: str) -> str:
    """Greedy answers by task, mean over the seeds of each kind."""
    skills, kinds = exams.skills[data], list(dict.fromkeys(re.sub(r"_s\d+$", "", arm) for arm in exams.arms))
    rows = []
    for kind in kinds:
        found = [exams.scores(data, "greedy", arm) for arm in exams.whole(kind)]
        some = [one for one in found if one is not None]
        if some:
            means = np.mean(some, axis=0)
            chosen = [[i for i, name in enumerate(skills) if name == skill] for skill in sorted(set(skills))]
            rows.append([kind, str(len(some)), *(f"{100 * means[index].mean():.1f}" for index in chosen)])
    return markdown([f"{data}, greedy", "runs", *sorted(set(skills))], rows)


def training_table(exams: Exams) -> str:
    """Mean of the first three steps → of the last five, and what it took."""
    forms = {"entropy": "{:.2f}", "dead_groups": "{:.2f}", "right": "{:.2f}", "tokens": "{:.0f}", "step_s": "{:.1f}"}
    rows = []
    for arm, facts in exams.arms.items():
        curves = facts.get("curves")
        if not curves:  # base, and SFT, which draws no answers
            continue
        cells = [
            f"{form.format(np.mean(curves[key][:3]))} → {form.format(np.mean(curves[key][-5:]))}"
            for key, form in forms.items()
        ]
        rows.append(
            [
                label(arm),
                *cells,
                f"{facts['train_s'] / 60:.1f}",
                f"{facts['memory_gb']:.0f}" if facts["memory_gb"] else "–",
            ]
        )
    heads = ["entropy", "dead groups", "right, all training answers", "tokens per answer", "seconds per step"]
    return markdown(["arm", *heads, "minutes of training", "GB reserved"], rows)


def label(arm: str) -> str:
    """grpo_s0 -> grpo 0."""
    return re.sub(r"_s(\d+)$", r" \1", arm)


def tables(exams: Exams) -> Iterator[tuple[str, str]]:
    """Title and lines of every table."""
    yield "Examined after the last update, in %", arm_table(exams)
    yield "Differences, in points", difference_table(exams)
    for data, skills in exams.skills.items():
        if len(set(skills)) > 1:
            yield f"By task, {data}, in %", skill_table(exams, data)
    yield "During training", training_table(exams)


def main() -> None:
    """Print the tables of the files named."""
    for path in map(Path, sys.argv[1:]):
        for title, table in tables(Exams(path)):
            print(f"{title}\n\n{table}\n")


if __name__ == "__main__":
    main()
