"""A run folder as read: the recipe, the facts, and every line of its logs with its number."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

from rlvrlab.record.run import SCHEMA
from rlvrlab.report.gather.reading import Folder, Line, number
from rlvrlab.report.status import state_of

METRICS, EVENTS = "logs/metrics.jsonl", "logs/events.jsonl"


class RunRecord:
    """Everything that most sections need, read once."""

    def __init__(self, root: Path) -> None:
        self.folder = Folder(root)
        self.root = root
        self.config = self.folder.table("config.json", "no recipe is recorded")
        schema = self.config.get("schema")
        if self.config and schema != SCHEMA:
            text = f"schema {schema}, this version knows {SCHEMA}; shown as far as it is understood"
            self.folder.miss("config.json", text)
        self.info = self.folder.table("run_info.json", "neither status nor machine is recorded")
        self.metrics = [line for line in self.folder.lines(METRICS, "no step has been recorded yet") if _is_step(line)]
        self.events = self.folder.lines(EVENTS, "no event has been recorded yet")

    @property
    def recipe(self) -> dict[str, Any]:
        """As resolved; empty where it is not known."""
        recipe = self.config.get("recipe")
        return recipe if isinstance(recipe, dict) else {}

    @property
    def name(self) -> str:
        """The recipe's, else the folder's."""
        return str(self.recipe.get("name") or self.root.resolve().name)

    @property
    def phases(self) -> list[str]:
        """In order."""
        found = self.recipe.get("phases")
        return [str(phase) for phase in found] if isinstance(found, list) else []

    @cached_property
    def keys(self) -> list[str]:
        """All metrics, in order of appearance."""
        return list(dict.fromkeys(key for line in self.metrics for key in line.row))

    @property
    def total_steps(self) -> int | None:
        """Steps of all phases, where the recipe says."""
        tables = self.recipe.get("phase_tables")
        found = [tables.get(phase) for phase in self.phases] if isinstance(tables, dict) else []
        steps = [table.get("steps") for table in found if isinstance(table, dict)]
        counts = [step for step in steps if isinstance(step, int)]
        return sum(counts) if counts and len(counts) == len(self.phases) else None

    @cached_property
    def status(self) -> str:
        """As recorded, except that a run whose process is gone is not running."""
        if not self.info and not self.metrics:
            return "not started"
        return state_of(self.root, self.info)

    def series(self, key: str) -> list[tuple[int, float, int]]:
        """(step, value, line) of a metric."""
        found = []
        for line in self.metrics:
            value = number(line.row.get(key))
            if value is not None:
                found.append((line.row["step"], value, line.number))
        return found


def _is_step(line: Line) -> bool:
    return isinstance(line.row.get("step"), int)
