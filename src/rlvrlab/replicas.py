"""Several servers of one kind: who is asked next, when a request is repeated, who is left alone, when all are lost.

Four things can come of a request, and they are kept apart.

busy      429 or 503: not broken. It costs no attempt; the server has shown how many requests it takes, so the next one
          is sent when it has answered one of those, or after Retry-After where it has none of ours, `patience_s` long.
absent    Nobody listens: the server was not asked. The request goes to another one.
broken    A 5xx, silence until the deadline, half an answer, or one that `read` rejects. It is asked again after a pause
          that doubles, `attempts` times; a server that breaks `break_after` requests in a row is left alone.
answered  Everything else, also a refusal (4xx), which would be the same the next time.

A server that is left alone is asked again after a while, or, where the pool has a `check`, as soon as it passes that.
When none is left, requests wait `give_up_s` for one to come back before ServersGone ends them. A pool with a `check`
keeps account of who was lost and who came back (`changes`), for whoever records it.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections import deque
from collections.abc import Awaitable, Callable, Container, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from itertools import count
from typing import Any, Generic, TypeVar

from rlvrlab.errors import InfrastructureError
from rlvrlab.http_client import BadAnswer, Host, NotConnected, Refused, Response

BUSY = {429, 503}
RETRIED = {408, 425, 500, 502, 504}
FAILURES = (OSError, TimeoutError, BadAnswer)
"""What a request to one server may raise when that server is in trouble."""
RECHECK_S = 0.5
"""Between two looks at a server that is not there."""
SHORTEST_PAUSE_S = 0.1
"""Never waited less than this, whatever Retry-After asks for: a server that says "now" and is busy would be asked
without an end."""
LONGEST_PAUSE_S = 60.0
"""Never waited longer than this, whatever Retry-After asks for."""
LONGEST_NAP_S = 1.0
"""A request that waits for a server looks again at least this often."""
MOST_CHANGES = 1000
"""Comings and goings that are kept for whoever asks for them; of more, the first are forgotten."""


class ServersGone(InfrastructureError):
    """No server answers any more, and waiting did not help."""


class NoAnswer(InfrastructureError):
    """A request that was broken at every attempt."""

    def __init__(self, server: str, tries: int, trouble: str) -> None:
        super().__init__(f"{server}: {trouble}")
        self.server, self.tries, self.trouble = server, tries, trouble


@dataclass(frozen=True, slots=True)
class Change:
    """A server was lost, or is there (again)."""

    url: str
    there: bool
    at: float
    """Seconds since the epoch."""
    why: str = ""
    """What was wrong with one that was lost."""


@dataclass(eq=False)
class Replica:
    """One server, and what is known of its state."""

    host: Host
    failures: int = 0
    """How many requests it has broken in a row."""
    waiting: int = 0
    """Requests it has not answered yet."""
    places: float = math.inf
    """How many it takes of ours at once, as far as known; grows slowly while all goes well."""
    most_places: float = math.inf
    """Beyond which that does not grow: what waits here can still go to another server."""
    closed_until: float = 0.0
    """Monotonic time before which it is left alone."""
    trouble: str = ""
    """Why it is left alone, for the message when all are lost."""
    went_down: asyncio.Event = field(default_factory=asyncio.Event)
    """Wakes whoever watches it."""

    @property
    def down(self) -> bool:
        """It is left alone until it passes its check."""
        return self.closed_until == math.inf


R = TypeVar("R", bound=Replica)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Answer(Generic[R, T]):
    """What came of a request."""

    content: T | None
    """What `read` made of it; None where the status is not 200."""
    response: Response
    replica: R
    tries: int


@dataclass
class Replicas(Generic[R]):
    """The pool; every client of several servers asks through one."""

    all: Sequence[R]
    kind: str = "server"
    """What messages call one of them."""
    attempts: int = 4
    deadline_s: float = 120.0
    """For one request, from connecting to the last byte."""
    pause_s: float = 0.2
    """Before the second attempt; doubles, with jitter."""
    break_after: int = 5
    cooldown_s: float = 15.0
    """How long a server that breaks requests is left alone, where there is no `check`."""
    give_up_s: float = 120.0
    """How long requests wait without a sign of life from any server."""
    patience_s: float = 1800.0
    """How long one request waits while all servers are too busy."""
    check: Callable[[R], Awaitable[None]] | None = None
    """Is the server there and the one it was? Raises FAILURES or Refused where it is not there yet."""
    check_s: float = 30.0
    """Between two checks of a server that seems well."""
    say: Callable[[str], None] | None = None
    """Told once when requests begin to wait for lost servers."""

    def __post_init__(self) -> None:
        self._turn, self._heard, self._said = 0, time.monotonic(), False
        self.changes: deque[Change] = deque(maxlen=MOST_CHANGES)
        """Who was lost and who came back, the oldest first; whoever reads them takes them out."""
        self._queue: deque[asyncio.Future[None]] = deque()

    async def ask(
        self, path: str, content: dict[str, Any] | bytes | None, read: Callable[[R, Response], T]
    ) -> Answer[R, T]:
        """Send a request (a POST where there is `content`) to one server after the other until one has answered.

        `read` sees answers of status 200; the BadAnswer it raises counts as a failure of the server.
        """
        since, broken = time.monotonic(), 0
        for tries in count(1):
            replica = await self._next(since)
            pause_s: float | None = None
            with self._asking(replica):
                try:
                    async with asyncio.timeout(self.deadline_s):
                        response = await replica.host.request(path, content)
                    if response.status in BUSY:
                        self._busy(replica, retry_after_s(response))
                        self._lose_patience(since)
                        continue
                    if response.status in RETRIED:
                        pause_s = retry_after_s(response)
                        raise Refused(response)
                    content_read = read(replica, response) if response.status == 200 else None
                except NotConnected as error:
                    self.absent(replica, str(error))
                    continue
                except (*FAILURES, Refused) as error:
                    trouble = words(error, self.deadline_s)
                    self._broken(replica, trouble)
                else:
                    replica.failures, replica.trouble = 0, ""
                    replica.places = min(replica.most_places, replica.places + 1 / max(1.0, replica.places))
                    self._heard = time.monotonic()
                    return Answer(content_read, response, replica, tries)
            broken += 1
            if broken >= self.attempts:
                raise NoAnswer(replica.host.url, tries, trouble)
            usual_s = min(LONGEST_PAUSE_S, self.pause_s * 2 ** (broken - 1) * (0.5 + random.random()))
            await asyncio.sleep(usual_s if pause_s is None else pause_s)
        raise AssertionError("unreachable: the loop has no end")

    async def _next(self, since: float) -> R:
        """The open server with the fewest requests, in turn; waits for one since `since`, but not for ever."""
        while True:
            now = time.monotonic()
            order = [*self.all[self._turn :], *self.all[: self._turn]]
            ready = [one for one in order if one.closed_until <= now and one.waiting < one.places]
            if ready:
                chosen = min(ready, key=lambda one: one.waiting)
                self._turn, self._said = (self.all.index(chosen) + 1) % len(self.all), False
                return chosen
            if now - max(self._heard, since) > self.give_up_s:
                raise ServersGone(f"no {self.kind} has answered for {self.give_up_s:g} s ({self.troubles()})")
            self._lose_patience(since)
            if self.say and not self._said and all(one.down for one in self.all):
                self._said = True
                self.say(f"{self.troubles()}; waiting up to {self.give_up_s:g} s")
            soonest = min((one.closed_until for one in self.all), default=math.inf)
            nap_s = min(LONGEST_NAP_S, soonest - now if soonest > now else LONGEST_NAP_S, self.give_up_s / 4)
            await self._nap(nap_s * (1 + random.random() / 2))

    def _lose_patience(self, since: float) -> None:
        """Nobody has taken a request since then: not for ever, also where a server says again and again "soon"."""
        if time.monotonic() - since > self.patience_s:
            raise ServersGone(f"every {self.kind} was too busy for {self.patience_s:g} s ({self.troubles()})")

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
    def _asking(self, replica: R) -> Iterator[None]:
        """A request is on its way; afterwards the next in the queue is woken."""
        replica.waiting += 1
        try:
            yield
        finally:
            replica.waiting -= 1
            self._wake(1)

    def _wake(self, places: int) -> None:
        while self._queue and places:
            woken = self._queue.popleft()
            if not woken.done():
                woken.set_result(None)
                places -= 1

    def _busy(self, replica: R, after_s: float | None) -> None:
        """It answers but takes no more for now: the requests it holds besides this one are its places."""
        self._heard = time.monotonic()
        replica.trouble, replica.places = "too busy", max(1, replica.waiting - 1)
        if replica.waiting <= 1:
            replica.closed_until = max(replica.closed_until, self._heard + (RECHECK_S if after_s is None else after_s))

    def _broken(self, replica: R, trouble: str) -> None:
        replica.failures, replica.trouble = replica.failures + 1, trouble
        if replica.failures >= self.break_after:
            self._close(replica, self.cooldown_s)
            replica.failures = self.break_after - 1

    def absent(self, replica: R, trouble: str) -> None:
        """Nobody listens there: it is left alone until the next look."""
        replica.trouble = trouble
        self._close(replica, RECHECK_S)

    def _close(self, replica: R, seconds: float) -> None:
        if self.check is not None and not replica.down:
            self.changes.append(Change(replica.host.url, False, time.time(), replica.trouble))
        replica.closed_until = time.monotonic() + seconds if self.check is None else math.inf
        replica.went_down.set()

    def reopen(self, replica: R) -> None:
        """It has passed its check: whoever waits may ask it."""
        replica.failures, replica.trouble, self._heard = 0, "", time.monotonic()
        if replica.down:
            replica.closed_until = 0.0
            self.changes.append(Change(replica.host.url, True, time.time()))
        self._wake(len(self._queue))

    def admit(self, newcomers: Sequence[R], leaving: Container[R]) -> None:
        """Others take part from now on, each after its first check; no request may be on its way to who leaves."""
        for replica in newcomers:
            replica.trouble, replica.closed_until = "not met yet", math.inf
        self.all = [*(one for one in self.all if one not in leaving), *newcomers]
        self._turn = 0

    async def watch(self, replica: R) -> None:
        """Check a server for ever: now and then while it is up, soon and again after it went down."""
        assert self.check is not None
        while True:
            if not replica.down:  # it may still be down from an earlier call
                with suppress(TimeoutError):
                    async with asyncio.timeout(self.check_s):
                        await replica.went_down.wait()
            replica.went_down.clear()
            while True:
                with suppress(*FAILURES, Refused):
                    await self.check(replica)
                    self.reopen(replica)
                    break
                await asyncio.sleep(min(RECHECK_S, self.check_s))

    def troubles(self) -> str:
        """Every server with what is wrong with it."""
        return "; ".join(f"{one.host.url}: {one.trouble}" for one in self.all)

    async def close(self) -> None:
        """Give the connections back."""
        for replica in self.all:
            await replica.host.close()


def retry_after_s(response: Response) -> float | None:
    """Seconds or a date, bounded on both sides, because a server may ask for anything; None where there is neither."""
    text = response.headers.get("retry-after", "")
    asked_s: float | None = None
    if text.isascii() and text.isdigit():
        asked_s = float(text)
    else:
        with suppress(ValueError, TypeError, OverflowError):
            asked_s = parsedate_to_datetime(text).timestamp() - time.time()
    return None if asked_s is None else min(LONGEST_PAUSE_S, max(SHORTEST_PAUSE_S, asked_s))


def words(error: BaseException, deadline_s: float) -> str:
    """What to tell about a request that failed."""
    if isinstance(error, TimeoutError):
        return f"no answer within {deadline_s:g} s"
    return str(error) or type(error).__name__
