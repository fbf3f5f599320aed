"""Round 3's tables: python studies/qwen_coder_mbpp/floor_tables.py

A floor under the entropy beside plain GRPO, both beside the untrained model, and EvalPlus' sets after training; from
results/round3/. Intervals of one seed are for problems only; those over both seeds are for new seeds and problems.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from exam_tables import Exams, arm_table, markdown, over_seeds, points, training_table

from rlvrlab.evals.statistics import compare, wilson

ROUND = Path(__file__).parent / "results" / "round3"
SEEDS = (0, 1)
Pairs = Sequence[tuple[str, str]]
PAIRS: Pairs = (("grpo", "floor"), ("base", "grpo"), ("base", "floor"))


def arm_of(kind: str, seed: int) -> str:
    """The untrained model has no seed."""
    return kind if kind == "base" else f"{kind}_s{seed}"


def difference_rows(exams: Exams, pairs: Pairs, seeds: Sequence[int]) -> Iterator[list[str]]:
    """Every measure and pair: each seed by itself, a dash where it was not examined whole, then all of them."""
    for data in exams.outcomes:
        for measure in exams.measures(data):
            for before, after in pairs:
                both = over_seeds(exams, data, measure, before, after)
                if both is None:
                    continue
                cells = [alone(exams, data, measure, arm_of(before, seed), arm_of(after, seed)) for seed in seeds]
                name = f"{data}: {exams.title(measure)}"
                told = f"{points(both.found.mean)} {both.both}"
                yield [name, f"{after} − {before}".replace("base", "untrained"), *cells, told]


def alone(exams: Exams, data: str, measure: str, before: str, after: str) -> str:
    """The difference of two arms, for problems only."""
    first, second = (exams.scores(data, measure, arm) for arm in (before, after))
    if first is None or second is None or exams.arms[before].get("cut") or exams.arms[after].get("cut"):
        return "–"
    found = compare(first, second)
    return f"{points(found.mean)} [{points(found.low)}, {points(found.high)}]"


def old_release(path: Path) -> str:
    """MBPP+ v0.1.0 beside what is published."""
    exams, rows = Exams(path), []
    for (data, published), marks in zip(
        (("MBPP+ v0.1.0", "59.4"), ("its base inputs", "69.2")),
        (one["greedy"]["base"] for one in exams.outcomes.values()),
        strict=True,
    ):
        right, asked = marks.count("1"), len(marks)
        low, high = wilson(right, asked)
        shown = f"{100 * right / asked:.1f} [{100 * low:.1f}, {100 * high:.1f}]"
        inside = "yes" if 100 * low <= float(published) <= 100 * high else "no"
        rows.append([data, f"{right} of {asked}", shown, published, inside])
    return markdown(["problems", "right", "% [95 %]", "published", "inside"], rows)


def tables() -> Iterator[tuple[str, str]]:
    """Title and lines of all of them."""
    exams = Exams(ROUND / "floor.json")
    heads = [
        "measure",
        "difference",
        "seed 0, problems only",
        "seed 1, problems only",
        "both seeds, new seeds and problems",
    ]
    yield "Examined after the last update, in %", arm_table(exams)
    yield "Differences, in points", markdown(heads, list(difference_rows(exams, PAIRS, SEEDS)))
    yield "During training", training_table(exams)
    yield "The untrained model on a part of MBPP+ v0.1.0", old_release(ROUND / "mbppplus_old.json")


def main() -> None:
    """Print them."""
    for title, table in tables():
        print(f"{title}\n\n{table}\n")


if __name__ == "__main__":
    main()
