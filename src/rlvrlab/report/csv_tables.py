"""What a report shows as CSV files, for spreadsheets and other programs.

    metrics.csv        every step of logs/metrics.jsonl, one column per metric
    evaluations.csv    every number of every evaluation, one line each
    rollouts.csv       stored answers by step and skill: how many, right, unjudged, reward, length, errors
    NAME.csv           every matrix, grid and Pareto picture of the page: one line per cell, with its interval

Numbers are written in full, not as the page rounds them, wherever they come from the files themselves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from rlvrlab.evals.metrics import grouped
from rlvrlab.plain_files import file_stem
from rlvrlab.record.files import write_atomically
from rlvrlab.record.run import rollout_files
from rlvrlab.report.follow import Follower, Row
from rlvrlab.report.reading import decoded, judged
from rlvrlab.report.runs import read_table
from rlvrlab.report.story.part import CELL, as_csv, steps_table

Table = tuple[list[str], Iterable[Sequence[Any]]]
NUMBERS = (int, float)


def write_tables(document: Mapping[str, Any], paths: Path | Sequence[Path], folder: Path) -> list[Path]:
    """Write every table that has lines; those of runs begin each line with the run's name."""
    runs = [paths] if isinstance(paths, Path) else list(paths)
    steps = [(run.name, row) for run in runs for row in _lines(run / "logs" / "metrics.jsonl")]
    tables: dict[str, Table] = {
        "metrics": steps_table(steps),
        "evaluations": _evaluations(runs),
        "rollouts": _rollouts(runs),
    }
    for section in document.get("sections", []):
        make = {"matrix": _cells, "grid": _cells, "phases": _cells, "pareto": _points}.get(section.get("view"))
        if make:
            tables[file_stem(str(section.get("id")), "table")] = make(section["data"])
    written = []
    for name, (head, rows) in tables.items():
        lines = list(rows)
        if lines:
            folder.mkdir(parents=True, exist_ok=True)
            written.append(folder / f"{name}.csv")
            write_atomically(written[-1], as_csv(head, lines))
    return written


def _evaluations(runs: Sequence[Path]) -> Table:
    rows = []
    for run in runs:
        for path in sorted([*run.glob("metrics.json"), *run.glob("evaluations/*/metrics.json")]):
            name = str(path.parent.relative_to(run.parent))
            with suppress(OSError, ValueError, RecursionError):
                rows += [(name, data, n) for data, n in read_table(path).items() if isinstance(n, dict)]
    keys = list(dict.fromkeys(key for _, _, numbers in rows for key in numbers))
    return ["evaluation", "data", *keys], [[name, data, *(n.get(key) for key in keys)] for name, data, n in rows]


def _rollouts(runs: Sequence[Path]) -> Table:
    head = ["run", "step", "skill", "answers", "right", "wrong", "unjudged", "reward_mean", "tokens_mean", "errors"]
    rows = []
    for run in runs:
        for step, path in rollout_files(run).items():
            skills = grouped(_lines(path, judged), lambda row: str(row.get("skill", "")))
            for skill, answers in sorted(skills.items()):
                verdicts = [row.get("correct") for row in answers]
                counts = [sum(one is verdict for one in verdicts) for verdict in (True, False, None)]
                rewards = [value for row in answers if isinstance(value := row.get("reward"), NUMBERS)]
                lengths = [value for row in answers if isinstance(value := row.get("tokens"), int)]
                means = [sum(values) / len(values) if values else None for values in (rewards, lengths)]
                errors = Counter(str(row.get("error")) for row in answers if row.get("correct") is False)
                told = " ".join(f"{kind}:{count}" for kind, count in errors.most_common())
                rows.append([run.name, step, skill, len(answers), *counts, *means, told])
    return head, rows


def _cells(data: Mapping[str, Any]) -> Table:
    rows = [
        [row, column, *(cell.get(key) for key in ("value", "low", "high", "n"))]
        for row, cells in zip(data["rows"], data["cells"], strict=True)
        for column, cell in zip(data["columns"], cells, strict=True)
    ]
    return CELL, rows


def _points(data: Mapping[str, Any]) -> Table:
    head = ["name", "group", "front", *(f"{axis}{side}" for axis in "xy" for side in ("", "_low", "_high"))]
    rows = [
        [point["name"], point.get("group"), int(bool(point.get("front"))),
         *(point[axis].get(key) for axis in "xy" for key in ("value", "low", "high"))]
        for point in data["points"]
    ]  # fmt: skip
    return head, rows


def _lines(path: Path, decode: Callable[[bytes], Any] = decoded) -> Iterator[Row]:
    """Line by line, so that large files do not fill the memory."""
    follower, before = Follower(path, decode=decode), -1
    size = path.stat().st_size if path.exists() else 0
    while before < follower.position < size:
        before = follower.position
        yield from follower.read()
