"""What a 1.5B code model kept of three skills: python studies/interference/qwen_skills_tables.py [FILE [TURNS]]

A matrix of stages and skills for every arm, what each arm forgot, and what guards kept beside plain training, as
QWEN_DECLARATION.md says; where TURNS is given, `mixed` of FILE beside plain training in turn of TURNS, another round on
the same problems. Scores are in %, differences in points; intervals are for problems only.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
import numpy as np
from exam_tables import Exams, markdown, points, training_table

from rlvrlab.evals.statistics import Difference, compare, holm, wilson

RESULTS = Path(__file__).parent / "results" / "qwen_skills.json"
SKILLS = {"mbpp": "code", "sql": "sql", "countdown": "countdown"}
"""Sets in the order they were trained, and how the study calls them."""
GUARDS = ("l2", "kl", "skill_safe", "average")
ARMS = ("plain", *GUARDS, "fast", "mixed")
AT_ONCE = "mixed"
"""The arm that trained all skills at once: it has no stages between."""


def stages(exams: Exams, arm: str, seed: int) -> dict[str, str]:
    """Moment -> the name of what was examined then, where it was; a training that was cut has no end."""
    between = {"after code": f"code_s{seed}", "after sql": f"{arm}_after_sql_s{seed}"} if arm != AT_ONCE else {}
    last = "after countdown" if arm != AT_ONCE else "after all at once"
    moments = {"before": "base", **between, last: f"{arm}_s{seed}"}
    return {at: name for at, name in moments.items() if name in exams.arms and not exams.arms[name].get("cut")}


def right(exams: Exams, name: str, *sets: str) -> list[float]:
    """Whether each problem of these sets was solved, one set after the other."""
    found = [exams.scores(data, "greedy", name) for data in sets]
    return [float(mark) for one in found if one is not None for mark in one]


def between(found: Difference) -> str:
    """A difference with its interval."""
    return f"{points(found.mean)} [{points(found.low)}, {points(found.high)}]"


def matrix(exams: Exams, seed: int, arms: Sequence[str] = ARMS) -> str:
    """Every arm after every stage."""
    rows, known = [], set[str]()
    for arm in arms:
        for at, name in stages(exams, arm, seed).items():
            if name in known:
                continue  # shared by all arms
            known.add(name)
            cells = []
            for data in SKILLS:
                marks = right(exams, name, data)
                low, high = wilson(int(sum(marks)), len(marks))
                cells.append(f"{100 * np.mean(marks):.1f} [{100 * low:.1f}, {100 * high:.1f}]")
            rows.append(["all" if at in ("before", "after code") else arm, at, *cells])
    return markdown(["arm", "examined", *SKILLS.values()], rows)


def forgetting(exams: Exams, seed: int) -> str:
    """What was left at the end of what a skill had when its own stage ended; negative where it was lost."""
    rows = []
    for arm in ARMS:
        known = stages(exams, arm, seed)
        if "after countdown" in known:
            end, cells = known["after countdown"], []
            for data, at in (("mbpp", "after code"), ("sql", "after sql"), ("countdown", "before")):
                there = at in known
                cells.append(between(compare(right(exams, known[at], data), right(exams, end, data))) if there else "–")
            rows.append([arm, *cells])
    return markdown(["arm", "code: end − after code", "sql: end − after sql", "countdown: end − before"], rows)


def guards(exams: Exams, seed: int) -> str:
    """Every guard against plain training after the last stage; p of the earlier skills adjusted by Holm."""
    compared = ("plain", *GUARDS)
    ends = {
        arm: known["after countdown"] for arm in compared if "after countdown" in (known := stages(exams, arm, seed))
    }
    if "plain" not in ends:
        return "plain training did not end"
    found = {
        arm: [compare(right(exams, ends["plain"], *sets), right(exams, name, *sets))
              for sets in (("mbpp", "sql"), ("countdown",))]
        for arm, name in ends.items() if arm != "plain"
    }  # fmt: skip
    adjusted = holm([earlier.p or 0.0 for earlier, _ in found.values()])  # one seed each: there is a p
    rows = [
        [arm, between(earlier), f"{p:.2g}", between(last)]
        for (arm, (earlier, last)), p in zip(found.items(), adjusted, strict=True)
    ]
    return markdown(["guard − plain", "code and sql", "p (Holm)", "countdown"], rows)


def same_problems(exams: Exams, others: Exams) -> None:
    """Refuses two rounds that cannot be paired problem by problem."""
    if exams.skills != others.skills:
        raise SystemExit("the two rounds have other problems")


def beside_turns(exams: Exams, turns: Exams) -> str:
    """The mixture against the untrained model and against each seed that was trained in turn, problem by problem."""
    same_problems(exams, turns)
    others = {"before": "base"} | {f"plain in turn, seed {seed}": f"plain_s{seed}" for seed in (0, 1)}
    rows = [
        [f"{AT_ONCE} − {told}"]
        + [between(compare(right(turns, name, data), right(exams, f"{AT_ONCE}_s0", data))) for data in SKILLS]
        for told, name in others.items()
    ]
    return markdown(["difference", *SKILLS.values()], rows)


def every_table(exams: Exams) -> Iterator[tuple[str, str]]:
    """Title and lines of all of them, seed by seed."""
    if "plain_s0" not in exams.arms:
        yield "Every skill at the end, in %", matrix(exams, 0)
    for seed in (0, 1):
        if f"plain_s{seed}" in exams.arms:
            yield f"Every skill after every stage, seed {seed}, in %", matrix(exams, seed)
            yield f"Kept and learnt, seed {seed}, in points", forgetting(exams, seed)
            yield f"Guards against plain training, seed {seed}, in points", guards(exams, seed)
    yield "During training", training_table(exams)


def main() -> None:
    """Print them."""
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else RESULTS
    exams = Exams(path)
    tables = list(every_table(exams))
    if len(sys.argv) > 2:
        tables.append(("All at once beside in turn, in points", beside_turns(exams, Exams(Path(sys.argv[2])))))
    for title, table in tables:
        print(f"### {title}\n\n{table}\n")


if __name__ == "__main__":
    main()
