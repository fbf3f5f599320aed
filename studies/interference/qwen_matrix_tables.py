"""Who changes whom in a 1.5B code model on three skills in turn: python studies/interference/qwen_matrix_tables.py

For every arm that was examined after every stage: by how much each skill's success changed over each stage. Then what
every guard of the second round learnt and what it lost, with the mixture of the third, which was asked the same
problems. Points, paired by problem, with 95 % intervals for new problems; no cell is corrected for the others. No
declaration names these tables, so they are exploratory. Seeds stand beside each other: there are at most two of an arm.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))
import qwen_rates_tables
from exam_tables import Exams, markdown
from qwen_skills_tables import ARMS, AT_ONCE, GUARDS, SKILLS, between, right, same_problems, stages

from rlvrlab.evals.statistics import Difference, compare

RESULTS = Path(__file__).parent / "results"
STAGES = {
    "mbpp": ("before", "after code"),
    "sql": ("after code", "after sql"),
    "countdown": ("after sql", "after countdown"),
}
"""Skill -> the moments before and after its own stage."""
EARLIER = ("mbpp", "sql")
SEEDS = (0, 1)
BROKEN = ("fast", "rate6e-4")
"""Arms that answered hardly anything in form at their end: they lost everything at once."""


class Round(NamedTuple):
    """Arms that share one first stage per seed."""

    title: str
    exams: Exams
    arms: dict[str, str]
    """Arm -> how the table calls it."""


def rounds() -> list[Round]:
    """Those with an examination after every stage; the fourth has none between SQL and Countdown."""
    in_turn = {arm: arm for arm in ARMS if arm != AT_ONCE}
    return [
        Round("First round, 2e-4", Exams(RESULTS / "qwen_skills.json"), in_turn),
        Round("Second round, 2e-4 (fast: 1e-3)", Exams(RESULTS / "qwen_skills_2.json"), in_turn),
        Round("Fifth round, other rates and lengths", Exams(qwen_rates_tables.FIFTH), qwen_rates_tables.ARMS),
    ]


def change(exams: Exams, arm: str, seed: int, trained: str, asked: str) -> Difference | None:
    """What happened to the skill that is asked while another, or itself, was trained; None where that is not known."""
    known, (first, last) = stages(exams, arm, seed), STAGES[trained]
    if first not in known or last not in known:
        return None
    return compare(right(exams, known[first], asked), right(exams, known[last], asked))


def cells(one: Round) -> dict[tuple[str, str, str, int], Difference]:
    """(arm, skill trained, skill asked, seed) -> change; the first stage, which all arms share, is told once."""
    shared, *_ = one.arms
    asked = [("all", shared, "mbpp")] + [(arm, arm, trained) for arm in one.arms for trained in ("sql", "countdown")]
    found = {
        (told, trained, data, seed): change(one.exams, arm, seed, trained, data)
        for told, arm, trained in asked for data in SKILLS for seed in SEEDS
    }  # fmt: skip
    return {place: difference for place, difference in found.items() if difference is not None}


def matrix(one: Round) -> str:
    """Rows: the skill that an arm trained. Columns: the skill that was asked, seed by seed."""
    found = cells(one)
    seeds = sorted({seed for *_, seed in found})
    columns = [(data, seed) for data in SKILLS for seed in seeds]
    rows = [
        [
            one.arms.get(arm, arm),
            SKILLS[trained],
            *(between(found[place]) if (place := (arm, trained, *column)) in found else "–" for column in columns),
        ]
        for arm, trained in dict.fromkeys((arm, trained) for arm, trained, *_ in found)
    ]
    return markdown(["arm", "trained", *(f"{SKILLS[data]}, seed {seed}" for data, seed in columns)], rows)


def told_from_zero(every: list[Round]) -> str:
    """How many cells of skills that were not trained have an interval without zero, broken arms left out."""
    rows = []
    for one in every:
        for title, first in (("code", True), ("sql or countdown", False)):
            others = [
                difference for (arm, trained, asked, _), difference in cells(one).items()
                if trained != asked and arm not in BROKEN and (trained == "mbpp") == first
            ]  # fmt: skip
            below, above = sum(found.high < 0 for found in others), sum(found.low > 0 for found in others)
            rows.append([one.title, title, str(len(others)), str(below), str(above)])
    return markdown(["round", "trained", "cells of other skills", "below zero", "above zero"], rows)


def learnt_and_kept(turns: Exams, mixture: Exams) -> str:
    """Every guard, seed by seed: what each skill gained by the end of its own stage, and what later stages took."""
    same_problems(mixture, turns)
    rows = []
    for arm in ("plain", *GUARDS):
        ended = [seed for seed in SEEDS if "after countdown" in stages(turns, arm, seed)]
        for seed in ended:
            known = stages(turns, arm, seed)
            own = {data: right(turns, known[last], data) for data, (_, last) in STAGES.items()}
            end = {data: right(turns, known["after countdown"], data) for data in EARLIER}
            kept = [compare(own[data], end[data]) for data in EARLIER]
            kept.append(compare(own["mbpp"] + own["sql"], end["mbpp"] + end["sql"]))
            rows.append([arm, str(len(ended)), str(seed), *learnt(turns, own), *map(between, kept)])
    at_once = {data: right(mixture, f"{AT_ONCE}_s0", data) for data in SKILLS}
    rows.append([AT_ONCE, "1", "0", *learnt(turns, at_once), "–", "–", "–"])
    gains = [f"learnt: {told}" for told in (*SKILLS.values(), "all three")]
    losses = [f"since its own stage: {told}" for told in ("code", "sql", "both")]
    return markdown(["guard", "seeds", "seed", *gains, *losses], rows)


def learnt(turns: Exams, own: dict[str, list[float]]) -> list[str]:
    """From the untrained model to the end of each skill's own stage: skill by skill, and all problems together."""
    before = {data: right(turns, "base", data) for data in SKILLS}
    together = compare(*([mark for data in SKILLS for mark in side[data]] for side in (before, own)))
    return [between(compare(before[data], own[data])) for data in SKILLS] + [between(together)]


def main() -> None:
    """Print them."""
    every = rounds()
    for one in every:
        print(f"{one.title}: change over each stage, in points\n\n{matrix(one)}\n")
    print(f"Told from zero, each cell alone\n\n{told_from_zero(every)}\n")
    mixture = Exams(RESULTS / "qwen_skills_3.json")
    print(f"Guards of the second round, in points\n\n{learnt_and_kept(every[1].exams, mixture)}\n")


if __name__ == "__main__":
    main()
