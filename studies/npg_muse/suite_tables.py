"""Tables of a suite before and after a training: python studies/npg_muse/suite_tables.py FILE.json

FILE is made by keep_suite.py. The first table is that of `rlvr suite` with the untrained model first: shares of right
answers with their intervals, and differences to the untrained model, paired by problem and adjusted for all of the
table. Then the training's own test problems, how answers were judged, and how training went.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from exam_tables import Exams, markdown, points, skill_table, training_table
from keep_suite import ARMS, OWN

from rlvrlab.batch import Floats
from rlvrlab.evals.statistics import Difference, compare, estimate
from rlvrlab.evals.suites.examine import Cell, Examined, compared
from rlvrlab.shares import cell, hundredths

WORDS = {"base": "untrained", "sft": "after SFT", "grpo": "after GRPO"}


def policies(exams: Exams) -> list[str]:
    """Those that were examined, the untrained one first."""
    return [arm for arm in ARMS if arm in exams.arms]


def shared_sets(exams: Exams) -> list[str]:
    """The suite's sets that all policies have answered."""
    return [data for data, one in exams.outcomes.items() if data != OWN and set(one["greedy"]) >= set(exams.arms)]


def change(found: Difference | None) -> str:
    """A difference with its interval, and a star where that excludes zero."""
    if found is None:
        return "–"
    star = "" if found.verdict == "not shown" else "*"
    return f"{points(found.mean)} [{points(found.low)}, {points(found.high)}]{star}"


def suite_of(exams: Exams) -> Examined:
    """What `rlvr suite` would tell of the policies together."""
    scores, cells = {}, []
    for arm in policies(exams):
        for data in shared_sets(exams):
            right_P = exams.scores(data, "greedy", arm)
            assert right_P is not None
            scores[arm, data] = {str(place): float(right) for place, right in enumerate(right_P)}
            found = estimate(right_P)
            bounds = (found.value, found.value)  # every answer that is kept has a verdict
            told = (found.value, found.low, found.high, found.problems)
            cells.append(Cell(arm, data, "", "accepted@1", *told, unjudged=0, bounds=bounds, protocol=""))
    return Examined(*compared(cells, scores), ())


def mark_table(exams: Exams) -> str:
    """Of each set and policy how many answers have `###` behind what they say, and how many say the right thing."""
    rows = []
    for data in shared_sets(exams):
        told = {arm: exams.arms[arm]["examined"][data]["mark_behind"] for arm in policies(exams)}
        if any(one["answers"] for one in told.values()):
            asked = len(exams.skills[data])
            rows += [
                [data, WORDS[arm], str(asked), str(one["answers"]), str(one["right"])] for arm, one in told.items()
            ]
    return markdown(["set, greedy", "policy", "answers", "with ### behind", "of these say the right thing"], rows)


def suite_table(exams: Exams) -> str:
    """A line per set, and the plain mean over sets."""
    found, arms = suite_of(exams), policies(exams)
    cells = {(one.member, one.model): one for one in (*found.cells, *found.averages)}
    rows = []
    for data in dict.fromkeys(name for name, _ in cells):
        own = [cells[data, arm] for arm in arms]
        shares = [cell(one.value, one.low, one.high) for one in own]
        rows.append([data, str(own[0].problems), *shares, *(change(one.versus) for one in own[1:])])
    heads = ["set, greedy", "problems", *(WORDS[arm] for arm in arms)]
    return markdown([*heads, *(f"{WORDS[arm]} − untrained" for arm in arms[1:])], rows)


def adjustment(exams: Exams) -> str:
    """For how many comparisons the table is adjusted, what it cannot see, and what is not as declared."""
    differences = [one.versus for one in suite_of(exams).cells if one.versus]
    least = max((one.detectable or 0.0 for one in differences), default=0.0)
    told = f"Differences are adjusted for {len(differences)} comparisons; * beyond chance."
    told += f" Differences under {hundredths(least, 0)} points may stay unseen." if least else ""
    apart = [data for data in exams.outcomes if data != OWN and data not in shared_sets(exams)]
    told += "".join(f" {WORDS[arm]}: cut by time." for arm in policies(exams) if exams.arms[arm]["cut"])
    return told + (f" Not answered by every policy, and left out: {', '.join(apart)}." if apart else "")


def own_table(exams: Exams) -> str:
    """The training's own test problems, each policy beside the one before it; not adjusted."""
    rows: list[list[str]] = []
    before: Floats | None = None
    for arm in policies(exams):
        right_P = exams.scores(OWN, "greedy", arm)
        if right_P is None:
            continue
        found = estimate(right_P)
        versus = compare(before, right_P) if before is not None else None
        rows.append([WORDS[arm], str(found.problems), cell(found.value, found.low, found.high), change(versus)])
        before = right_P
    return markdown(["policy", OWN, "right, % [95 %]", "difference to the one above"], rows)


def verdicts(exams: Exams) -> str:
    """How answers were judged, and how many ended at the longest answer."""
    told = [(data, arm, one) for arm in policies(exams) for data, one in exams.arms[arm]["examined"].items()]
    kinds = sorted({kind for _, _, one in told for kind in one["errors"]} - {"none"})
    places = {data: place for place, data in enumerate(exams.outcomes)}
    rows = [
        [data, WORDS[arm], *(str(one["errors"].get(kind, 0)) for kind in ("none", *kinds)), str(one["truncated"])]
        for data, arm, one in sorted(told, key=lambda one: places[one[0]])
    ]
    return markdown(["set, greedy", "policy", "right", *kinds, "cut off by length"], rows)


def tables(path: Path) -> Iterator[tuple[str, str]]:
    """Title and lines of all of them."""
    exams = Exams(path)
    yield "The suite, in %", f"{suite_table(exams)}\n\n{adjustment(exams)}"
    if OWN in exams.outcomes:
        yield "The training's own test problems", own_table(exams)
        yield "The same by task, in %", skill_table(exams, OWN)
    yield "How answers were judged", verdicts(exams)
    yield "Answers with ### behind what they say", mark_table(exams)
    yield "During GRPO", training_table(exams)


def main() -> None:
    """Print the tables of the files named."""
    for path in map(Path, sys.argv[1:]):
        for title, table in tables(path):
            print(f"{title}\n\n{table}\n")


if __name__ == "__main__":
    main()
