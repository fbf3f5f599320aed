"""Silent connections take no place from callers who ask, and no descriptor from the work."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from rlvrlab.http_messages import Request, Response
from rlvrlab.http_server import HttpServer

LIMIT, STRANGERS = 400, 700
SERVER = f"""
import asyncio, resource
resource.setrlimit(resource.RLIMIT_NOFILE, ({LIMIT}, {LIMIT}))
from rlvrlab.http_access import admit_token
from rlvrlab.http_messages import Response
from rlvrlab.http_server import HttpServer
async def answer(request):
    return Response(b"here")
async def serve():
    server = HttpServer(answer, lambda head: admit_token(head, "secret"))
    print(await server.start("127.0.0.1", 0), flush=True)
    await asyncio.sleep(120)
asyncio.run(serve())
"""
ASK = b"GET / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer secret\r\n\r\n"


@contextmanager
def served() -> Iterator[tuple[int, int]]:
    """Process and port of a server whose descriptors are few."""
    child = subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True, env=os.environ)
    try:
        assert child.stdout is not None
        yield child.pid, int(child.stdout.readline())
    finally:
        child.kill()
        child.communicate()


def connected(port: int, source: str = "127.0.0.1") -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=30, source_address=(source, 0))


def status_of(caller: socket.socket, ask: bytes = ASK) -> bytes:
    caller.sendall(ask)
    return caller.recv(100).split()[1]


@pytest.mark.parametrize("sent", [b"", b"G", b"GET / HTTP/1.1\r\nHost: localhost\r\n"], ids=["silent", "byte", "half"])
def test_strangers_exhaust_no_descriptors_and_callers_are_answered(sent: bytes) -> None:
    with served() as (pid, port), ExitStack() as held:
        known = held.enter_context(connected(port))
        assert status_of(known) == b"200"
        for _ in range(STRANGERS):
            held.enter_context(connected(port)).sendall(sent)
        started = time.monotonic()
        assert [status_of(held.enter_context(connected(port))) for _ in range(20)] == [b"200"] * 20
        assert time.monotonic() - started < 20
        assert len(list(Path(f"/proc/{pid}/fd").iterdir())) < LIMIT - 100
        assert status_of(known) == b"200"  # who was let in once keeps its place


def test_a_new_connection_that_stays_silent_is_hung_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlvrlab.http_server.FIRST_S", 0.1)

    async def go() -> tuple[bytes, bytes]:
        server = HttpServer(here)
        port = await server.start("127.0.0.1", 0)
        silent, asking = connected(port), connected(port)
        first = await asyncio.to_thread(status_of, asking)
        ended = await asyncio.to_thread(silent.recv, 1)
        await asyncio.sleep(0.2)
        assert first == await asyncio.to_thread(status_of, asking)  # silence after an answer may last longer
        await server.close()
        for caller in (silent, asking):
            caller.close()
        return first, ended

    assert asyncio.run(go()) == (b"200", b"")


async def here(request: Request) -> Response:
    return Response(b"here")


def holding(monkeypatch: pytest.MonkeyPatch, places: int) -> HttpServer:
    """A server of few places that never ends its answer to /wait."""
    monkeypatch.setattr("rlvrlab.http_server.MOST_CONNECTIONS", places)

    async def answer(request: Request) -> Response:
        if request.path == "/wait":
            await asyncio.sleep(60)
        return Response(b"here")

    return HttpServer(answer)


WAIT = ASK.replace(b"GET /", b"GET /wait")


async def asked(port: int, ask: bytes = ASK, source: str = "127.0.0.1") -> tuple[socket.socket, bytes]:
    """A connection, and the status of what it asked, which is none while it waits."""
    caller = connected(port, source)
    if ask == WAIT:
        caller.sendall(ask)
        await asyncio.sleep(0.05)
        return caller, b""
    return caller, await asyncio.to_thread(status_of, caller)


async def ended(server: HttpServer, callers: Collection[tuple[socket.socket, bytes]]) -> list[bytes]:
    await server.close()
    for caller, _ in callers:
        caller.close()
    return [status for _, status in callers]


def test_one_address_cannot_have_all_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlvrlab.http_door.is_loopback", lambda peer: False)

    async def go() -> list[bytes]:
        server = holding(monkeypatch, 8)
        port = await server.start("127.0.0.1", 0)
        many = [await asked(port, WAIT, "127.0.0.2") for _ in range(6)]
        return await ended(server, [*many, await asked(port, source="127.0.0.2"), await asked(port)])

    assert asyncio.run(go()) == [b""] * 6 + [b"503", b"200"]


def test_where_nobody_can_go_the_next_is_hung_up_on_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlvrlab.http_door.TOLD_TO_COME_BACK", 0)

    async def go() -> list[bytes]:
        server = holding(monkeypatch, 2)
        port = await server.start("127.0.0.1", 0)
        callers = [await asked(port, WAIT) for _ in range(2)]
        late = connected(port)
        ends = [await asyncio.to_thread(late.recv, 1)]
        assert server.connections == 2
        return await ended(server, [*callers, (late, ends[0])])

    assert asyncio.run(go()) == [b"", b"", b""]


def test_who_has_been_idle_longest_makes_room_and_who_is_answered_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise as many callers as there are places, who asked once and stay, would shut out everybody else."""

    async def go() -> tuple[list[bytes], list[bytes]]:
        server = holding(monkeypatch, 4)
        port = await server.start("127.0.0.1", 0)
        waits, first, second, third = [await asked(port, ask) for ask in (WAIT, ASK, ASK, ASK)]
        again = await asyncio.to_thread(status_of, first[0])  # now the second is the one
        fifth = await asked(port)
        gone = await asyncio.to_thread(second[0].recv, 1)
        alive = [await asyncio.to_thread(status_of, one[0]) for one in (first, third, fifth)]
        waits[0].setblocking(False)
        with pytest.raises(BlockingIOError):
            waits[0].recv(1)
        return await ended(server, [waits, first, second, third, fifth]), [again, gone, *alive]

    assert asyncio.run(go()) == ([b"", *[b"200"] * 4], [b"200", b"", *[b"200"] * 3])


def test_callers_who_come_at_once_do_not_put_one_another_out_while_others_are_idle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def go() -> list[bytes]:
        server = holding(monkeypatch, 64)
        port = await server.start("127.0.0.1", 0)
        idle = [await asked(port) for _ in range(64)]
        late = [connected(port) for _ in range(6)]
        await asyncio.sleep(0.1)
        statuses = [await asyncio.to_thread(status_of, caller) for caller in late]
        return await ended(server, [*idle, *zip(late, statuses, strict=True)])

    assert asyncio.run(go()) == [b"200"] * 70


@pytest.mark.parametrize("turns", range(6))
def test_who_connects_while_the_door_is_shut_is_let_in_or_closed_but_never_lost(turns: int) -> None:
    """Every turn of the loop between a connection's arrival and the end of accepting."""

    async def shut_after(turns: int) -> None:
        server = HttpServer(here)
        port = await server.start("127.0.0.1", 0)
        await asyncio.sleep(0)  # it waits for somebody now
        with connected(port) as caller:
            for _ in range(turns):
                await asyncio.sleep(0)
            await server.close()
            caller.settimeout(30)
            assert caller.recv(1) == b""

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with suppress(ConnectionResetError):  # closed as well, before anybody had accepted
            asyncio.run(shut_after(turns))
        gc.collect()
    assert [str(one.message) for one in told] == []
