"""The HTTP server: who hangs up is not worked for, who got in is not left hanging, what fails is said."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

import pytest

from rlvrlab.errors import UserError
from rlvrlab.http_messages import HttpError, Request, Response
from rlvrlab.http_server import HttpServer, JsonRoutes


async def echo(request: Request) -> Response:
    return Response.of_json({"path": request.path})


@pytest.mark.parametrize("turns", range(6))
def test_who_was_let_in_a_moment_before_the_end_is_hung_up_on(turns: int) -> None:
    """So many turns of the event loop before: not accepted, accepted without a task that serves it, served."""

    async def go() -> bytes:
        server = HttpServer(echo)
        port = await server.start("127.0.0.1", 0)
        with socket.create_connection(("127.0.0.1", port), timeout=30) as caller:
            for _ in range(turns):
                await asyncio.sleep(0)
            await server.close()
            assert server.connections == 0
            with suppress(ConnectionResetError):  # it was never accepted
                return await asyncio.to_thread(caller.recv, 1)
        return b""

    assert asyncio.run(go()) == b""


def asked(server: HttpServer, *requests: bytes) -> bytes:
    """All requests over one connection, and everything that comes back until the server closes it."""

    async def go() -> bytes:
        port = await server.start("127.0.0.1", 0)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"".join(requests))
        answers = await asyncio.wait_for(reader.read(), 60)
        writer.close()
        await server.close()
        return answers

    return asyncio.run(go())


def get(path: str, *lines: str, method: str = "GET") -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: localhost", *lines, "", ""]).encode()


JSON = ("Content-Type: application/json", "Content-Length: 0")
LAST = get("/end", "Connection: close")


def test_a_refusal_and_a_failure_of_the_handler_keep_the_connection() -> None:
    async def handler(request: Request) -> Response:
        if request.path == "/busy":
            raise HttpError(429, "later", Retry_After="1")
        if request.path == "/broken":
            raise ValueError("oh")
        return await echo(request)

    answers = asked(HttpServer(handler), get("/busy"), get("/broken"), get("/fine?x=1"), LAST)
    assert [part.split()[0] for part in answers.split(b"HTTP/1.1 ")[1:]] == [b"429", b"500", b"200", b"200"]
    assert b"ValueError: oh" in answers and b'{"path": "/fine"}' in answers


def test_routes_tell_a_wrong_path_from_a_wrong_method() -> None:
    async def hello(request: Request) -> dict[str, list[str]]:
        if request.query == "bad":
            raise UserError("not like this")
        return request.arguments()

    server = HttpServer(JsonRoutes({("GET", "/hello"): hello}, mistake=422))
    asks = (get("/hello?a=1&a=2&b="), get("/hello?bad"), get("/hello", *JSON, method="POST"), get("/nowhere"), LAST)
    answers = asked(server, *asks)
    assert [part.split()[0] for part in answers.split(b"HTTP/1.1 ")[1:]] == [b"200", b"422", b"405", b"404", b"404"]
    assert b'{"a": ["1", "2"], "b": [""]}' in answers


def test_head_has_no_body() -> None:
    answers = asked(HttpServer(echo), get("/x", "Connection: close", method="HEAD"))
    assert b"Content-Length: 14" in answers and answers.endswith(b"\r\n\r\n")


@pytest.mark.parametrize("hangs_up", [True, False])
def test_a_stream_ends_with_its_reader_and_with_itself(monkeypatch, hangs_up: bool) -> None:
    monkeypatch.setattr("rlvrlab.http_server.LOOK_S", 0.02)
    ended = asyncio.Event()

    async def parts() -> AsyncIterator[bytes]:
        try:
            yield b"one "
            if hangs_up:
                await asyncio.sleep(3600)
            yield b"two"
        finally:
            ended.set()

    async def handler(request: Request) -> Response:
        return Response(parts(), media_type="text/plain")

    async def go() -> bytes:
        server = HttpServer(handler)
        port = await server.start("127.0.0.1", 0)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(get("/"))
        head = await reader.readuntil(b"one ")
        rest = b"" if hangs_up else await reader.read()
        writer.close()
        await asyncio.wait_for(ended.wait(), 60)
        for _ in range(10):
            await asyncio.sleep(0)
        assert server.connections == 0
        await server.close()
        return head + rest

    answer = asyncio.run(go())
    assert b"Content-Length" not in answer and answer.endswith(b"one " if hangs_up else b"one two")


def post(path: str, body: bytes, *lines: str) -> bytes:
    return get(path, "Content-Type: application/json", f"Content-Length: {len(body)}", *lines, method="POST") + body


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET / HTTP/1.1\nHost: localhost\n\n", b"400"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 100_000, b"431"),
        (get("/x", "Origin: http://evil.example"), b"403"),
        (get("/x", "Content-Type: text/plain", "Content-Length: 2", method="POST") + b"{}", b"415"),
        (get("/x", "Content-Type: application/json", method="POST"), b"411"),
    ],
    ids=["bare line feeds", "two hosts", "endless header", "foreign origin", "text/plain", "no length"],
)
def test_a_refusal_reaches_the_caller_and_ends_the_connection(sent: bytes, status: bytes) -> None:
    async def never(request: Request) -> Response:
        raise AssertionError("it was let in")

    answers = asked(HttpServer(never), sent, get("/smuggled"))
    assert answers.split()[1] == status and answers.count(b"HTTP/1.1 ") == 1 and b"Connection: close" in answers


def test_deep_json_is_a_bad_request_wherever_it_is_found_out() -> None:
    async def deep(request: Request) -> str:
        if request.path == "/later":
            raise RecursionError
        return str(request.json())

    server = HttpServer(JsonRoutes({("POST", "/now"): deep, ("POST", "/later"): deep}))
    body = b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    answers = asked(server, post("/now", body), post("/later", b"{}", "Connection: close"))
    assert [part.split()[0] for part in answers.split(b"HTTP/1.1 ")[1:]] == [b"400", b"400"]


def test_a_caller_that_expects_a_word_before_it_sends_gets_one() -> None:
    async def handler(request: Request) -> Response:
        return Response(request.body)

    answers = asked(HttpServer(handler), post("/", b"hello", "Expect: 100-continue", "Connection: close"))
    assert answers.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK") and answers.endswith(b"hello")


LARGE = b"x" * (8 << 20)


async def large(request: Request) -> Response:
    return Response(LARGE if request.path == "/large" else b"small")


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not true():
            await asyncio.sleep(0.01)


def test_who_never_reads_is_hung_up_on_and_holds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlvrlab.http_server.WRITE_S", 0.2)

    async def go() -> None:
        server = HttpServer(large)
        port = await server.start("127.0.0.1", 0)
        callers = [socket.create_connection(("127.0.0.1", port), timeout=30) for _ in range(8)]
        for caller in callers:
            caller.sendall(get("/large"))
        await until(lambda: server.held_bytes > 0)
        await until(lambda: server.connections == 0)
        assert server.held_bytes == 0
        for caller in callers:
            caller.close()
        await server.close()

    asyncio.run(go())


def test_answers_nobody_takes_are_bounded_over_all_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlvrlab.http_server.MOST_BYTES", 20 << 20)

    async def go() -> list[int]:
        server = HttpServer(large)
        port = await server.start("127.0.0.1", 0)
        seen, callers = list[int](), list[socket.socket]()
        for _ in range(8):  # each asks for 8 MB and takes none of it
            callers.append(socket.create_connection(("127.0.0.1", port), timeout=30))
            await asyncio.to_thread(callers[-1].sendall, get("/large"))
            answer = await asyncio.to_thread(callers[-1].recv, 20)
            seen.append(int(answer.split()[1]))
            assert server.held_bytes <= 20 << 20
        small = socket.create_connection(("127.0.0.1", port), timeout=30)
        small.sendall(get("/small"))
        assert b" 200 " in await asyncio.to_thread(small.recv, 20)
        await server.close()
        assert server.held_bytes == 0
        for caller in (*callers, small):
            caller.close()
        return seen

    assert asyncio.run(go()) == [200, 200] + [503] * 6


@pytest.mark.parametrize("sent", [b"GET / HT", post("/", b"x" * 100)[:-50]], ids=["half a head", "half a body"])
def test_who_stops_sending_is_hung_up_on(monkeypatch: pytest.MonkeyPatch, sent: bytes) -> None:
    monkeypatch.setattr("rlvrlab.http_server.READ_S", 0.1)
    assert asked(HttpServer(echo), sent) == b""


def test_what_runs_is_finished_and_new_requests_are_told_to_come_back() -> None:
    gate = asyncio.Event()

    async def slow(request: Request) -> Response:
        await gate.wait()
        return Response(b"finished")

    async def go() -> None:
        server = HttpServer(slow)
        port = await server.start("127.0.0.1", 0)
        first = await asyncio.open_connection("127.0.0.1", port)
        second = await asyncio.open_connection("127.0.0.1", port)
        first[1].write(get("/first"))
        await until(lambda: server.connections == 2)
        await asyncio.sleep(0.05)
        closing = asyncio.create_task(server.close(grace_s=60))
        await asyncio.sleep(0.05)
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)
        second[1].write(get("/second"))
        refusal = await asyncio.wait_for(second[0].read(), 60)
        assert refusal.split()[1] == b"503" and b"Retry-After: 1" in refusal
        assert not closing.done()
        gate.set()
        answer = await asyncio.wait_for(first[0].read(), 60)
        assert answer.endswith(b"finished") and b"Connection: close" in answer
        await closing
        assert server.connections == 0
        for _, writer in (first, second):
            writer.close()

    asyncio.run(go())


def test_the_grace_ends_and_streams_are_not_waited_for() -> None:
    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"news "
            await asyncio.sleep(0.01)

    async def handler(request: Request) -> Response:
        if request.path == "/stream":
            return Response(endless())
        await asyncio.sleep(3600)
        raise AssertionError("unreachable")

    async def closed(path: str, grace_s: float) -> float:
        server = HttpServer(handler)
        port = await server.start("127.0.0.1", 0)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(get(path))
        await (reader.readuntil(b"news ") if path == "/stream" else asyncio.sleep(0.05))
        started = time.monotonic()
        await server.close(grace_s)
        writer.close()
        return time.monotonic() - started

    assert asyncio.run(closed("/stream", 60.0)) < 30
    assert 0.2 <= asyncio.run(closed("/hangs", 0.2)) < 30


@pytest.mark.parametrize(("lists", "status"), [(100, b" 200 "), (20_000, b" 413 ")])
def test_a_body_that_would_grow_too_large_is_not_parsed(
    monkeypatch: pytest.MonkeyPatch, lists: int, status: bytes
) -> None:
    monkeypatch.setattr("rlvrlab.http_server.MOST_PARSED", 1 << 20)
    parsed: list[int] = []

    async def read(request: Request) -> Response:
        parsed.append(len(request.json()["x"]))
        return Response.of_json({})

    answer = asked(HttpServer(read), post("/x", b'{"x": [' + b"[]," * lists + b"[]]}"), get("/", "Connection: close"))
    assert status in answer.partition(b"\r\n")[0] and parsed[:1] == ([lists + 1] if lists == 100 else [])


def test_values_are_bounded_over_all_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    body = b'{"x": [' + b"[]," * 4000 + b"[]]}"  # most of a megabyte when it is parsed
    monkeypatch.setattr("rlvrlab.http_server.MOST_PARSED", 1 << 20)

    async def go() -> bytes:
        release = asyncio.Event()

        async def wait(request: Request) -> Response:
            await release.wait()
            return Response.of_json({})

        server = HttpServer(wait)
        port = await server.start("127.0.0.1", 0)
        (first, sending), (second, refused) = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
        sending.write(post("/", body))
        await until(lambda: server.parsed_bytes > 0)
        refused.write(post("/", body))
        turned_away = await asyncio.wait_for(second.readline(), 60)
        release.set()
        assert b" 200 " in await asyncio.wait_for(first.readline(), 60)
        for writer in (sending, refused):
            writer.close()
        await server.close()
        assert server.parsed_bytes == 0
        return turned_away

    assert b" 503 " in asyncio.run(go())


def test_where_descriptors_are_few_some_are_kept_for_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit of 258 leaves room for two callers: the third is told to come back."""
    monkeypatch.setattr("rlvrlab.http_server.resource.getrlimit", lambda which: (258, 258))
    monkeypatch.setattr("rlvrlab.http_server.resource.setrlimit", lambda which, limits: None)

    async def go() -> list[bytes]:
        done = asyncio.Event()

        async def answer(request: Request) -> Response:
            await done.wait()
            return await echo(request)

        server = HttpServer(answer)
        port = await server.start("127.0.0.1", 0)
        callers = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
        for _, writer in callers:
            writer.write(get("/"))
        await until(lambda: len(server._serving) == 2)
        callers.insert(0, await asyncio.open_connection("127.0.0.1", port))
        callers[0][1].write(get("/"))
        statuses = []
        for reader, _ in callers:
            statuses.append((await reader.readuntil(b"\r\n")).split()[1])
            done.set()
        for _, writer in callers:
            writer.close()
        await server.close()
        return statuses

    assert asyncio.run(go()) == [b"503", b"200", b"200"]
