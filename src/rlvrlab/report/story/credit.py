"""Which steps of an answer earned its reward, by kind of statement and by line, from stored answers."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from rlvrlab.evals.statistics import wilson
from rlvrlab.report.gather.reading import as_table
from rlvrlab.report.gather.record import RunRecord
from rlvrlab.report.gather.skills import interval
from rlvrlab.report.stored_lines import decoded
from rlvrlab.report.story import pictures
from rlvrlab.report.story.part import Part, bracket

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
        name: pictures.bars(title, [(str(row[0]), row[1], row[2], row[3]) for row in tables[name][1]], "mean credit")
        for name, title in (("credit_by_kind", "Credit by kind of step"), ("credit_by_line", "Credit by line"))
    }
    return Part(tables, shown, _sentences(run, kinds, by_line, answers))


def _examined(run: RunRecord) -> tuple[dict[str, list[float]], dict[int, list[float]], int]:
    files = [path for path in (run.root / "rollouts").glob("step_*.jsonl") if path.stem[5:].isdigit()]
    files.sort(key=lambda path: int(path.stem[5:]))
    some = [files[i * len(files) // min(MOST_FILES, len(files))] for i in range(min(MOST_FILES, len(files)))]
    kinds: dict[str, list[float]] = defaultdict(list)
    by_line: dict[int, list[float]] = defaultdict(list)
    answers = 0
    for path in some:
        for line in path.read_bytes().splitlines():
            if b'"steps": [' not in line:
                continue
            row: dict[str, Any] = as_table(decoded(line))
            known = [step for step in row.get("steps") or () if step.get("credit") is not None]
            answers += bool(known)
            for step in known:
                kinds[str(step.get("kind") or "?")].append(float(step["credit"]))
                by_line[str(row.get("completion", "")).count("\n", 0, step["start"]) + 1].append(float(step["credit"]))
    return kinds, by_line, answers


def _row(name: str | int, values: list[float]) -> list[Any]:
    found = interval(values)
    return [name, found["value"], found["low"], found["high"], len(values), sum(map(bool, values)) / len(values)]


def _sentences(
    run: RunRecord, kinds: dict[str, list[float]], by_line: dict[int, list[float]], answers: int
) -> list[str]:
    every = [value for values in kinds.values() for value in values]
    share = wilson(sum(map(bool, every)), len(every))
    ranked = sorted(kinds, key=lambda kind: -sum(kinds[kind]) / len(kinds[kind]))
    told = []
    for kind in ranked[:6]:
        found = interval(kinds[kind])
        told.append(f"{kind} {found['value']:+.2f}{bracket(found['low'], found['high'])} ({len(kinds[kind])})")
    first, last = (interval(by_line[line])["value"] for line in (min(by_line), max(by_line)))
    said = [
        f"**Step credit** was measured on {len(every)} steps of {answers} stored answers: "
        f"{100 * sum(map(bool, every)) / len(every):.0f} % of them{bracket(share[0], share[1], 100, 0)} earn or cost "
        f"something. Mean credit by kind of step, with 95 % intervals and counts: {', '.join(told)}. By place: "
        f"{first:+.2f} on line {min(by_line)}, {last:+.2f} on line {max(by_line)}."
    ]
    replays = sum(value for _, value, _ in run.series("credit/replays"))
    steps = len(run.series("credit/replays"))
    if steps:
        said.append(
            f"It took {replays:.0f} replays in {steps} steps; whether that pays is a comparison with the same recipe "
            "without `[credit]` (`rlvr compare`)."
        )
    return said
