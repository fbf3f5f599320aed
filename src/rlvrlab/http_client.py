"""Just enough of an HTTP/1.1 client to ask a JSON service: kept-alive connections, everything bounded.

A general client costs more than the judging: at 64 connections httpx takes 5 ms of CPU per request from its pool and
1.6 ms without sharing one; this takes 0.1 ms. No redirects (they could lead a key to a host nobody named), no proxies.
"""

from __future__ import annotations

import asyncio
import json
import re
import ssl
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from rlvrlab.errors import UserError, cut
from rlvrlab.http_messages import CONTROL, JSON, MOST_PARSED, headers_of, length_of, parsed_size, words_of

LARGEST_HEAD = 64 << 10
LARGEST_BODY = 64 << 20
PIECE = 1 << 16
EXCERPT = 200
"""Characters of a bad answer that a message shows."""
BODILESS = {204, 304}
STATUS_LINE = re.compile(r"HTTP/1\.([01]) ([1-5][0-9][0-9])(?: |\Z)")
CHUNK = re.compile(rb"([0-9A-Fa-f]{1,8})[ \t]*(?:;[^\r\n]*)?\r\n\Z")
CONNECT_S = 10.0


class BadAnswer(Exception):
    """Not an answer: cut off, not HTTP, not JSON, or not what was asked for."""


class NotConnected(OSError):
    """Nobody listens there: the request was never sent."""


class ConnectTimedOut(NotConnected, TimeoutError):
    """Nobody answered the call within CONNECT_S."""


@dataclass(frozen=True, slots=True)
class Response:
    """An answer with its whole body."""

    status: int
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes

    def json(self) -> dict[str, Any]:
        """The body as an object."""
        if parsed_size(self.body) > MOST_PARSED:
            raise BadAnswer(f"the answer has {len(self.body)} bytes, and too many members to be read")
        try:
            content = json.loads(self.body)
        except (ValueError, RecursionError):
            raise BadAnswer("the answer is broken JSON") from None
        if not isinstance(content, dict):
            raise BadAnswer("the answer is no JSON object")
        return content

    def excerpt(self) -> str:
        """The beginning of the body for a message, on one line."""
        text = self.body[: 4 * EXCERPT].decode("utf-8", "replace")
        return cut(" ".join(CONTROL.sub(" ", text).split()), EXCERPT)


class Refused(Exception):
    """An answer whose status is not 200; the message has the server's own words."""

    def __init__(self, response: Response) -> None:
        self.status = response.status
        super().__init__(f"status {response.status}: {cut(reason(response), 200)}")


def reason(response: Response) -> str:
    """What a server says about a request it does not take; OpenAI's form packs it into an object."""
    text = response.body.decode("utf-8", "replace")
    with suppress(BadAnswer):
        error = response.json().get("error")
        message = error.get("message") if isinstance(error, dict) else None
        text = message if isinstance(message, str) and message else text
    return cut(" ".join(text.split()), 400)


class Host:
    """One address with its idle connections."""

    def __init__(self, url: str, key: str | None = None) -> None:
        try:
            parts, given = urlsplit(url), urlsplit(url).port
        except ValueError:  # a port beyond 65535, half a bracket
            raise UserError(f"server {url.rpartition('@')[2]!r}: not an address, e.g. http://127.0.0.1:8000") from None
        if parts.scheme not in ("http", "https") or not parts.hostname:
            shown = url.rpartition("@")[2]  # what stands before it may be a password
            raise UserError(f"server {shown!r}: an http:// or https:// address is needed, e.g. http://127.0.0.1:8000")
        if parts.username or parts.password or parts.query or parts.fragment:
            raise UserError("server: no user, password or query in an address; keys come from the environment")
        self._secure, self._name = parts.scheme == "https", parts.hostname
        self._port = given or (443 if self._secure else 80)
        self._path = parts.path.rstrip("/").removesuffix("/v1")
        self.url = f"{parts.scheme}://{parts.netloc}{self._path}"
        if key and not (key.isascii() and key.isprintable()):
            raise UserError("the key from the environment is not plain text; check for a line break in it")
        secret = f"Authorization: Bearer {key}\r\n" if key else ""
        self._common = f"Host: {parts.netloc}\r\nAccept: application/json\r\n{secret}"
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def request(self, path: str, content: dict[str, Any] | bytes | None = None, kind: str = JSON) -> Response:
        """POST `content` as JSON (bytes are of `kind` already), or GET where there is none, over a kept connection."""
        method, head, body = "GET", "", b""
        if content is not None:
            method, body = "POST", content if isinstance(content, bytes) else json.dumps(content).encode()
            head = f"Content-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
        data = f"{method} {self._path}{path} HTTP/1.1\r\n{self._common}{head}\r\n".encode("latin-1") + body
        while self._idle:
            # The server may have closed a kept connection meanwhile; that is no failure, the next one is tried.
            reader, writer = self._idle.pop()
            if reader.at_eof():
                writer.close()
                continue
            with suppress(_Stale):
                return await self._send(reader, writer, data)
        reader, writer = await self._connect()
        try:
            return await self._send(reader, writer, data)
        except _Stale:
            raise BadAnswer("the connection was closed without an answer") from None

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        secure = ssl.create_default_context() if self._secure else None
        try:
            async with asyncio.timeout(CONNECT_S):
                return await asyncio.open_connection(self._name, self._port, ssl=secure, limit=LARGEST_HEAD)
        except TimeoutError:
            raise ConnectTimedOut(f"no connection within {CONNECT_S:g} s") from None
        except ConnectionRefusedError:
            raise NotConnected("connection refused") from None
        except OSError as error:
            raise NotConnected(error.strerror or str(error) or type(error).__name__) from None

    async def _send(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, data: bytes) -> Response:
        kept = False
        try:
            try:
                writer.write(data)
                head = await reader.readuntil(b"\r\n\r\n")
            except (asyncio.IncompleteReadError, ConnectionError) as error:
                if isinstance(error, asyncio.IncompleteReadError) and error.partial:
                    raise BadAnswer("the answer was cut off in its head") from None
                raise _Stale from None
            except asyncio.LimitOverrunError:
                raise BadAnswer("the answer is not HTTP") from None
            version, status, headers = _parse_head(head)
            body, framed = await _read_body(reader, status, headers)
            kept = framed and version == 1 and "close" not in words_of(headers.get("connection", ""))
            return Response(status, headers, body)
        finally:
            # Whatever interrupted the exchange, a timeout too, leaves the connection in the middle of something.
            if kept:
                self._idle.append((reader, writer))
            else:
                writer.close()

    async def close(self) -> None:
        """Give the connections back."""
        for _, writer in self._idle:
            writer.close()
        self._idle.clear()
        await asyncio.sleep(0)


class _Stale(Exception):
    """A connection that gave nothing at all."""


def _parse_head(head: bytes) -> tuple[int, int, dict[str, str]]:
    """Minor version, status and headers; an answer that could be read in two ways is none."""
    first, *lines = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    known = STATUS_LINE.match(first)
    if not known:
        raise BadAnswer("the answer is not HTTP")
    try:
        return int(known[1]), int(known[2]), headers_of(lines)
    except ValueError as error:
        raise BadAnswer(f"the answer is not HTTP: {error}") from None


async def _read_body(reader: asyncio.StreamReader, status: int, headers: dict[str, str]) -> tuple[bytes, bool]:
    """The body, and whether its end was marked, so that the connection can be used again."""
    coding, length = headers.get("transfer-encoding"), headers.get("content-length")
    if status in BODILESS:
        return b"", True
    if status < 200 or (coding is not None and (length is not None or coding.lower() != "chunked")):
        raise BadAnswer("the answer does not say where it ends")
    try:
        if coding is not None:
            return await _read_chunks(reader), True
        if length is None:
            return await _read_to_end(reader), False
        size = length_of(length)
        if size > LARGEST_BODY:
            raise BadAnswer(f"an answer of {size} bytes; at most {LARGEST_BODY}")
        return await reader.readexactly(size), True
    except (asyncio.IncompleteReadError, ConnectionError):
        raise BadAnswer("the answer was cut off") from None
    except (ValueError, asyncio.LimitOverrunError):
        raise BadAnswer("the answer is not HTTP") from None


async def _read_to_end(reader: asyncio.StreamReader) -> bytes:
    """A body without a length ends with its connection, in however many packets it comes."""
    parts: list[bytes] = []
    total = 0
    while piece := await reader.read(PIECE):
        parts.append(piece)
        total += len(piece)
        if total > LARGEST_BODY:
            raise BadAnswer(f"an answer of more than {LARGEST_BODY} bytes")
    return b"".join(parts)


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    parts: list[bytes] = []
    total = 0
    while True:
        line = CHUNK.match(await reader.readuntil(b"\r\n"))
        if line is None:
            raise BadAnswer("a chunk of unknown size")
        size = int(line[1], 16)
        total += size
        if total > LARGEST_BODY:
            raise BadAnswer(f"an answer of more than {LARGEST_BODY} bytes")
        if size == 0:
            await _skip_trailers(reader)
            return b"".join(parts)
        parts.append(await reader.readexactly(size))
        if await reader.readexactly(2) != b"\r\n":
            raise BadAnswer("a chunk that is longer than it says")


async def _skip_trailers(reader: asyncio.StreamReader) -> None:
    total = 0
    while (line := await reader.readuntil(b"\r\n")) != b"\r\n":
        total += len(line)
        if total > LARGEST_HEAD:
            raise BadAnswer("trailers without an end")
