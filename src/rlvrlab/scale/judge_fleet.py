"""Judge servers behind one address: `rlvr serve judge --servers 8`. More start while requests wait, idle ones end.

Callers see one judge. A request waits here, not at a server, until one has a place for it; so a server that has just
been started takes its share of what came before it, and what a lost one was asked is asked again elsewhere.
"""

from __future__ import annotations

import asyncio
import math
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from rlvrlab.http_access import admit_token, refuse_open_door
from rlvrlab.http_client import Host
from rlvrlab.http_client import Response as Answered
from rlvrlab.http_messages import HttpError, Request, Response
from rlvrlab.http_server import HttpServer
from rlvrlab.judge.fusion import wire
from rlvrlab.judge.fusion.server import TOKEN_ENV
from rlvrlab.judge.statistics import Stopwatch
from rlvrlab.replicas import NoAnswer, Replica, Replicas, ServersGone

LOOK_S = 0.25
"""Between two looks at the queue and at the servers."""
ROUNDS = 4
"""Another server is started when more requests wait than the places of those there are can take so many times."""
IDLE_S = 30.0
"""So long without a waiting request ends one server, down to one."""
PLACES_PER_WORKER = 2
"""Requests that a server holds for each program it runs at once: one is under way while another is read."""
DEADLINE_S = 3600.0
"""For one request; the caller, who may have sent thousands of programs in it, knows better and hangs up."""


class Started(Protocol):
    """A judge server that was started for the fleet, on this machine or another."""

    def announced(self) -> dict[str, Any]:
        """Waits until it listens; its `url` and `workers`. InfrastructureError where it ended instead."""

    def ended(self) -> bool:
        """Is its process gone?"""

    def stop(self) -> None:
        """Tell it to finish what runs and end; returns at once."""


@dataclass(eq=False)
class Member(Replica):
    """A server of the fleet."""

    started: Started = field(kw_only=True)
    workers: int = field(kw_only=True)


@dataclass
class JudgeFleet:
    """The address, the queue, and as many servers as it takes."""

    start_one: Callable[[], Started]
    most: int
    """Servers at once."""
    inner_token: str
    """What the servers ask of the fleet."""
    token: str | None = None
    """What the fleet asks of its callers."""
    host: str = "127.0.0.1"
    port: int = 8080
    queue: int = 256
    """Requests waiting or under way beyond which new ones are turned away."""
    hosts: Sequence[str] = ()
    idle_s: float = IDLE_S

    def __post_init__(self) -> None:
        refuse_open_door(self.host, self.token, TOKEN_ENV)
        self.members: list[Member] = []
        self._replicas = Replicas(self.members, "judge server", deadline_s=DEADLINE_S)
        self.http = HttpServer(self._answer, lambda head: admit_token(head, self.token), self.hosts)
        self.stopwatch = Stopwatch()
        self.load = self.most_load = self.refused = self.lost = self.most_servers = 0
        self._waited_at = time.monotonic()
        self._leaving: list[Member] = []
        """Asked nothing more; they may still be answering."""

    async def start(self) -> None:
        """Start the first server and listen; `port` becomes the real one when it was 0."""
        await self._grow()
        self.port = await self.http.start(self.host, self.port)
        self._keeper = asyncio.create_task(self._keep())

    async def stop(self, grace_s: float = 0.0) -> None:
        """Turn new requests away, finish what runs within `grace_s`, end the servers."""
        await self.http.close(grace_s)
        self._keeper.cancel()
        with suppress(asyncio.CancelledError):
            await self._keeper
        for member in [*self.members, *self._leaving]:
            await member.host.close()
            member.started.stop()

    @property
    def waiting(self) -> int:
        """Requests that no server has taken yet."""
        return self.load - sum(member.waiting for member in self.members)

    async def _grow(self) -> None:
        started = self.start_one()
        try:
            facts = await asyncio.to_thread(started.announced)
        except BaseException:
            started.stop()
            raise
        places = float(PLACES_PER_WORKER * facts["workers"])
        host = Host(facts["url"], self.inner_token)
        member = Member(host, places=places, most_places=places, started=started, workers=facts["workers"])
        self.members.append(member)
        self.most_servers = max(self.most_servers, len(self.members))
        self._replicas.reopen(member)  # wakes who waits

    async def _keep(self) -> None:
        """Look after the servers for as long as the fleet lives, whatever fails: the next look tries again."""
        trouble = ""
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                await self._look()
            except Exception as error:
                if str(error) != trouble:
                    trouble = str(error)
                    print(f"judge servers: {trouble or repr(error)}; trying again", file=sys.stderr, flush=True)

    async def _look(self) -> None:
        """Replace what died, start one while requests wait, end one while none do."""
        await self._part()
        if self.waiting:
            self._waited_at = time.monotonic()
        places = sum(member.most_places for member in self.members)
        if not self.members or (len(self.members) < self.most and self.waiting > ROUNDS * places):
            await self._grow()
        elif len(self.members) > 1 and time.monotonic() - self._waited_at > self.idle_s:
            # The server with the fewest requests ends; it finishes those first.
            member = min(reversed(self.members), key=lambda one: one.waiting)
            self.members.remove(member)
            member.started.stop()
            self._leaving.append(member)
            self._waited_at = time.monotonic()

    async def _part(self) -> None:
        """Strike out the servers that have ended."""
        for member in [*self._leaving, *self.members]:
            if await asyncio.to_thread(member.started.ended):
                await member.host.close()
                if member in self.members:
                    self.members.remove(member)
                    self.lost += 1
                else:
                    self._leaving.remove(member)

    async def _answer(self, request: Request) -> Response:
        if (request.method, request.path) == ("GET", "/v1/load"):
            return Response.of_json(self.report())
        if self.load >= self.queue:
            self.refused += 1
            raise HttpError(429, f"{self.load} requests are waiting already", Retry_After="1")
        self.load += 1
        self.most_load = max(self.most_load, self.load)
        started = time.monotonic()
        try:
            answered = await self._forwarded(request)
            self.stopwatch.note(time.monotonic() - started, "", "", True)
        finally:
            self.load -= 1
        names = {name: text for name, text in answered.headers.items() if name == wire.MARK.lower()}
        return Response(answered.body, answered.status, names)

    async def _forwarded(self, request: Request) -> Answered:
        content = request.body if request.method == "POST" else None
        try:
            return (await self._replicas.ask(request.path, content, lambda member, response: response)).response
        except NoAnswer as error:
            raise HttpError(500, f"the machine failed, not the answer: {error.trouble}") from None
        except ServersGone as error:
            raise HttpError(503, str(error), Retry_After="1") from None

    def report(self) -> dict[str, Any]:
        """How busy it is and was; milliseconds from a request's admission to its answer."""
        seen = self.stopwatch.summary()
        times = {"p50_ms": seen.p50_ms, "p95_ms": seen.p95_ms, "p99_ms": seen.p99_ms}
        return {
            "load": self.load, "most_load": self.most_load, "queue": self.queue, "waiting": self.waiting,
            "servers": len(self.members), "most_servers": self.most_servers, "lost_servers": self.lost,
            "workers": sum(member.workers for member in self.members), "answered": seen.checks,
            "refused": self.refused, "connections": self.http.connections, "held_bytes": self.http.held_bytes,
            **{name: None if math.isnan(ms) else round(ms, 3) for name, ms in times.items()},
        }  # fmt: skip
