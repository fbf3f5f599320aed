"""A pool of servers, seen from the one who asks; the servers are played."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from rlvrlab.http_client import Response
from rlvrlab.replicas import NoAnswer, Replica, Replicas, ServersGone


class Played:
    """A server that gives one answer after the other, the last for ever."""

    def __init__(self, *answers: Response) -> None:
        self.url, self.asked, self._answers = "http://played", 0, list(answers)

    async def request(self, path: str, content: dict | None = None) -> Response:
        await asyncio.sleep(0)
        self.asked += 1
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]


def answered(status: int, **headers: str) -> Response:
    return Response(status, {name.replace("_", "-"): text for name, text in headers.items()}, b"{}")


def asked(*servers: Played, patience_s: float = 0.1) -> str:
    """What comes of a request within so many seconds."""

    async def go() -> str:
        pool = Replicas([Replica(server) for server in servers], pause_s=0.0)  # type: ignore[arg-type]
        with suppress(TimeoutError):
            async with asyncio.timeout(patience_s):
                return (await pool.ask("/", {}, lambda replica, response: replica.host.url)).content or ""
        return "nothing yet"

    return asyncio.run(go())


@pytest.mark.parametrize("headers", [{"retry_after": "30"}, {}])
def test_who_is_too_busy_is_left_alone_for_as_long_as_it_asks_for(headers: dict[str, str]) -> None:
    busy = Played(answered(429, **headers), answered(200))
    assert asked(busy) == "nothing yet" and busy.asked == 1


def test_meanwhile_another_one_is_asked() -> None:
    assert asked(Played(answered(429, retry_after="30")), Played(answered(200)), patience_s=30) == "http://played"


def test_what_is_broken_at_every_attempt_says_where_and_how() -> None:
    broken = Played(answered(500))
    with pytest.raises(NoAnswer, match=r"^http://played: status 500"):
        asked(broken, patience_s=30)
    assert broken.asked == 4


@pytest.mark.parametrize("when", ["0", "Thu, 01 Jan 1970 00:00:00 GMT", "1" + "0" * 400])
def test_who_says_now_and_stays_busy_is_not_asked_without_an_end(when: str) -> None:
    busy = Played(answered(429, retry_after=when))
    pool = Replicas([Replica(busy)], patience_s=0.3, give_up_s=0.2)  # type: ignore[list-item]

    async def ask() -> None:
        async with asyncio.timeout(20):
            await pool.ask("/", {}, lambda replica, response: "")

    with pytest.raises(ServersGone):
        asyncio.run(ask())
    assert busy.asked <= 6
