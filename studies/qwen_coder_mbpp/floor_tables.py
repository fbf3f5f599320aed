"""Round 3's tables: python studies/qwen_coder_mbpp/floor_tables.py

A floor under the entropy beside plain GRPO, both beside the untrained model, and EvalPlus' sets after training; from
results/round3/. Intervals of one seed are for problems only; those over both seeds are for new seeds and problems.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from exam_tables import Exams, arm_table, markdown, over_seeds, points, training_table

from rlvrlab.evals.statistics import compare, wilson

ROUND = Path(__file__).parent / "results" / "round3"
SEEDS = (0, 1)
PAIRS = (("grpo", "floor"), ("base", "grpo"), ("base", "floor"))


def arm_of(kind: str, seed: int) -> str:
    """The untrained model has no seed."""
    return kind if kind == "base" else f"{kind}_s{seed}"


def difference_rows(exams: Exams) -> Iterator[list[str]]:
    """Every measure and pair: each seed by itself, then both."""
    for data in exams.outcomes:
        for measure in exams.measures(data):
            for before, after in PAIRS:
                cells = []
                for seed in SEEDS:
                    first, second = (exams.scores(data, measure, arm_of(kind, seed)) for kind in (before, after))
                    assert first is not None and second is not None
                    found = compare(first, second)
                    cells.append(f"{points(found.mean)} [{points(found.low)}, {points(found.high)}]")
                both = over_seeds(exams, data, measure, before, after)
                assert both is not None
                name = f"{data}: {exams.title(measure)}"
                yield [name, f"{after} − {before}".replace("base", "untrained"), *cells, f"{both.t} {both.both}"]


def old_release() -> str:
    """MBPP+ v0.1.0 beside what is published."""
    exams, rows = Exams(ROUND / "mbppplus_old.json"), []
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
    yield "Differences, in points", markdown(heads, list(difference_rows(exams)))
    yield "During training", training_table(exams)
    yield "The untrained model on a part of MBPP+ v0.1.0", old_release()


def main() -> None:
    """Print them."""
    for title, table in tables():
        print(f"{title}\n\n{table}\n")


if __name__ == "__main__":
    main()
