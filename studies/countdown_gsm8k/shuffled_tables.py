"""Countdown with shuffled numbers: python studies/countdown_gsm8k/shuffled_tables.py

Scores of the 1.5B code model (results/qwen_countdown_shuffled.json), each policy beside the best two fixed sums on the
same problems, and how its greedy answers are formed. Intervals are for problems only where one seed is told.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
import numpy as np
from exam_tables import Exams, label, markdown, over_seeds, points, tables
from fixed_sums import SETTINGS, sums_by_problem

from rlvrlab.evals.statistics import compare

RESULTS = Path(__file__).parent / "results" / "qwen_countdown_shuffled.json"


def beside_fixed(exams: Exams) -> str:
    """Greedy answers of every arm against the fixed sums that were best on the training problems."""
    env, trained, tested = SETTINGS["1.5B model"]
    fixed = sums_by_problem(env, trained, tested)
    fixed_P = np.array([fixed[name] for name in sorted(fixed)], dtype=np.float64)
    rows = []
    for arm in exams.arms:
        own_P = exams.scores("countdown", "greedy", arm)
        assert own_P is not None
        found = compare(fixed_P, own_P)
        shown = f"{points(found.mean)} [{points(found.low)}, {points(found.high)}]"
        rows.append([label(arm), f"{100 * own_P.mean():.1f}", f"{100 * fixed_P.mean():.1f}", shown])
    return markdown(["arm", "greedy, %", "two fixed sums, %", "difference"], rows)


def learnt(exams: Exams) -> str:
    """Greedy answers of the policies over the untrained model's, each mean with its interval for new problems."""
    rows = []
    for kind in ("grpo", "random"):
        found = over_seeds(exams, "countdown", "greedy", "base", kind)
        assert found is not None
        mean = points(float(np.mean(found.per_seed)))
        rows.append([f"{kind} − base, greedy", str(len(found.per_seed)), f"{mean} {found.both}"])
    return markdown(["difference", "seeds", "mean [95 %, new seeds and problems]"], rows)


def forms(exams: Exams) -> str:
    """The three most frequent forms of 300 greedy answers."""
    rows = []
    for arm, facts in exams.arms.items():
        first = [f"{form.replace('-', '−')}: {count}" for form, count in list(facts["forms"].items())[:3]]
        rows.append([label(arm), *first, *["–"] * (3 - len(first))])
    return markdown(["arm", "most frequent", "second", "third"], rows)


def main() -> None:
    """Print them."""
    exams = Exams(RESULTS)
    for title, table in (
        *tables(exams),
        ("Learnt, in points", learnt(exams)),
        ("Beside two fixed sums, in points", beside_fixed(exams)),
        ("Forms of greedy answers, n for each number", forms(exams)),
    ):
        print(f"{title}\n\n{table}\n")


if __name__ == "__main__":
    main()
