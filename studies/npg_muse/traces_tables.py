"""Tables of the runs on solver traces: python studies/npg_muse/traces_tables.py [FILE.json]

Reads results/qwen_traces.json or the file named (made by keep_traces.py). What exam_tables.py prints of it comes first;
trainings that time cut are in no difference. Then answers drawn at T = 1 where there are some, by task and level, how
training went, how far sampler and trainer were apart and how many neighbours the traces name where that was recorded,
and what kind of error the answers are.
Where the test problems are of the levels of results/qwen_coder.json, SFT without traces stands beside SFT with them.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))
from exam_tables import Exams, arm_table, difference_table, label, markdown, over_three, points  # noqa: E402

TRACES, WITHOUT = (HERE / "results" / f"{name}.json" for name in ("qwen_traces", "qwen_coder"))
FORMS = {"right": "{:.3f}", "dead_groups": "{:.2f}", "entropy": "{:.3f}", "grad_norm": "{:.2f}", "tokens": "{:.0f}",
         "step_s": "{:.0f}"}  # fmt: skip
ERRORS = ("none", "wrong_answer", "rule", "syntax", "format")
TEN = 10
LEVELS_WITHOUT = {1, 2}
"""Levels of the test problems of SFT without traces."""


def named(exams: Exams, arm: str) -> str:
    """An arm in words, marked where time cut it."""
    return label(arm) + (" (cut by time)" if exams.arms[arm].get("cut") else "")


def drawn(exams: Exams) -> str:
    """Test answers drawn at T = 1, after SFT and GRPO: the share right, and of problems that any of them solves."""
    found = {arm: facts["drawn"] for arm, facts in exams.arms.items() if facts.get("drawn")}
    rows: list[list[str]] = []
    gains: dict[str, list[float]] = {"mean": [], "any": []}
    for after in (arm for arm in exams.whole("grpo") if arm in found):
        first, last = found[after.replace("grpo", "sft")], found[after]
        cells = []
        for key, own in gains.items():
            own.append(last[key] - first[key])
            cells.append(f"{100 * first[key]:.1f} → {100 * last[key]:.1f} ({points(own[-1])})")
        rows.append([named(exams, after), *cells])
    if len(rows) == 3:
        rows.append(["mean [95 %, t over three seeds]", *map(over_three, gains.values())])
    n = max((one["n"] for one in found.values()), default=0)
    return markdown([f"{n} answers a test problem, drawn at T = 1", "right, %", f"pass@{n}, %"], rows) if rows else ""


def by_level(exams: Exams, levels: list[int]) -> str:
    """Right answers of every task and level: means of the kinds that were whole on all seeds, GRPO run by run."""
    columns = {"base": [arm for arm in exams.arms if arm == "base"]}
    columns |= {f"{kind}, 3 runs": exams.whole(kind) for kind in ("sft", "more_sft")}
    columns |= {named(exams, arm): [arm] for arm in sorted(exams.arms) if arm.startswith("grpo")}
    columns = {name: arms for name, arms in columns.items() if arms}
    means = [np.mean([exams.scores("np", "greedy", arm) for arm in arms], axis=0) for arms in columns.values()]
    places = list(zip(exams.skills["np"], levels, strict=True))
    rows = []
    for place in sorted(set(places)):
        own = [i for i, one in enumerate(places) if one == place]
        rows.append([place[0], str(place[1]), *(f"{100 * mean[own].mean():.1f}" for mean in means)])
    return markdown(["task", "level", *columns], rows)


def training(exams: Exams) -> str:
    """Mean of the first three steps → of the last five."""
    rows = []
    for arm, facts in exams.arms.items():
        if curves := facts.get("curves"):
            ends = [(np.mean(curves[key][:3]), np.mean(curves[key][-5:])) for key in FORMS]
            forms = zip(FORMS.values(), ends, strict=True)
            cells = [" → ".join(form.format(one) for one in pair) for form, pair in forms]
            rows.append([named(exams, arm), *cells, f"{facts['train_s'] / 60:.1f}"])
    heads = ["right, all training answers", "dead groups", "entropy", "gradient norm", "tokens per answer"]
    return markdown(["arm", *heads, "seconds per step", "minutes of training"], rows)


def by_tens(exams: Exams) -> str:
    """Training answers that were right, in stretches of ten updates."""
    curves = {arm: facts["curves"]["right"] for arm, facts in exams.arms.items() if "curves" in facts}
    starts = range(0, max(map(len, curves.values())), TEN)
    rows = [
        [named(exams, arm), *(f"{100 * np.mean(one[i : i + TEN]):.1f}" if one[i:] else "–" for i in starts)]
        for arm, one in curves.items()
    ]
    return markdown(["training answers right, %", *(f"updates {i + 1}–{i + TEN}" for i in starts)], rows)


def apart(exams: Exams) -> str:
    """How far the sampler's probabilities were from the trainer's: over all updates, and the farthest one."""
    rows = []
    for arm, facts in exams.arms.items():
        if found := facts.get("apart"):
            size = [f"{one:.4f}" for one in (np.mean(found["ess"]), min(found["ess"]))]
            ends = f"{min(found['least']):.4f} to {max(found['most']):.1f}"
            rows.append([named(exams, arm), *size, f"{100 * np.mean(found['changed']):.3f}", ends])
    heads = ["effective sample size, mean", "least", "weights that were capped, %", "weights of tokens, before the cap"]
    return markdown(["arm", *heads], rows) if rows else ""


def neighbours(exams: Exams) -> str:
    """How many neighbours a line of a trace names that lists them, in greedy test answers, by task."""
    found = {named(exams, arm): facts["neighbours"] for arm, facts in exams.arms.items() if facts.get("neighbours")}
    tasks = sorted({task for means in found.values() for task in means})
    rows = [[arm, *(f"{means[task]:.2f}" if task in means else "–" for task in tasks)] for arm, means in found.items()]
    return markdown(["neighbours named for a node, mean", *tasks], rows) if rows else ""


def errors(exams: Exams) -> str:
    """How greedy test answers were judged."""
    rows = [
        [named(exams, arm), *(str(facts["errors"].get(f"np: {kind}", 0)) for kind in ERRORS)]
        for arm, facts in exams.arms.items()
    ]
    return markdown(["of 360 test answers", "right", "not the best", "breaks a rule", "unreadable", "no answer"], rows)


def beside_without(exams: Exams, without: Exams) -> str:
    """SFT with and without traces, by seed; another day, other code and other limits on tokens."""
    pairs = [
        [100 * float(np.mean([one.scores("np", "greedy", arm)])) for one in (without, exams)]
        for arm in exams.whole("sft")
    ]
    rows = [[f"sft {i}", *(f"{one:.1f}" for one in pair)] for i, pair in enumerate(pairs)]
    for row, (before, after) in zip(rows, pairs, strict=True):
        row.append(points((after - before) / 100))
    return markdown(["40 SFT updates", "answers alone", "traces", "difference, points"], rows)


def tasks_beside_without(exams: Exams, without: Exams) -> str:
    """The same by task, mean over seeds."""
    tasks = sorted(set(exams.skills["np"]))
    rows = []
    for words, one in (("answers alone", without), ("traces", exams)):
        mean = np.mean([one.scores("np", "greedy", arm) for arm in one.whole("sft")], axis=0)
        own = [[i for i, name in enumerate(one.skills["np"]) if name == task] for task in tasks]
        rows.append([words, *(f"{100 * mean[places].mean():.1f}" for places in own)])
    return markdown(["40 SFT updates, 3 runs", *tasks], rows)


def tables(path: Path) -> list[str]:
    """All tables of a file."""
    made: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    exams, without, levels = Exams(path), Exams(WITHOUT), made["levels"]["np"]
    shown = [arm_table(exams), difference_table(exams), drawn(exams), by_level(exams, levels), training(exams)]
    shown += [by_tens(exams), apart(exams), neighbours(exams), errors(exams)]
    if set(levels) == LEVELS_WITHOUT:
        shown += [beside_without(exams, without), tasks_beside_without(exams, without)]
    return [table for table in shown if table]


def main() -> None:
    """Print the tables of the file named."""
    for table in tables(Path(sys.argv[1]) if len(sys.argv) > 1 else TRACES):
        print(f"{table}\n")


if __name__ == "__main__":
    main()
