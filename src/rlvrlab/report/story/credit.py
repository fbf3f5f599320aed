"""Which steps of an answer earned its reward, by kind of statement and by line, from stored answers."""

from __future__ import annotations

from collections import defaultdict
from statistics import fmean
from typing import Any

from rlvrlab import plain_files
from rlvrlab.evals.pooled import estimate_pooled
from rlvrlab.record.run import rollout_files
from rlvrlab.report.reading import as_table, decoded
from rlvrlab.report.run_record import RunRecord
from rlvrlab.report.story.part import Part, bars
from rlvrlab.shares import about, bracket, difference, signed

MOST_FILES = 20
"""Steps whose answers are read, spread evenly over the run."""
MOST_LINES = 20


def credit(run: RunRecord) -> Part | None:
    """None where no step credit was asked for, or no examined step is stored."""
    if not as_table(run.recipe.get("credit")):
        return None
    kinds, by_line, answers = _examined(run)
    if not kinds:
        return None
    head = ["mean_credit", "low", "high", "steps", "share_with_credit"]
    tables = {
        "credit_by_kind": (["kind", *head], [_row(name, kinds[name]) for name in sorted(kinds)]),
        "credit_by_line": (["line", *head], [_row(line, by_line[line]) for line in sorted(by_line)[:MOST_LINES]]),
    }
    shown = {
        name: bars(title, [(str(row[0]), row[1], row[2], row[3]) for row in tables[name][1]], "mean credit")
        for name, title in (("credit_by_kind", "Credit by kind of step"), ("credit_by_line", "Credit by line"))
    }
    return Part(tables, shown, _sentences(run, kinds, by_line, answers))


class Credits:
    """Credits of steps of one kind, or in one line, problem by problem."""

    def __init__(self) -> None:
        self.by_problem: dict[str, list[float]] = defaultdict(list)

    @property
    def values(self) -> list[float]:
        """The credits of all steps."""
        return [value for own in self.by_problem.values() for value in own]

    def interval(self) -> tuple[float, float | None, float | None]:
        """Mean, and the interval for new problems: the steps and answers of one problem are alike."""
        found = estimate_pooled(list(self.by_problem.values()), share=False)
        certain = found.problems > 1 and found.high > found.low
        return found.value, found.low if certain else None, found.high if certain else None


def _examined(run: RunRecord) -> tuple[dict[str, Credits], dict[int, Credits], int]:
    files = list(rollout_files(run.root).values())
    some = [files[i * len(files) // min(MOST_FILES, len(files))] for i in range(min(MOST_FILES, len(files)))]
    kinds: dict[str, Credits] = defaultdict(Credits)
    by_line: dict[int, Credits] = defaultdict(Credits)
    answers = 0
    for path in some:
        for line in plain_files.read_bytes(path).splitlines():
            if b'"steps": [' not in line:
                continue
            row: dict[str, Any] = as_table(decoded(line))
            known = [step for step in row.get("steps") or () if step.get("credit") is not None]
            answers += bool(known)
            problem = str(row.get("problem"))
            for step in known:
                line_number = str(row.get("completion", "")).count("\n", 0, step["start"]) + 1
                for place in (kinds[str(step.get("kind") or "?")], by_line[line_number]):
                    place.by_problem[problem].append(float(step["credit"]))
    return kinds, by_line, answers


def _row(name: str | int, credits: Credits) -> list[Any]:
    values = credits.values
    return [name, *credits.interval(), len(values), sum(map(bool, values)) / len(values)]


def _by_place(by_line: dict[int, Credits]) -> str:
    """The credit of the first and of the last line; nothing where there is one line, or where both round to 0."""
    ends = {line: signed(fmean(by_line[line].values)) for line in (min(by_line), max(by_line))}
    if len(ends) < 2 or all(float(mean) == 0 for mean in ends.values()):
        return ""
    return f" By place: {', '.join(f'{mean} on line {line}' for line, mean in ends.items())}."


def _sentences(run: RunRecord, kinds: dict[str, Credits], by_line: dict[int, Credits], answers: int) -> list[str]:
    every = Credits()
    for own in kinds.values():
        for problem, values in own.by_problem.items():
            every.by_problem[problem] += values
    steps, share = every.values, estimate_pooled([[float(v != 0) for v in own] for own in every.by_problem.values()])
    told = []
    for kind in sorted(kinds, key=lambda kind: -fmean(kinds[kind].values))[:6]:
        mean, low, high = kinds[kind].interval()
        told.append(f"{kind} {difference(mean, low, high, 1, 2)} ({len(kinds[kind].values)})")
    said = [
        f"**Step credit** was measured on {len(steps)} steps of {answers} stored answers to {share.problems} problems: "
        f"{about(share.value)} of them{bracket(share.low, share.high, 100, 0)} earn or cost something. "
        f"Mean credit by kind of step, with 95 % intervals for new problems, and counts: {', '.join(told)}."
        f"{_by_place(by_line)}"
    ]
    replays = sum(value for _, value, _ in run.series("credit/replays"))
    examined = len(run.series("credit/replays"))
    if examined:
        said.append(
            f"It took {replays:.0f} replays in {examined} steps; whether that pays is a comparison with the same "
            "recipe without `[credit]` (`rlvr compare`)."
        )
    return said
