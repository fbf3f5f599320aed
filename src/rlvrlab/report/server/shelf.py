"""What the server has read: lists and documents, kept until their files change.

A run's page is gathered anew only when something in the run's folder changed, and asked for so seldom that all of it
together takes SHARE of one core (see `pause_s`): a page that is left open must not slow down the training it shows.
"""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlvrlab.record.files import to_json
from rlvrlab.report.gather import comparison, evaluation, gather, run, study
from rlvrlab.report.runs import Entry, find_runs, sort_runs, summarise_run
from rlvrlab.report.status import ACTIVE, held_locks

SHARE = 0.01
SOONEST_S, LATEST_S = 2.0, 120.0
"""Seconds between two documents of one run, whatever they cost."""
LIST_S = 2.0
"""Seconds between two looks at the folder, at least."""
ROOMS = (comparison, evaluation, run, study)
"""Imported before the first page is asked for: their import must not count as a document's cost."""
KEPT = 8
"""Documents kept in memory."""
WATCHED = ("logs/metrics.jsonl", "logs/events.jsonl", "run_info.json", "config.json", "samples.jsonl", "metrics.json",
           "study.json", "probe.json", "tags", "rollouts", "evaluations", "analysis", "analysis/cards")  # fmt: skip

Fingerprint = tuple[tuple[str, int, int], ...]


@dataclass(frozen=True)
class Gathered:
    """A document, and what it cost."""

    fingerprint: tuple[Fingerprint, ...]
    document: dict[str, Any]
    text: str
    """The document as JSON."""
    cpu_s: float
    made: float
    """When, in monotonic time."""


class Shelf:
    """Runs below one folder, by name."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self._listing, self._gathering = threading.Lock(), threading.Lock()
        self._entries: dict[Path, tuple[Fingerprint, Entry]] = {}
        self._names: dict[str, Path] = {}
        self._looked = 0.0
        self._kept: OrderedDict[tuple[Path, ...], Gathered] = OrderedDict()

    def entries(self) -> list[Entry]:
        """All runs, newest first; only what changed is read again."""
        with self._listing:
            if time.monotonic() - self._looked > LIST_S:
                held, entries = held_locks(), {}
                for folder in find_runs(self.root):
                    mark = fingerprint(folder)
                    before = self._entries.get(folder)
                    fresh = before is not None and before[0] == mark and before[1].status not in ACTIVE
                    entries[folder] = before if before and fresh else (mark, summarise_run(folder, self.root, held))
                self._entries = entries
                self._names = {entry.name: folder for folder, (_, entry) in entries.items()}
                self._looked = time.monotonic()
            return sort_runs((entry for _, entry in self._entries.values()), "age")

    def folder(self, name: str) -> Path | None:
        """The run of that name. Only names that were listed lead anywhere, so no path can lead outside."""
        if name not in self._names:
            self.entries()
        return self._names.get(name)

    def gathered(self, folders: Sequence[Path], *, patient: bool = False) -> Gathered:
        """The document of a run, or of several side by side; `patient` takes an outdated one while its pause lasts."""
        key = tuple(folders)
        with self._gathering:  # one at a time: several pages must not take several cores
            now = tuple(fingerprint(folder) for folder in folders)
            kept = self._kept.get(key)
            early = patient and kept is not None and time.monotonic() - kept.made < self._pause_s(kept)
            if kept is not None and _states(kept.fingerprint) != _states(now):
                early = False  # the run began or ended: an outdated page would tell the opposite
            if kept is None or (kept.fingerprint != now and not early):
                started = time.thread_time()
                document = gather(folders[0] if len(folders) == 1 else list(folders))
                kept = Gathered(now, document, to_json(document), time.thread_time() - started, time.monotonic())
                self._kept[key] = kept
            self._kept.move_to_end(key)
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
            return kept

    def pause_s(self, folder: Path) -> float:
        """How long to wait between two documents of a run."""
        kept = self._kept.get((folder,))
        return self._pause_s(kept) if kept else SOONEST_S

    def _pause_s(self, kept: Gathered) -> float:
        return min(LATEST_S, max(SOONEST_S, kept.cpu_s / SHARE))

    def shown(self, folder: Path) -> Fingerprint | None:
        """State of the files when the run's document was last gathered."""
        kept = self._kept.get((folder,))
        return kept.fingerprint[0] if kept else None


def _states(fingerprints: tuple[Fingerprint, ...]) -> list[tuple[str, int, int]]:
    """The marks of the files that say whether a run is over."""
    return [mark for marks in fingerprints for mark in marks if mark[0] == "run_info.json"]


def fingerprint(folder: Path) -> Fingerprint:
    """Sizes and times of the files whose change changes the page."""
    marks, base = [], str(folder)
    for name in WATCHED:
        with suppress(OSError):
            facts = os.stat(f"{base}/{name}")  # noqa: PTH116 - Path objects would cost three times as much here
            marks.append((name, facts.st_size, facts.st_mtime_ns))
    return tuple(marks)
