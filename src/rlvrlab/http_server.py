"""Just enough HTTP/1.1 for a JSON service on a trusted network: one coroutine per connection, everything bounded."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import resource
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

LARGEST_BODY = 32 << 20
LARGEST_HEAD = 64 << 10
IDLE_S = 120.0
MOST_CONNECTIONS = 4096
SPARE_FILES = 256
"""Descriptors left to workers and files."""
MOST_BYTES = 512 << 20
"""Bodies held at once; beyond, a request is turned away unread."""
BACKLOG = 1024
LOOK_S = 1.0
"""Between two looks whether the asker is still there."""
TURNS = 8
"""Of the event loop, from an accepted connection to the task that serves it, with room to spare."""
REASONS = {
    200: "OK",
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    413: "Content Too Large",
    422: "Unprocessable Content",
    429: "Too Many Requests",
    500: "Internal Server Error",
    503: "Service Unavailable",
}


@dataclass(frozen=True, slots=True)
class Request:
    """One request with its JSON body."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> dict[str, Any]:
        """The body as an object."""
        try:
            content = json.loads(self.body)
        except (ValueError, RecursionError):
            raise HttpError(400, "the body is not JSON") from None
        if not isinstance(content, dict):
            raise HttpError(422, "the body must be a JSON object")
        return content


@dataclass(frozen=True, slots=True)
class Response:
    """What is answered."""

    content: Any
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


class HttpError(Exception):
    """An answer that is a refusal."""

    def __init__(self, status: int, detail: str, **headers: str) -> None:
        super().__init__(detail)
        self.response = Response(
            {"detail": detail}, status, {name.replace("_", "-"): text for name, text in headers.items()}
        )


Handler = Callable[[Request], Awaitable[Response]]


class HttpServer:
    """Listens; every connection may carry many requests."""

    def __init__(self, handler: Handler, admit: Callable[[Request], None] = lambda head: None) -> None:
        """`admit` sees a request before its body is read, and raises HttpError to keep it out."""
        self._handler, self._admit = handler, admit
        self._connections: set[asyncio.Task[None]] = set()
        self._most = MOST_CONNECTIONS
        self._local = False
        self.held_bytes = 0
        """Of bodies being read or answered."""

    @property
    def connections(self) -> int:
        """Open now."""
        return len(self._connections)

    async def start(self, host: str, port: int) -> int:
        """The port it listens on, which is another than asked for only when that was 0."""
        self._most = min(MOST_CONNECTIONS, _raised_file_limit() - SPARE_FILES)
        self._local = is_loopback(host)
        self._server = await asyncio.start_server(self._connected, host, port, limit=LARGEST_HEAD, backlog=BACKLOG)
        bound: int = self._server.sockets[0].getsockname()[1]
        return bound

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            # asyncio takes a cancelled connection for a crash; here it is how `close` ends one.
            with suppress(ConnectionError, asyncio.IncompleteReadError, TimeoutError, asyncio.CancelledError):
                while await self._exchange(reader, writer):
                    pass
        finally:
            self._connections.discard(task)
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        held = 0
        try:
            async with asyncio.timeout(IDLE_S):
                head = await _read_head(reader)
                if head is None:
                    return False
                if self._local and not is_loopback(_host_name(head.headers.get("host", ""))):
                    raise HttpError(403, "unexpected Host header")  # a web page under a name that leads here
                self._admit(head)
                held = self._hold(head)
                request = replace(head, body=await reader.readexactly(held))
            response = await self._answered(request, reader)
            keep = request.headers.get("connection", "").lower() != "close"
        except HttpError as error:
            # What was refused before its body was read leaves the connection in the middle of something.
            response, keep = error.response, False
        except (asyncio.LimitOverrunError, ValueError):
            response, keep = Response({"detail": "not an HTTP request"}, 400), False
        finally:
            self.held_bytes -= held
        writer.write(_bytes(response, keep))
        await writer.drain()
        return keep

    def _hold(self, head: Request) -> int:
        """Room for a request's body, or a refusal before it is read."""
        length = head.headers.get("content-length", "0")
        if not (length.isascii() and length.isdigit()):
            raise HttpError(400, f"Content-Length: {length[:40]!r} is no number of bytes")
        size = int(length)
        if size > LARGEST_BODY:
            raise HttpError(413, f"at most {LARGEST_BODY} bytes")
        if self.connections > self._most:
            raise HttpError(503, f"{self.connections} connections are open already", Retry_After="1")
        if self.held_bytes + size > MOST_BYTES:
            raise HttpError(429, f"{self.held_bytes} bytes of requests are held already", Retry_After="1")
        self.held_bytes += size
        return size

    async def _answered(self, request: Request, reader: asyncio.StreamReader) -> Response:
        """The handler's answer; work for someone who has hung up is not done."""
        work = asyncio.ensure_future(self._handler(request))
        try:
            while not (await asyncio.wait({work}, timeout=LOOK_S))[0]:
                if reader.at_eof() or reader.exception() is not None:
                    raise ConnectionAbortedError
            return work.result()
        except HttpError as error:
            return error.response
        finally:
            work.cancel()

    async def close(self) -> None:
        """Stop listening and end all connections."""
        for listening in self._server.sockets:
            asyncio.get_running_loop().remove_reader(listening.fileno())
        for _ in range(TURNS):  # who was accepted just now has no task yet, and gets none from a closed server
            await asyncio.sleep(0)
        self._server.close()
        connections = list(self._connections)
        for task in connections:
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)
        await asyncio.sleep(0)  # the sockets are closed one turn of the loop later


async def _read_head(reader: asyncio.StreamReader) -> Request | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ", 2)
    headers = {name.strip().lower(): text.strip() for name, _, text in (line.partition(":") for line in lines if line)}
    if "transfer-encoding" in headers:
        raise HttpError(400, "send a Content-Length")
    return Request(method, path.partition("?")[0], headers, b"")


def _raised_file_limit() -> int:
    """As many descriptors as the system lets this process have; a thousand callers need a thousand."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_CONNECTIONS + SPARE_FILES
    if soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(hard, wanted)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return soft


def _bytes(response: Response, keep: bool) -> bytes:
    body = json.dumps(response.content).encode()
    head = {
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        "Connection": "keep-alive" if keep else "close",
        **response.headers,
    }
    lines = [
        f"HTTP/1.1 {response.status} {REASONS.get(response.status, 'Unknown')}",
        *(f"{k}: {v}" for k, v in head.items()),
    ]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def is_loopback(host: str) -> bool:
    """Can only this machine reach it?"""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _host_name(header: str) -> str:
    if header.startswith("["):
        return header[1:].partition("]")[0]
    return header.partition(":")[0]
