"""Blame by execution on MBPP with a 1.5B model: python studies/paper_a_credit_assignment/qwen_tables.py [FILE]

Beside what `python studies/exam_tables.py FILE` prints: every difference seed by seed, how often blame was located
while training, and in which form each policy came to write its programs.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
import numpy as np
from by_seed_tables import by_seed
from exam_tables import Exams, label, markdown

RESULTS = Path(__file__).parent / "results" / "qwen_mbpp_3.json"
CURVES = {"traced": "{:.0f}", "located": "{:.2f}", "seconds": "{:.1f}"}
FORMS = ("assertion", "docstring")
FAILURES = ("wrong_answer", "runtime")


def located(exams: Exams) -> str:
    """Mean of the first three steps → of the last five."""
    rows = []
    for arm, facts in exams.arms.items():
        if curves := facts.get("credit"):
            cells = [
                " → ".join(form.format(np.mean(steps)) for steps in (curves[name][:3], curves[name][-5:]))
                for name, form in CURVES.items()
            ]
            share = sum(curves["seconds"]) / sum(facts["curves"]["step_s"])
            rows.append([label(arm), *cells, f"{100 * share:.0f} %"])
    heads = ["programs followed per step", "share of failed answers blamed", "seconds per step", "of the step's time"]
    return markdown(["arm", *heads], rows)


def forms(exams: Exams) -> str:
    """Of the greedy answers to MBPP's test problems."""
    rows = [
        [label(arm), *(str(facts["errors"].get(f"mbpp: {kind}", 0)) for kind in FAILURES),
         *(str(facts["forms"][form]) for form in FORMS)]
        for arm, facts in exams.arms.items()
    ]  # fmt: skip
    return markdown(
        ["MBPP, greedy", "wrong answer", "error at run time", "with an assertion", "with a docstring"], rows
    )


def main() -> None:
    """Print them."""
    exams = Exams(Path(sys.argv[1]) if len(sys.argv) > 1 else RESULTS)
    print(f"Seed by seed\n\n{by_seed(exams, '')}\n")
    print(f"Blame while training\n\n{located(exams)}\n")
    print(f"How programs are written\n\n{forms(exams)}")


if __name__ == "__main__":
    main()
