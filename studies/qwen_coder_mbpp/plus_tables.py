"""Round 4's tables: python studies/qwen_coder_mbpp/plus_tables.py

EvalPlus' sets whole, after GRPO on MBPP with further seeds and untrained, from results/round4/. Made by

    python studies/keep_exams.py RAW studies/qwen_coder_mbpp/results/round4/plus.json plus
    python studies/keep_exams.py RAW studies/qwen_coder_mbpp/results/round4/mbppplus_old.json mbppplus_old

A seed that was not run has no row or a dash; one that was cut is shown, marked, and in no difference.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from exam_tables import Exams, arm_table, markdown, over_seeds, points, training_table
from floor_tables import Pairs, difference_rows, old_release

ROUND = Path(__file__).parent / "results" / "round4"
SEEDS = (2, 3, 4)
"""Declared for grpo."""
PAIRS: Pairs = (("base", "grpo"), ("base", "floor"))
DECIDES = ("humaneval+", "mbpp+ of the test split")
MARGIN = 0.05


def answers(exams: Exams) -> str:
    """What the declaration asks of grpo − untrained; with fewer than two seeds it is not answered."""
    rows = []
    for data in DECIDES:
        found = over_seeds(exams, data, "greedy", "base", "grpo") if data in exams.outcomes else None
        seeds = len(found.per_seed) if found else 0
        cells = ["–", "not answered", "not answered"]
        if found and seeds > 1:
            told = ("yes" if holds else "no" for holds in (found.found.low > 0, found.found.low > -MARGIN))
            cells = [f"{points(found.found.mean)} {found.both}", *told]
        rows.append([data, str(len(exams.skills.get(data, ()))), f"{seeds} of {len(SEEDS)}", *cells])
    heads = ["grpo − untrained, greedy", "problems", "seeds", "[95 %, new seeds and problems]", "raised"]
    return markdown([*heads, f"not lower (above −{100 * MARGIN:.0f})"], rows)


def tables(place: Path = ROUND) -> Iterator[tuple[str, str]]:
    """Title and lines of all that can be told of what is there."""
    exams, old = Exams(place / "plus.json"), place / "mbppplus_old.json"
    heads = ["measure", "difference", *(f"seed {seed}, problems only" for seed in SEEDS)]
    yield "What was declared", answers(exams)
    yield "Examined after the last update, in %", arm_table(exams)
    rows = list(difference_rows(exams, PAIRS, SEEDS))
    yield "Differences, in points", markdown([*heads, "all seeds, new seeds and problems"], rows)
    yield "During training", training_table(exams)
    if old.exists():
        yield "The untrained model on MBPP+ v0.1.0", old_release(old)


def main() -> None:
    """Print them."""
    for title, table in tables():
        print(f"{title}\n\n{table}\n")


if __name__ == "__main__":
    main()
