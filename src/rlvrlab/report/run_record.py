"""A run folder as read: the recipe, the facts, and every line of its logs with its number."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

from rlvrlab.record.run import SCHEMA
from rlvrlab.report.reading import Folder, as_table, number

METRICS, EVENTS = "logs/metrics.jsonl", "logs/events.jsonl"


class RunRecord:
    """The recipe, facts and log lines that most sections need, read once."""

    def __init__(self, root: Path) -> None:
        self.folder = Folder(root)
        self.root = root
        self.config = self.folder.table("config.json", "no recipe is recorded")
        self.folder.refuse_version("config.json", self.config, SCHEMA)
        self.info = self.folder.table("run_info.json", "neither status nor machine is recorded")
        lines = self.folder.lines(METRICS, "no step has been recorded yet")
        self.metrics = [line for line in lines if isinstance(line.row.get("step"), int)]
        self.events = self.folder.lines(EVENTS, "no event has been recorded yet")

    @property
    def recipe(self) -> dict[str, Any]:
        """The resolved recipe; empty where none is recorded."""
        return as_table(self.config.get("recipe"))

    @property
    def name(self) -> str:
        """The recipe's name, else the folder's."""
        return str(self.recipe.get("name") or self.root.resolve().name)

    @property
    def phases(self) -> list[str]:
        """Names of the phases in the order they run."""
        names = self.recipe.get("phases")
        return [str(name) for name in names] if isinstance(names, list) else []

    @cached_property
    def controls(self) -> set[str]:
        """Phases that were control arms: the policy went back to where they began."""
        texts = [str(line.row.get("text", "")) for line in self.events if line.row.get("kind") == "control"]
        return {text.partition(" was a control arm")[0] for text in texts if " was a control arm" in text}

    @cached_property
    def keys(self) -> list[str]:
        """Names of all recorded metrics, in order of appearance."""
        return list(dict.fromkeys(key for line in self.metrics for key in line.row))

    @property
    def accuracy_keys(self) -> list[str]:
        """The metrics that hold the held-out accuracy over all skills, one per data set."""
        held_out = [key for key in self.keys if key.startswith("val-core/") and key.endswith("/acc")]
        return [key for key in held_out if f"{key}_low" in self.keys]

    @cached_property
    def skill_keys(self) -> list[tuple[str, str]]:
        """(skill, metric) pairs; the metric is `val-core/<data>/<skill>/acc`."""
        parts = [(key.split("/"), key) for key in self.keys if key.startswith("val-core/") and key.endswith("/acc")]
        pairs = [("/".join(w[2:-1]), key) for w, key in parts if len(w) >= 4 and f"{key}_low" not in self.keys]
        return [(skill, key) for skill, key in pairs if skill != "worst_skill"]

    @property
    def stages(self) -> list[dict[str, Any]]:
        """The stages of a protocol that trains one skill after the other, from the events."""
        begun = []
        for line in self.events:
            words = str(line.row.get("text", "")).split(" begins: ", 1)
            if line.row.get("kind") == "stage" and len(words) == 2 and isinstance(line.row.get("step"), int):
                begun.append({"x": line.row["step"], "skill": words[1], "line": line.number})
        return begun

    @property
    def marks(self) -> list[dict[str, Any]]:
        """The steps at which phases and stages begin, with their names."""
        phases, before = [], None
        for line in self.metrics:
            phase = line.row.get("phase")
            if phase != before:
                phases.append({"x": line.row["step"], "name": str(phase)})
                before = phase
        return phases + [{"x": stage["x"], "name": stage["skill"]} for stage in self.stages]

    @cached_property
    def phase_at(self) -> dict[int, str]:
        """Line number of a step in the metrics -> its phase."""
        return {line.number: str(line.row.get("phase", "")) for line in self.metrics}

    @property
    def total_steps(self) -> int | None:
        """Steps of all phases together; None unless the recipe gives a number for each."""
        tables = as_table(self.recipe.get("phase_tables"))
        steps = [as_table(tables.get(phase)).get("steps") for phase in self.phases]
        counts = [step for step in steps if isinstance(step, int)]
        return sum(counts) if counts and len(counts) == len(self.phases) else None

    @cached_property
    def status(self) -> str:
        """The state of the run; one whose process is gone is not `running`, whatever it recorded last."""
        if not self.info and not self.metrics:
            return "not started"
        from rlvrlab.report.status import state_of

        return state_of(self.root, self.info)

    def series(self, key: str) -> list[tuple[int, float, int]]:
        """(step, value, line number) of a metric, wherever it is a finite number."""
        return [
            (line.row["step"], value, line.number)
            for line in self.metrics
            if (value := number(line.row.get(key))) is not None
        ]
