"""Just enough HTTP/1.1 for the laboratory's servers: one coroutine per connection, everything bounded.

The judge, the model server and the dashboard stand on it. A maintained framework behind an extra would do too
(starlette on uvicorn is the obvious one), but judge and model server must run on the core install, and who is let in,
how much is read and what happens to a caller who hangs up should be decided in one place for all three. What they need
beyond a JSON service is small: text, and a stream that ends with its connection. TLS, compression, ranges, uploads and
chunked requests are left out on purpose.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import resource
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any, TypeVar
from urllib.parse import parse_qs

from rlvrlab.errors import UserError

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
"""Between two looks whether the caller is still there."""
TURNS = 8
"""Turns of the event loop from an accepted connection to the task that serves it, with room to spare."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Request:
    """One request with its body."""

    method: str
    path: str
    """As sent, percent signs and all, without what follows the question mark."""
    query: str
    headers: Mapping[str, str]
    """Names in lower case."""
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

    def arguments(self) -> dict[str, list[str]]:
        """The query, decoded: ?run=a&run=b&x= is {"run": ["a", "b"], "x": [""]}."""
        return parse_qs(self.query, keep_blank_values=True)


@dataclass(frozen=True, slots=True)
class Response:
    """What is answered: bytes, or a stream of them that ends with the connection."""

    body: bytes | AsyncIterator[bytes]
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    media_type: str = "application/json"

    @classmethod
    def of_json(cls, content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
        """A value as JSON."""
        return cls(json.dumps(content).encode(), status, headers or {})


class HttpError(Exception):
    """An answer that is a refusal."""

    def __init__(self, status: int, detail: str, **headers: str) -> None:
        super().__init__(detail)
        named = {name.replace("_", "-"): text for name, text in headers.items()}
        self.response = Response.of_json({"detail": detail}, status, named)


Handler = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True)
class JsonRoutes:
    """A handler that finds the function for a method and path, and answers with what it returns, as JSON."""

    routes: Mapping[tuple[str, str], Callable[[Request], Awaitable[Any]]]
    """E.g. {("GET", "/health"): health}."""
    mistake: int = 400
    """Status of a UserError."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Added to every answer that is no refusal."""

    async def __call__(self, request: Request) -> Response:
        """Answer with what the function returns, or refuse."""
        route = self.routes.get((request.method, request.path))
        if route is None:
            known = any(path == request.path for _, path in self.routes)
            raise HttpError(405 if known else 404, f"no {request.method} {request.path}")
        try:
            return Response.of_json(await route(request), headers=self.headers)
        except UserError as error:
            raise HttpError(self.mistake, str(error)) from None


class HttpServer:
    """Listens; every connection may carry many requests."""

    def __init__(self, handler: Handler, admit: Callable[[Request], None] = lambda head: None) -> None:
        """`admit` sees a request before its body is read, and raises HttpError to keep it out."""
        self._handler, self._admit = handler, admit
        self._connections: set[asyncio.Task[None]] = set()
        self._most, self._local = MOST_CONNECTIONS, False
        self.held_bytes = 0
        """The sizes of all bodies that are being read or answered."""

    @property
    def connections(self) -> int:
        """How many are open now."""
        return len(self._connections)

    async def start(self, host: str, port: int) -> int:
        """The port it listens on, which is another than asked for only when that was 0."""
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = MOST_CONNECTIONS + SPARE_FILES
        if soft < wanted:  # a thousand callers need a thousand descriptors
            soft = wanted if hard == resource.RLIM_INFINITY else min(hard, wanted)
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        self._most, self._local = min(MOST_CONNECTIONS, soft - SPARE_FILES), is_loopback(host)
        try:
            self._server = await asyncio.start_server(self._connected, host, port, limit=LARGEST_HEAD, backlog=BACKLOG)
        except (OSError, OverflowError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise UserError(f"cannot listen at {host}:{port} ({why}); choose another --port, 0 for any") from None
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
        """One request and its answer; True where the connection can carry another."""
        head, held, keep = None, 0, False
        try:
            async with asyncio.timeout(IDLE_S):
                head = await _read_head(reader)
                if head is None:
                    return False
                host = head.headers.get("host", "")
                name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
                if self._local and not is_loopback(name):
                    raise HttpError(403, "unexpected Host header")  # a web page under a name that leads here
                self._admit(head)
                held = self._hold(head)
                request = replace(head, body=await reader.readexactly(held))
            response = await self._answer(request, reader)
            keep = request.headers.get("connection", "").lower() != "close" and isinstance(response.body, bytes)
        except HttpError as error:  # its body was not read, which leaves the connection in the middle of something
            response = error.response
        except (asyncio.LimitOverrunError, ValueError):
            response = Response.of_json({"detail": "not an HTTP request"}, 400)
        finally:
            self.held_bytes -= held
        writer.write(_head(response, keep))
        if head is None or head.method != "HEAD":
            await _write_body(response.body, reader, writer)
        await writer.drain()
        return keep

    async def _answer(self, request: Request, reader: asyncio.StreamReader) -> Response:
        try:
            return await _while_there(self._handler(request), reader)
        except HttpError as error:
            return error.response
        except ConnectionError:
            raise
        except Exception as error:  # no answer at all would look like a broken network, and be sent again
            return Response.of_json({"detail": f"{type(error).__name__}: {error}"}, 500)

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
    path, _, query = path.partition("?")
    return Request(method, path, query, headers, b"")


async def _while_there(work: Awaitable[T], reader: asyncio.StreamReader) -> T:
    """What a piece of work returns; it is cancelled when the caller hangs up."""
    task = asyncio.ensure_future(work)
    try:
        while not (await asyncio.wait({task}, timeout=LOOK_S))[0]:
            if reader.at_eof() or reader.exception() is not None:
                raise ConnectionAbortedError
        return task.result()
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait({task})


async def _write_body(
    body: bytes | AsyncIterator[bytes], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    if isinstance(body, bytes):
        writer.write(body)
        return
    try:
        with suppress(StopAsyncIteration):
            while True:
                writer.write(await _while_there(anext(body), reader))
                await writer.drain()
    finally:
        if isinstance(body, AsyncGenerator):
            await body.aclose()


def _head(response: Response, keep: bool) -> bytes:
    known = {"Content-Type": response.media_type, "Connection": "keep-alive" if keep else "close"}
    if isinstance(response.body, bytes) and response.status != HTTPStatus.NOT_MODIFIED:
        known["Content-Length"] = str(len(response.body))
    lines = [f"{name}: {text}" for name, text in {**known, **response.headers}.items()]
    status = f"HTTP/1.1 {response.status} {HTTPStatus(response.status).phrase}"
    return "\r\n".join([status, *lines, "", ""]).encode("latin-1")


def is_loopback(host: str) -> bool:
    """Is it a name or an address under which only this machine can be reached?"""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"
