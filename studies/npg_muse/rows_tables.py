"""Test problems right by task of the runs on rows, and training answers: python studies/npg_muse/rows_tables.py

Reads rows_results/ (made by keep_results.py, which lists problems by their ids, so those of a task stand together).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).parent / "rows_results"
SORTED = ("GED", "MCP", "MCS", "MIS", "MVC", "TSP")
SHOWN = ("TSP", "GED", "MCP", "MIS", "MVC", "MCS")
SEEDS = (0, 1, 2)
TEN = 10


def run(name: str) -> dict[str, Any]:
    """A kept run."""
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def by_task(card: dict[str, Any]) -> dict[str, float]:
    """The share of a task's problems that is right, in %; every task has as many."""
    right = np.array([mark == "1" for mark in card["outcomes"]]).reshape(len(SORTED), -1)
    return dict(zip(SORTED, 100 * right.mean(axis=1), strict=True))


def task_row(phase: str) -> str:
    """One row of the table: all seeds in each task's cell."""
    cards = [next(card for card in run(f"nano_rows_{seed}")["cards"] if card["phase"] == phase) for seed in SEEDS]
    shares = [by_task(card) for card in cards]
    return " | ".join(", ".join(f"{one[task]:.1f}" for one in shares) for task in SHOWN)


def training(name: str) -> str:
    """Training answers right, in the first and the last ten steps of GRPO."""
    made = run(name)
    phase, right = (made["columns"].index(key) for key in ("phase", "train/acc"))
    shares = [row[right] for row in made["rows"] if row[phase] == "grpo" and row[right] is not None]
    return f"{name}: {100 * np.mean(shares[:TEN]):.1f} to {100 * np.mean(shares[-TEN:]):.1f} %"


def main() -> None:
    """Print both."""
    print(f"| after SFT, seeds 0, 1, 2 | {task_row('sft')} |\n| after GRPO | {task_row('grpo')} |")
    print(f"\nTraining answers right, first and last ten steps: {training('grpo_40x16')}")


if __name__ == "__main__":
    main()
