"""Differences seed by seed, each with its interval for problems: python studies/by_seed_tables.py FILE [CONTROL]

FILE is what exam_tables.py reads. Arms of one seed are compared problem by problem, so an interval speaks of new
problems and of these runs, not of new seeds. With a CONTROL, the comparisons with it of one seed and one set of
problems are adjusted by Holm among each other.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

from exam_tables import Exams, markdown, points

from rlvrlab.evals.statistics import Difference, compare, holm

Pair = tuple[str, str, str, str]
"""Set of problems, seed, and the kinds of arms before and after."""


def paired(exams: Exams) -> dict[Pair, Difference]:
    """Every comparison of the file, for every seed that both sides have; `base` stands for all seeds."""
    found = {}
    for data in exams.outcomes:
        for before, after in exams.against:
            for arm in exams.whole(after):
                seed = arm.rpartition("_s")[2]
                start = "base" if before == "base" else f"{before}_s{seed}"
                marks = [exams.scores(data, "greedy", one) for one in (start, arm)]
                if start in exams.whole(before) and marks[0] is not None and marks[1] is not None:
                    found[data, seed, before, after] = compare(list(marks[0]), list(marks[1]))
    return found


def adjusted(found: dict[Pair, Difference], control: str) -> dict[Pair, float]:
    """p of the comparisons with the control, by Holm."""
    families: dict[tuple[str, str], list[Pair]] = defaultdict(list)
    for pair in found:
        if pair[2] == control:
            families[pair[:2]].append(pair)
    return {
        pair: p
        for family in families.values()
        for pair, p in zip(family, holm([p_of(found[one]) for one in family]), strict=True)
    }


def p_of(found: Difference) -> float:
    """One seed on each side: there is a p."""
    assert found.p is not None
    return found.p


def by_seed(exams: Exams, control: str) -> str:
    """The table."""
    found = paired(exams)
    among, several = adjusted(found, control), bool(control)
    rows = []
    for pair, one in found.items():
        data, seed, before, after = pair
        told = f"{points(one.mean)} [{points(one.low)}, {points(one.high)}]"
        holms = [f"{among[pair]:.2g}" if pair in among else "–"] if several else []
        rows.append([f"{data}: greedy", f"{after} − {before}", seed, told, f"{p_of(one):.2g}", *holms])
    heads = ["measure", "difference", "seed", "points [95 %, problems only]", "p"]
    return markdown([*heads, *(["p (Holm)"] if several else [])], rows)


if __name__ == "__main__":
    print(by_seed(Exams(Path(sys.argv[1])), *(sys.argv[2:] or [""])))
