"""Right test answers by tool, whether the tools' gradients disagree, and what surgery between them changes.

    python studies/agents/tool_tables.py

Reads tools_results beside this file: runs of recipes/nano_tools.toml kept by keep_results.py. Intervals are for new
problems; changes are paired by problem.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rlvrlab.evals.statistics import compare, wilson

RESULTS = Path(__file__).parent / "tools_results"
TOOLS = ("python", "sql")
COSINE = "surgery/cosine/python/sql"


def halves(card: dict[str, Any]) -> list[list[float]]:
    """Outcomes by tool: they stand in the order of ids, which begin with the tool, half of each."""
    marks = [float(mark) for mark in card["outcomes"]]
    return [marks[: len(marks) // 2], marks[len(marks) // 2 :]]


def by_tool(runs: dict[str, dict[str, Any]]) -> list[str]:
    """Accepted test answers of each tool after SFT and after GRPO, and what GRPO changed."""
    lines = ["| run | tool | test problems | after SFT | after GRPO | change [95 %, new problems] |"]
    lines.append("|---|---|---|---|---|---|")
    for name, run in runs.items():
        before, after = (halves(card) for card in run["cards"][-2:])
        for tool, old, new in zip(TOOLS, before, after, strict=True):
            cells = []
            for marks in (old, new):
                low, high = wilson(int(sum(marks)), len(marks))
                cells.append(f"{100 * sum(marks) / len(marks):.1f} [{100 * low:.1f}, {100 * high:.1f}]")
            change = compare(old, new)
            cells.append(f"{100 * change.mean:+.1f} [{100 * change.low:+.1f}, {100 * change.high:+.1f}]")
            lines.append(f"| {name} | {tool} | {len(old)} | {' | '.join(cells)} |")
    return lines


def cosines(runs: dict[str, dict[str, Any]]) -> list[str]:
    """The cosine between the tools' gradients over the steps that have one."""
    lines = [
        "| run | GRPO steps | with a cosine | below zero | lowest | mean | highest |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, run in runs.items():
        rows = [dict(zip(run["columns"], row, strict=True)) for row in run["rows"]]
        steps = [row for row in rows if row["phase"] == "grpo" and row["train/acc"] is not None]
        found = [row[COSINE] for row in steps if row.get(COSINE) is not None]
        told = [f"{round(value, 2) + 0.0:.2f}" for value in (min(found), sum(found) / len(found), max(found))]
        counts = (len(steps), len(found), sum(value < 0 for value in found))
        lines.append(f"| {name} | {' | '.join(map(str, counts))} | {' | '.join(told)} |")
    return lines


def switched(runs: dict[str, dict[str, Any]]) -> list[str]:
    """The same seed with surgery between the tools minus without it, on all test problems."""
    lines = ["| with pcgrad − without | test problems | difference [95 %, new problems] |", "|---|---|---|"]
    for name, run in runs.items():
        plain = name.replace("_pcgrad", "")
        if plain == name:
            continue
        old, new = ([float(mark) for mark in one["cards"][-1]["outcomes"]] for one in (runs[plain], run))
        change = compare(old, new)
        told = f"{100 * change.mean:+.1f} [{100 * change.low:+.1f}, {100 * change.high:+.1f}]"
        lines.append(f"| {name} − {plain} | {len(old)} | {told} |")
    return lines


def main() -> None:
    """Print the three tables."""
    runs = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(RESULTS.glob("*.json"))}
    print("\n".join([*by_tool(runs), "", *cosines(runs), "", *switched(runs)]))


if __name__ == "__main__":
    main()
