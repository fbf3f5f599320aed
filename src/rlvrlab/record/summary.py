"""A run so far, added up line by line, so that writing about it does not mean reading all of it again.

What is kept does not grow with the number of steps: of each metric some evenly spaced values, of the events the first
and the last. Adding up the same lines gives the same summary, whether a run was interrupted or not.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

SERIES = 128
"""Values of one metric that are kept at most; then every other one goes."""
FIRST_EVENTS, LAST_EVENTS = 20, 80
SHOWN = ("train/acc", "critic/rewards/mean", "actor/entropy", "actor/grad_norm", "groups/zero_variance",
         "response_length/mean", "response_length/clip_ratio", "actor/loss")  # fmt: skip
"""Metrics whose course is told, beside those of evaluations."""
WITHDRAWN = "withdrawn"
"""Kind of the event that takes a warning back."""
ROUTINE = ("start", "phase")
"""Kinds of events that say nothing about a run's health."""


class Series:
    """The course of one metric."""

    def __init__(self) -> None:
        self.values: list[float] = []
        """Every `stride`-th value, beginning with the first."""
        self.last = 0.0
        self._count, self._stride = 0, 1

    def add(self, value: float) -> None:
        """Take in the next value."""
        if self._count % self._stride == 0:
            self.values.append(value)
            if len(self.values) > SERIES:
                self.values, self._stride = self.values[::2], 2 * self._stride
        self._count, self.last = self._count + 1, value


class Summary:
    """What EXPERIMENT.md tells about the logs."""

    def __init__(self, metrics: Iterable[dict[str, Any]] = (), events: Iterable[dict[str, Any]] = ()) -> None:
        self.phases: dict[str, Any] = {}
        """Per phase: accepted@1 on dev problems before, best and last, with 95 % intervals; `late` in `before` where
        nobody asked before its first step."""
        self.evaluations: dict[str, Series] = {}
        self.series: dict[str, Series] = {}
        self.newest: tuple[Any, Any] | None = None
        """Step and phase of the last line of metrics."""
        self.standing: dict[str, dict[str, Any]] = {}
        """Warnings that were not withdrawn, by subject."""
        self.failed = False
        """It ended by an error, and nobody has gone on with it."""
        self.first_events: list[dict[str, Any]] = []
        self.last_events: deque[dict[str, Any]] = deque(maxlen=LAST_EVENTS)
        self.events = 0
        """Events that are not routine."""
        for row in metrics:
            self.add_metrics(row)
        for event in events:
            self.add_event(event)

    def add_metrics(self, row: dict[str, Any]) -> None:
        """Take in a line of logs/metrics.jsonl."""
        self.newest = row["step"], row["phase"]
        for key, value in row.items():
            if value is None or (isinstance(value, float) and not math.isfinite(value)):  # written as null
                continue
            if key in SHOWN:
                self.series.setdefault(key, Series()).add(value)
            elif key.endswith("/acc") and "val" in key:
                self.evaluations.setdefault(key, Series()).add(value)
        accuracy = accuracy_of(row)
        if accuracy is None:
            return
        point = {"step": row["step"], **accuracy}
        late = {"late": True} if row.get("phase_step") else {}
        entry = self.phases.setdefault(row["phase"], {"before": point | late, "best": point})
        entry["last"] = point
        if point["accuracy"] > entry["best"]["accuracy"]:
            entry["best"] = point

    def add_event(self, event: dict[str, Any]) -> None:
        """Take in a line of logs/events.jsonl."""
        if event["kind"] in ROUTINE:
            return
        self.events += 1
        subject = str(event.get("subject") or event["text"])
        if event["kind"] == "warning":
            self.standing[subject] = event
        elif event["kind"] == WITHDRAWN:
            self.standing.pop(subject, None)
        elif event["kind"] in ("end", "resume"):
            self.failed = event["text"].startswith("failed")
        if len(self.first_events) < FIRST_EVENTS:
            self.first_events.append(event)
        else:
            self.last_events.append(event)


def standing_warnings(events: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The warnings of an event log that were not withdrawn."""
    return list(Summary(events=events).standing.values())


def dev_key(row: Mapping[str, Any]) -> str | None:
    """Where a metrics line has accepted@1 on dev problems; None where nothing was evaluated."""
    return next((key for key in row if key.startswith("val-core/") and key.endswith("/acc")), None)


def accuracy_of(row: dict[str, Any]) -> dict[str, Any] | None:
    """accepted@1 on dev problems in a metrics line, with its interval."""
    key = dev_key(row)
    return None if key is None else {"accuracy": row[key], "low": row[f"{key}_low"], "high": row[f"{key}_high"]}
