"""The HTTP server: who hangs up is not worked for, who got in is not left hanging, what fails is said."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from rlvrlab.errors import UserError
from rlvrlab.http_server import HttpError, HttpServer, JsonRoutes, Request, Response


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
    asks = (get("/hello?a=1&a=2&b="), get("/hello?bad"), get("/hello", method="POST"), get("/nowhere"), LAST)
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
