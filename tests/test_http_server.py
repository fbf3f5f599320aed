"""The HTTP server's end: nobody who got in is left hanging."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress

import pytest

from rlvrlab.http_server import HttpServer, Request, Response


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
