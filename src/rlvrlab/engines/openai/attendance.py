"""Who of several servers was lost when, and when it came back, in words for the record."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from itertools import groupby

from rlvrlab.replicas import Change


class Attendance:
    """Tells comings and goings once, in one sentence per server and call, however often it went to and fro."""

    def __init__(self) -> None:
        self._lost_at: dict[str, float] = {}
        """Since when each lost server is lost."""

    def sentences(self, changes: Iterable[Change]) -> Iterator[str]:
        """What happened since the last time, server by server."""
        by_server = sorted(changes, key=lambda change: change.url)  # stable: each server's own stay in order
        for url, group in groupby(by_server, key=lambda change: change.url):
            yield f"{url} {self._told(url, list(group))}"

    def _told(self, url: str, changes: list[Change]) -> str:
        losses, last = [change for change in changes if not change.there], changes[-1]
        before = self._lost_at.get(url)
        if not losses:
            self._lost_at.pop(url, None)
            after = "takes part" if before is None else f"is back after {last.at - before:.0f} s,"
            return f"{after} since {clock(last.at)}"
        often = "" if len(losses) == 1 else f" {len(losses)} times, the last time"
        since = losses[-1].at if before is None or changes[0].there else before
        if last.there:
            self._lost_at.pop(url, None)
            return f"was lost{often} at {clock(losses[-1].at)} ({losses[-1].why}) and is back since {clock(last.at)}"
        self._lost_at[url] = since
        return f"is lost{often} since {clock(losses[-1].at)} ({losses[-1].why})"


def clock(seconds: float) -> str:
    """The time of day, as the record's own times: in UTC."""
    return time.strftime("%H:%M:%SZ", time.gmtime(seconds))
