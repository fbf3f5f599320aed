"""News of a run as server-sent events.

    status    {"status", "phase", "step", "time"}     at the beginning and whenever it changes; `time`: when it was seen
    metrics   {"rows": […]}                   new lines of logs/metrics.jsonl, at most once a second
    events    {"rows": […]}                   new lines of logs/events.jsonl
    change    {}                              the document is worth fetching again
    : comment                                 every HEARTBEAT_S seconds, so that a lost connection is noticed

The id of an event is a place in both files: a browser that reconnects sends the last one, and goes on there without
losing or repeating a line.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlvrlab.errors import LabError
from rlvrlab.record.files import to_json, utc_now
from rlvrlab.record.run import read_info
from rlvrlab.report.follow import Follower, Row
from rlvrlab.report.runs import kind_at
from rlvrlab.report.server.shelf import Shelf, fingerprint
from rlvrlab.report.status import state_of

POLL_S, HEARTBEAT_S, STATUS_S = 1.0, 10.0, 5.0
RETRY_MS = 2000


@dataclass
class News:
    """What one open page has been told."""

    shelf: Shelf
    folder: Path
    metrics: Follower
    events: Follower
    last: Row
    """The newest metrics line."""

    @classmethod
    def since(cls, shelf: Shelf, folder: Path, last_id: str | None) -> News:
        """From the place a browser names, else from the end of the files."""
        metrics, events = (Follower(folder / "logs" / f"{name}.jsonl") for name in ("metrics", "events"))
        parts = (last_id or "").split("-")
        ours = len(parts) == 4 and all(part.isascii() and part.isdigit() and len(part) < 20 for part in parts)
        numbers = [int(part) for part in parts] if ours else []
        for i, follower in enumerate((metrics, events)):
            if numbers:
                follower.position, follower.inode = numbers[2 * i], numbers[2 * i + 1]
            else:
                follower.skip_to_last(1)
        news = cls(shelf, folder, metrics, events, {})
        if not numbers:
            news.last = next(iter(news.metrics.read()), {})
            news.events.read()
        return news

    def place(self) -> str:
        """The id of what was sent last."""
        both = (self.metrics, self.events)
        return "-".join(f"{follower.position}-{follower.inode}" for follower in both)

    def message(self, kind: str, data: Any) -> str:
        """One event; its id is the place reached so far."""
        return f"event: {kind}\nid: {self.place()}\ndata: {to_json(data)}\n\n"

    def read(self) -> list[str]:
        """New lines, as messages; each is made before the next file is read, so that its id is exact."""
        messages = []
        for name, follower in (("metrics", self.metrics), ("events", self.events)):
            rows = follower.read()
            if rows or follower.rewound:
                self.last = rows[-1] if rows and name == "metrics" else self.last
                messages.append(self.message(name, {"rows": rows, "rewound": follower.rewound}))
        return messages

    def outdated(self) -> bool:
        """Something changed since the run's document was gathered."""
        return fingerprint(self.folder) != self.shelf.shown(self.folder)

    def status(self) -> dict[str, Any]:
        """How the run stands; a study or an audit has no status of its own."""
        if kind_at(self.folder) not in ("run", "evaluation"):
            return {"status": "", "phase": None, "step": None}
        try:
            info = read_info(self.folder)
        except LabError:
            info = {}
        seconds = self.last.get("time/step_s")
        state = state_of(self.folder, info, step_s=seconds if isinstance(seconds, int | float) else 0.0)
        return {"status": state, "phase": self.last.get("phase"), "step": self.last.get("step")}


async def stream(news: News) -> AsyncIterator[str]:
    """The text of the stream, for as long as it is read: small reads of files that are open for a moment only."""
    yield f"retry: {RETRY_MS}\n\n"
    told: dict[str, Any] = {}
    asked = spoke = time.monotonic()
    changed = 0.0
    while True:
        now = time.monotonic()
        messages = news.read()
        if messages or not told or now - asked > STATUS_S:
            asked, status = now, news.status()
            if status != told:
                messages.append(news.message("status", status | {"time": utc_now()}))
                told = status
        if now - changed > news.shelf.pause_s(news.folder) and news.outdated():
            changed = now
            messages.append(news.message("change", {}))
        if messages:
            spoke = now
            yield "".join(messages)
        if now - spoke > HEARTBEAT_S:
            spoke = now
            yield ": still here\n\n"
        await asyncio.sleep(POLL_S)
