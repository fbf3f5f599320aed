"""Several judge servers of one kind: who is asked next, who is left alone for a while, and when all are lost.

Three ways to fail, kept apart. A server nobody listens at was not asked: the request goes to another one, and when none
is left it waits for one to come back, `give_up_s` long, before JudgeLost ends the call. A busy one (429, 503) has shown
how many requests it takes: the next one is sent when it has answered one of those, or at Retry-After where it has none
of ours, `patience_s` long. One that breaks requests is left alone after `break_after` in a row.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from rlvrlab.errors import JudgeLost, UserError
from rlvrlab.http_client import Host

RECHECK_S = 0.5
"""Between two calls at a server nobody listens at."""
LONGEST_PAUSE_S = 30.0
LONGEST_NAP_S = 1.0
"""Without being woken by a place that becomes free."""


@dataclass
class Replica:
    """One server."""

    host: Host
    failures: int = 0
    """In a row."""
    waiting: int = 0
    """Requests it has not answered yet."""
    places: float = math.inf
    """How many it takes of ours at once, as far as known; grows slowly while all goes well."""
    closed_until: float = 0.0
    """Monotonic time before which it is left alone."""
    trouble: str = ""
    """Why, for the message when all are lost."""

    def is_open(self, now: float) -> bool:
        """May it be asked?"""
        return self.closed_until <= now and self.waiting < self.places


class Replicas:
    """Turns, pauses and patience."""

    def __init__(
        self,
        endpoints: Sequence[str],
        token: str | None,
        *,
        break_after: int,
        cooldown_s: float,
        give_up_s: float,
        patience_s: float,
    ) -> None:
        if not endpoints:
            raise UserError("a remote judge needs at least one address, e.g. http://127.0.0.1:8080")
        addresses = dict.fromkeys(endpoint.rstrip("/").removesuffix("/run_code") for endpoint in endpoints)
        self.all = [Replica(Host(address, token)) for address in addresses]
        self._break_after, self._cooldown_s = break_after, cooldown_s
        self._give_up_s, self._patience_s = give_up_s, patience_s
        self._turn = 0
        self._heard = time.monotonic()
        self._queue: deque[asyncio.Future[None]] = deque()

    async def next(self, since: float) -> Replica:
        """The open server with the fewest requests, in turn; waits for one since `since`, but not for ever."""
        while True:
            now = time.monotonic()
            order = self.all[self._turn :] + self.all[: self._turn]
            ready = [one for one in order if one.is_open(now)]
            if ready:
                chosen = min(ready, key=lambda one: one.waiting)
                self._turn = (self.all.index(chosen) + 1) % len(self.all)
                return chosen
            self._refuse_to_wait_longer(now, since)
            soonest = min(one.closed_until for one in self.all)
            nap_s = soonest - now if soonest > now else LONGEST_NAP_S
            await self._nap(min(nap_s * (1 + random.random() / 2), self._give_up_s / 4))

    async def _nap(self, seconds: float) -> None:
        """Until a place becomes free, first come first served, or the time is over."""
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append(woken)
        try:
            async with asyncio.timeout(seconds):
                await woken
        except TimeoutError:
            with suppress(ValueError):
                self._queue.remove(woken)

    @contextmanager
    def asking(self, replica: Replica) -> Iterator[None]:
        """A request is on its way; afterwards the next in the queue is woken."""
        replica.waiting += 1
        try:
            yield
        finally:
            replica.waiting -= 1
            while self._queue:
                woken = self._queue.popleft()
                if not woken.done():
                    woken.set_result(None)
                    break

    def _refuse_to_wait_longer(self, now: float, since: float) -> None:
        troubles = "; ".join(f"{one.host.url}: {one.trouble}" for one in self.all)
        remedy = "start `rlvr serve judge` there and resume; nothing was scored meanwhile"
        if now - max(self._heard, since) > self._give_up_s:
            raise JudgeLost(f"no judge server has answered for {self._give_up_s:g} s ({troubles}); {remedy}")
        if now - since > self._patience_s:
            raise JudgeLost(f"the judge was too busy for {self._patience_s:g} s ({troubles}); add servers and resume")

    def answered(self, replica: Replica) -> None:
        """A whole answer."""
        replica.failures, replica.trouble = 0, ""
        replica.places += 1 / max(1.0, replica.places)
        self._heard = time.monotonic()

    def busy(self, replica: Replica, after_s: float | None) -> None:
        """It lives but has no more places: those it has are the others that wait there."""
        self._heard = time.monotonic()
        replica.trouble, replica.places = "too busy", max(1, replica.waiting - 1)
        if replica.waiting <= 1:
            pause = RECHECK_S if after_s is None else after_s
            replica.closed_until = max(replica.closed_until, self._heard + min(LONGEST_PAUSE_S, pause))

    def absent(self, replica: Replica, trouble: str) -> None:
        """Nobody listens there."""
        replica.trouble = trouble
        replica.closed_until = time.monotonic() + RECHECK_S

    def failed(self, replica: Replica, trouble: str) -> None:
        """It took a request and broke it."""
        replica.failures, replica.trouble = replica.failures + 1, trouble
        if replica.failures >= self._break_after:
            replica.closed_until = time.monotonic() + self._cooldown_s
            replica.failures = self._break_after - 1
