"""Just enough HTTP/1.1 for the laboratory's servers: one coroutine per connection, everything bounded.

The judge, the model server, the adapter door and the dashboard stand on it. A maintained framework behind an extra
would do too (starlette on uvicorn is the obvious one), but judge and model server must run on the core install, and who
is let in, how much is read and what happens to a caller who hangs up should be decided in one place for all of them.
What they need beyond a JSON service is small: text, pieces of a file as they are, and a stream that ends with its
connection. TLS, compression, ranges, forms and chunked requests are left out on purpose.

    accept   as many as there are descriptors for, strangers and idle ones make room (http_door.py); the first byte
             within FIRST_S
    read     a head within READ_S of its first byte, a body at SLOWEST bytes per second or faster
    hold     bodies of requests and answers together at most MOST_BYTES; beyond that, 503
    parse    what has many members in a thread that lets others go on (http_json.py)
    answer   until the caller hangs up
    write    each PIECE within WRITE_S, all of it at SLOWEST or faster; who does not read is hung up on
    stop     `close(grace_s)`: no new connections, 503 for new requests, what runs is finished
"""

from __future__ import annotations

import asyncio
import resource
import signal
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from inspect import isawaitable
from typing import Any, TypeVar

from rlvrlab.errors import UserError, one_line
from rlvrlab.http_access import admit_host, admit_kind, admit_origin, allowed_hosts, is_loopback
from rlvrlab.http_door import Door
from rlvrlab.http_json import MANY, MOST_MEMBERS, members, read_beside
from rlvrlab.http_messages import (
    BYTES,
    JSON,
    LARGEST_HEAD,
    MOST_PARSED,
    HttpError,
    Request,
    Response,
    body_size,
    parsed_size,
    request_of,
)

FIRST_S = 10.0
"""How long a new connection may stay silent."""
IDLE_S = 120.0
"""How long a connection may stay open without a request after one that was answered."""
READ_S = 30.0
WRITE_S = 30.0
SLOWEST = 64 << 10
"""Bytes per second that a caller must send or take on average, beside READ_S or WRITE_S."""
PIECE = 256 << 10
MOST_CONNECTIONS = 4096
SPARE_FILES = 256
"""Descriptors left to workers and files."""
MOST_BYTES = 256 << 20
"""Bodies held at once, of requests and answers."""
SMALL = 64 << 10
"""An answer of this size is written even when MOST_BYTES are held."""
LOOK_S = 1.0
"""Between two looks whether the caller is still there."""
DRAIN_LOOK_S = 0.02
LINGER_S = 1.0
"""How long a refused caller who is still sending is listened to, so that the refusal reaches it."""
T = TypeVar("T")
Handler = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True)
class JsonRoutes:
    """A handler that finds the function for a method and path, and answers with what it returns, as JSON.

    A function that answers in another way returns a Response.
    """

    routes: Mapping[tuple[str, str], Callable[[Request], Any]]
    """E.g. {("GET", "/health"): health}; what is awaitable is awaited."""
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
            made = route(request)
            made = await made if isawaitable(made) else made
            return made if isinstance(made, Response) else Response.of_json(made, headers=self.headers)
        except UserError as error:
            raise HttpError(self.mistake, str(error)) from None
        except RecursionError:
            raise HttpError(400, "the body is nested too deeply") from None


class HttpServer:
    """Listens; every connection may carry many requests."""

    def __init__(
        self, handler: Handler, admit: Callable[[Request], None] = lambda head: None, hosts: Collection[str] = (),
        raw: Collection[str] = (),
    ) -> None:  # fmt: skip
        """`admit` sees a request before its body is read, and raises HttpError to keep it out.

        `hosts` are names that a Host header may have besides this machine's own; `raw` are paths that take bytes.
        """
        self._handler, self._admit, self._further, self._raw = handler, admit, hosts, raw
        self._door = Door(self._connected)
        self._serving: set[asyncio.Task[None]] = set()
        """Connections with a request under way that has an end: `close` waits for these."""
        self._only_here, self._names = False, frozenset[str]()
        self._draining = False
        self.held_bytes = 0
        """The sizes of all bodies that are being read, answered or written."""
        self.parsed_bytes = 0
        """What the values of all bodies that are being answered take at most."""

    @property
    def connections(self) -> int:
        """How many are open now."""
        return len(self._door.inside)

    async def start(self, host: str, port: int) -> int:
        """The port it listens on, which is another than asked for only when that was 0."""
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = MOST_CONNECTIONS + SPARE_FILES
        if soft < wanted:  # a thousand callers need a thousand descriptors
            soft = wanted if hard == resource.RLIM_INFINITY else min(hard, wanted)
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        most, self._only_here = min(MOST_CONNECTIONS, soft - SPARE_FILES), is_loopback(host)
        self._names, self._draining = allowed_hosts(host, self._further), False
        try:
            return await self._door.open(host, port, most)
        except (OSError, OverflowError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise UserError(f"cannot listen at {host}:{port} ({why}); choose another --port, 0 for any") from None

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.set_write_buffer_limits(0)  # so that `drain` means: the kernel has taken it all
        silence_s = FIRST_S
        with suppress(ConnectionError, asyncio.IncompleteReadError, TimeoutError):
            while await self._exchange(reader, writer, silence_s):
                silence_s = IDLE_S
                self._door.rests(_this_task())

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, silence_s: float) -> bool:
        """One request and its answer; True where the connection can carry another."""
        async with asyncio.timeout(silence_s):
            first = await reader.read(1)
        self._door.asks(_this_task())
        if not first:
            return False
        head, keep, refused = None, False, False
        with self._request_under_way():
            try:
                head = await _read_head(first, reader)
                response = await self._response(head, reader, writer)
                keep = head.stays and isinstance(response.body, bytes) and not self._draining
            except HttpError as error:  # its body was not read, which leaves the connection in the middle of something
                response, refused = error.response, True
            with self._holding_answer(response) as response:
                data = response.body if head is None or head.method != "HEAD" else b""
                await self._write(response.head(keep), data, reader, writer)
        if refused:
            await _linger(reader, writer)
        return keep

    async def _response(self, head: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Response:
        """What is answered to a request, once it is let in and its body has come."""
        if self._draining:
            raise HttpError(503, "the server is stopping", Retry_After="1")
        admit_host(head, self._names, only_here=self._only_here)
        admit_origin(head)
        self._admit(head)
        self._door.let_in(_this_task())
        kind = BYTES if head.path in self._raw else JSON
        admit_kind(head, kind)
        size = body_size(head)
        if self._door.crowded(_this_task()):
            raise HttpError(503, f"{self.connections} connections are open already", Retry_After="1")
        with self._holding(size, MOST_BYTES):
            if head.headers.get("expect", "").lower() == "100-continue":
                await _send(b"HTTP/1.1 100 Continue\r\n\r\n", writer)
            async with asyncio.timeout(READ_S + size / SLOWEST):
                body = await reader.readexactly(size)
            with self._room_to_parse(parsed_size(body) if kind == JSON else 0):
                return await self._answer(replace(head, body=body), reader)

    async def _answer(self, request: Request, reader: asyncio.StreamReader) -> Response:
        try:
            if request.path not in self._raw:
                request = await _read_if_large(request)
            return await _while_there(self._handler(request), reader)
        except HttpError as error:
            return error.response
        except ConnectionError:
            raise
        except Exception as error:  # no answer at all would look like a broken network, and be sent again
            return Response.of_json({"detail": f"{type(error).__name__}: {error}"}, 500)

    async def _write(
        self,
        head: bytes,
        body: bytes | AsyncIterator[bytes],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        if isinstance(body, bytes):
            async with asyncio.timeout(WRITE_S + len(body) / SLOWEST):
                if len(body) <= SMALL:
                    await _send(head + body, writer)
                else:
                    await _send(head, writer)
                    await _send(body, writer)
            return
        self._serving.discard(_this_task())  # a stream has no end of its own
        try:
            await _send(head, writer)
            with suppress(StopAsyncIteration):
                while not self._draining:
                    await _send(await _while_there(anext(body), reader), writer)
        finally:
            if isinstance(body, AsyncGenerator):
                await body.aclose()

    @contextmanager
    def _request_under_way(self) -> Iterator[None]:
        task = _this_task()
        self._serving.add(task)
        try:
            yield
        finally:
            self._serving.discard(task)

    @contextmanager
    def _holding(self, size: int, most: float) -> Iterator[None]:
        """Room for a body, or a refusal where all connections together hold too much already."""
        if self.held_bytes + size > most:
            raise HttpError(503, f"{self.held_bytes} bytes of requests and answers are held already", Retry_After="1")
        self.held_bytes += size
        try:
            yield
        finally:
            self.held_bytes -= size

    @contextmanager
    def _room_to_parse(self, size: int) -> Iterator[None]:
        """Room for the values of a body, or a refusal: for good where it is too much, for now where others have it."""
        if size > MOST_PARSED:
            raise HttpError(413, f"a body whose values may take {size} bytes; at most {MOST_PARSED}, send less at once")
        if self.parsed_bytes + size > MOST_PARSED:
            raise HttpError(503, f"values of {self.parsed_bytes} bytes are held already", Retry_After="1")
        self.parsed_bytes += size
        try:
            yield
        finally:
            self.parsed_bytes -= size

    @contextmanager
    def _holding_answer(self, response: Response) -> Iterator[Response]:
        """The answer, or where it would be too much to hold, a small one that says so."""
        size = len(response.body) if isinstance(response.body, bytes) else 0
        if size > SMALL and self.held_bytes + size > MOST_BYTES:
            response = HttpError(503, f"no room for an answer of {size} bytes now", Retry_After="1").response
            size = 0
        with self._holding(size, float("inf")):
            yield response

    async def close(self, grace_s: float = 0.0) -> None:
        """Stop listening, let what runs finish within `grace_s`, and end all connections."""
        self._draining = True
        await self._door.shut()
        ends = time.monotonic() + grace_s
        while self._serving and time.monotonic() < ends:
            await asyncio.sleep(DRAIN_LOOK_S)
        await self._door.put_out_all()


async def told_to_stop() -> None:
    """Until SIGTERM or SIGINT; a second one then ends the process at once."""
    loop, told = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, told.set)
    try:
        await told.wait()
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


def _this_task() -> asyncio.Task[None]:
    """The task of the connection that is being served."""
    task: asyncio.Task[None] | None = asyncio.current_task()
    assert task is not None
    return task


async def _read_head(first: bytes, reader: asyncio.StreamReader) -> Request:
    """A whole head, line by line; it is refused at its first line that does not end with CR LF."""
    head = first
    try:
        async with asyncio.timeout(READ_S):
            while not head.endswith(b"\n\r\n") and len(head) <= LARGEST_HEAD:
                line = await reader.readuntil(b"\n")
                head += line
                if not line.endswith(b"\r\n"):
                    break
    except asyncio.LimitOverrunError:
        raise HttpError(431, f"a head of more than {LARGEST_HEAD} bytes") from None
    return request_of(head)


async def _read_if_large(request: Request) -> Request:
    """A body of many members is read beside the others' requests; HttpError where it cannot be."""
    count = members(request.body)
    if count <= MANY:
        return request
    if count > MOST_MEMBERS:
        raise HttpError(413, f"a body with {count} commas and colons; at most {MOST_MEMBERS}, send less at once")
    try:
        return replace(request, content=await read_beside(request.body))
    except (ValueError, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else one_line(error)
        raise HttpError(400, f"the body is not JSON, or not as it is taken: {why}") from None


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


async def _send(data: bytes, writer: asyncio.StreamWriter) -> None:
    """Hand everything to the kernel, piece by piece; TimeoutError where the caller does not take it."""
    view = memoryview(data)
    for start in range(0, len(view), PIECE):
        writer.write(view[start : start + PIECE])
        async with asyncio.timeout(WRITE_S):
            await writer.drain()


async def _linger(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Take what a refused caller still sends: the kernel would reset the connection, and drop the refusal with it."""
    writer.write_eof()
    with suppress(TimeoutError):
        async with asyncio.timeout(LINGER_S):
            while await reader.read(SMALL):
                pass
