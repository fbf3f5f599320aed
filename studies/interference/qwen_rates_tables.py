"""At which rate a 1.5B code model loses programs or SQL: python studies/interference/qwen_rates_tables.py

The fourth round of QWEN_DECLARATION.md, from results/qwen_skills_4.json: one first stage on programs, then SQL and
Countdown at three rates, examined before and after both. The fifth, from results/qwen_skills_5.json: three arms again,
examined between the two stages too, which tells what SQL lost in its own stage from what it lost to Countdown. All on
the same 120 problems of each skill; intervals are for problems only.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
import numpy as np
from exam_tables import Exams, markdown, training_table
from qwen_skills_tables import SKILLS, between, matrix, right, stages

from rlvrlab.evals.statistics import Difference, compare, holm, wilson

FIFTH = Path(__file__).parent / "results" / "qwen_skills_5.json"
ARMS = {"rate4e-4": "4e-4, 12 steps", "rate6e-4": "6e-4, 12 steps", "long": "2e-4, 36 steps"}
"""Of the fifth round: rate and length of the second and third stage."""
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


def forgotten(exams: Exams, seed: int) -> str:
    """What later stages took from each skill, and what its own stage took from SQL; p is over the first two columns."""
    found: dict[tuple[str, str], Difference] = {}
    for arm in ARMS:
        at = stages(exams, arm, seed)
        if "after countdown" not in at:
            continue
        moments = {"mbpp": ("after code", "after countdown"), "sql": ("after sql", "after countdown")}
        moments |= {"own": ("after code", "after sql"), "countdown": ("after sql", "after countdown")}
        for what, (first, last) in moments.items():
            data = "sql" if what == "own" else what
            found[arm, what] = compare(right(exams, at[first], data), right(exams, at[last], data))
    earlier = [pair for pair in found if pair[1] in EARLIER]
    adjusted = dict(zip(earlier, holm([found[pair].p or 0.0 for pair in earlier]), strict=True))
    rows = []
    for arm in dict.fromkeys(arm for arm, _ in found):
        kept = [f"{between(found[arm, data])}, p = {adjusted[arm, data]:.2g}" for data in EARLIER]
        rows.append([ARMS[arm], *kept, between(found[arm, "own"]), between(found[arm, "countdown"])])
    heads = ["second and third stage", "code: end − after code", "sql: end − after sql", "sql: after sql − after code"]
    return markdown([*heads, "countdown: end − after sql"], rows)


def formless(exams: Exams) -> str:
    """How many of 360 answers are not in the demanded form."""
    rows = []
    for name, facts in exams.arms.items():
        errors = {data: facts["errors"].get(f"{data}: format", 0) for data in SKILLS}
        rows.append([name.replace("_", " "), *map(str, errors.values()), str(sum(errors.values()))])
    return markdown(["examined", *SKILLS.values(), "of 360"], rows)


def main() -> None:
    """Print them."""
    exams, fifth = Exams(ROUND), Exams(FIFTH)
    for title, table in (
        ("Every skill, greedy, in %", scores(exams)),
        ("Lost and learnt, in points", losses(exams)),
        ("Right training answers during SQL's own stage", own_stage(exams)),
        ("During training", training_table(exams)),
        *((f"Fifth round, seed {seed}, in %", matrix(fifth, seed, tuple(ARMS))) for seed in (0, 1)),
        *((f"Fifth round, seed {seed}: forgotten, in points", forgotten(fifth, seed)) for seed in (0, 1)),
        ("Fifth round: not in form", formless(fifth)),
        ("Fifth round: during training", training_table(fifth)),
    ):
        print(f"{title}\n\n{table}\n")


if __name__ == "__main__":
    main()
