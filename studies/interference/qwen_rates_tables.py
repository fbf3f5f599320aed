"""At which rate a 1.5B code model loses programs or SQL: python studies/interference/qwen_rates_tables.py

The fourth round of QWEN_DECLARATION.md, from results/qwen_skills_4.json: one first stage on programs, then SQL and
Countdown at three rates. Differences are to the policy after the first stage, on the same 120 problems of each skill;
intervals are for problems only.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
import numpy as np
from exam_tables import Exams, markdown, training_table
from qwen_skills_tables import SKILLS, between, right

from rlvrlab.evals.statistics import compare, holm, wilson

ROUND = Path(__file__).parent / "results" / "qwen_skills_4.json"
START = "code_s0"
RATES = {"rate3e-4_s0": "3e-4", "rate4e-4_s0": "4e-4", "rate6e-4_s0": "6e-4"}
EARLIER = ("mbpp", "sql")
SQL_STEPS, SHOWN = 12, 3
"""Steps of SQL's stage, and how many at its ends are told."""


def scores(exams: Exams) -> str:
    """Every skill before and after the first stage, and at the end of each rate's two stages."""
    rows = []
    for name, told in {"base": "before", START: "after programs, 2e-4", **RATES}.items():
        cells = []
        for data in SKILLS:
            marks = right(exams, name, data)
            low, high = wilson(int(sum(marks)), len(marks))
            cells.append(f"{100 * np.mean(marks):.1f} [{100 * low:.1f}, {100 * high:.1f}]")
        formless = sum(count for error, count in exams.arms[name]["errors"].items() if error.endswith(": format"))
        rows.append([told, *cells, str(formless)])
    return markdown(["", *SKILLS.values(), "not in form, of 360"], rows)


def losses(exams: Exams) -> str:
    """What the second and third stage did to the earlier skills; p adjusted over all six."""
    found = {
        (name, data): compare(right(exams, START, data), right(exams, name, data)) for name in RATES for data in EARLIER
    }
    adjusted = dict(zip(found, holm([one.p or 0.0 for one in found.values()]), strict=True))
    rows = []
    for name, rate in RATES.items():
        cells = [f"{between(found[name, data])}, p = {adjusted[name, data]:.2g}" for data in EARLIER]
        learnt = compare(right(exams, START, "countdown"), right(exams, name, "countdown"))
        rows.append([rate, *cells, between(learnt)])
    return markdown(["rate", "code: end − after programs", "sql: end − after programs", "countdown"], rows)


def own_stage(exams: Exams) -> str:
    """The share of right training answers while SQL itself was trained."""
    rows = []
    for name, rate in RATES.items():
        steps = exams.arms[name]["curves"]["right"][:SQL_STEPS]
        rows.append([rate, f"{np.mean(steps[:SHOWN]):.2f}", f"{np.mean(steps[-SHOWN:]):.2f}", f"{min(steps):.2f}"])
    return markdown(["rate", "first three steps of SQL", "last three", "lowest"], rows)


def main() -> None:
    """Print them."""
    exams = Exams(ROUND)
    for title, table in (
        ("Every skill, greedy, in %", scores(exams)),
        ("Lost and learnt, in points", losses(exams)),
        ("Right training answers during SQL's own stage", own_stage(exams)),
        ("During training", training_table(exams)),
    ):
        print(f"{title}\n\n{table}\n")


if __name__ == "__main__":
    main()
