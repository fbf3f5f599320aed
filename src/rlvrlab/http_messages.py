"""HTTP/1.1 messages, read strictly: what two readers could understand differently is refused.

A request is one line `METHOD /path HTTP/1.1`, headers, an empty line; every line ends with CR LF. Refused are bare line
feeds, folded headers, odd header names, control characters, a second Host or Content-Length, a Transfer-Encoding, and
targets that are no path. Both sides use these functions: http_server.py for requests, http_client.py for answers.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs

from rlvrlab.errors import quoted

JSON, BYTES = "application/json", "application/octet-stream"
LARGEST_HEAD = 16 << 10
MOST_HEADERS = 64
LARGEST_BODY = 32 << 20
MOST_PARSED = 512 << 20
"""Bytes that the values of JSON bodies may take in memory, by `parsed_size`."""
COSTS = {b"[": 88, b"{": 240, b",": 64, b":": 64}
"""Bytes that a sign of JSON brings into being at most: a list, an object, a member, a key with its place."""
WIDEST = 4
"""Bytes of a character in a string that holds one beyond the first 65,536."""
METHOD = re.compile(r"[A-Z]{1,16}\Z")
TARGET = re.compile(r"/[!\"$-~]*\Z")
"""A path with its query: visible ASCII characters without #."""
NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")
CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
DIGITS = re.compile(r"[0-9]{1,18}\Z")
SINGLE = frozenset(
    {"host", "content-length", "content-type", "content-encoding", "transfer-encoding", "authorization", "origin",
     "cookie", "expect", "last-event-id", "if-none-match"}
)  # fmt: skip
"""Headers that may come once only: a second one would be read by some and overlooked by others."""


def parsed_size(body: bytes) -> int:
    """At most how many bytes a JSON text takes when it is read; a list of empty lists takes thirty times its own.

    Signs inside strings count too, and every character as if it were of the widest kind, which a single one of those
    makes of all others in its string; so text is overestimated, by about five times for programs.
    """
    return WIDEST * len(body) + sum(cost * body.count(sign) for sign, cost in COSTS.items())


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
    version: str = "HTTP/1.1"
    content: Any = None
    """The value of a large body, which was read elsewhere (http_json.py)."""

    def json(self) -> dict[str, Any]:
        """The body as an object."""
        try:
            content = json.loads(self.body) if self.content is None else self.content
        except (ValueError, RecursionError):
            raise HttpError(400, "the body is not JSON") from None
        if not isinstance(content, dict):
            raise HttpError(422, "the body must be a JSON object")
        return content

    def arguments(self) -> dict[str, list[str]]:
        """The query, decoded: ?run=a&run=b&x= is {"run": ["a", "b"], "x": [""]}."""
        try:
            return parse_qs(self.query, keep_blank_values=True)
        except ValueError as error:
            raise HttpError(400, f"the query cannot be read: {error}") from None

    @property
    def stays(self) -> bool:
        """The caller means to use the connection again."""
        return self.version == "HTTP/1.1" and "close" not in words_of(self.headers.get("connection", ""))


@dataclass(frozen=True, slots=True)
class Response:
    """What is answered: bytes, or a stream of them that ends with the connection."""

    body: bytes | AsyncIterator[bytes]
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    media_type: str = JSON

    @classmethod
    def of_json(cls, content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
        """A value as JSON."""
        return cls(json.dumps(content).encode(), status, headers or {})

    def head(self, keep: bool) -> bytes:
        """Everything before the body."""
        known = {"Content-Type": self.media_type, "Connection": "keep-alive" if keep else "close"}
        if isinstance(self.body, bytes) and self.status != HTTPStatus.NOT_MODIFIED:
            known["Content-Length"] = str(len(self.body))
        lines = [f"{name}: {text}" for name, text in {**known, **self.headers}.items()]
        status = f"HTTP/1.1 {self.status} {HTTPStatus(self.status).phrase}"
        return "\r\n".join([status, *lines, "", ""]).encode("latin-1")


class HttpError(Exception):
    """An answer that is a refusal."""

    def __init__(self, status: int, detail: str, **headers: str) -> None:
        super().__init__(detail)
        named = {name.replace("_", "-"): text for name, text in headers.items()}
        self.response = Response.of_json({"detail": detail}, status, named)


def request_of(head: bytes) -> Request:
    """The request whose head this is, up to its empty line; HttpError where it is anything else."""
    text = head.decode("latin-1")
    if len(head) > LARGEST_HEAD:
        raise HttpError(431, f"a head of more than {LARGEST_HEAD} bytes")
    if not text.endswith("\r\n\r\n") or "\n" in text.replace("\r\n", ""):
        raise HttpError(400, "every line of a request must end with CR LF")
    first, *lines = text.removesuffix("\r\n\r\n").split("\r\n")
    method, _, rest = first.partition(" ")
    target, _, version = rest.rpartition(" ")
    if not METHOD.match(method):
        raise HttpError(400, "not an HTTP request: the first line must be METHOD /path HTTP/1.1")
    if not TARGET.match(target):
        raise HttpError(400, "the target must be a path that begins with / and has no blanks, # or other signs in it")
    if version not in ("HTTP/1.1", "HTTP/1.0"):
        raise HttpError(505, "only HTTP/1.1 and HTTP/1.0 are spoken here")
    try:
        headers = headers_of(lines)
    except ValueError as error:
        raise HttpError(431 if isinstance(error, TooManyHeaders) else 400, str(error)) from None
    if "host" not in headers:
        raise HttpError(400, "one Host header is needed")
    path, _, query = target.partition("?")
    return Request(method, path, query, headers, b"", version)


def body_size(head: Request) -> int:
    """The bytes that follow a head; what cannot be taken is refused before it is read."""
    if "transfer-encoding" in head.headers:
        raise HttpError(400, "a Transfer-Encoding is not taken; send a Content-Length instead")
    if head.headers.get("content-encoding", "identity").lower() != "identity":
        raise HttpError(415, "a packed body (Content-Encoding) is not taken; send it as it is")
    given = head.headers.get("content-length")
    if given is None:
        if head.method in ("POST", "PUT", "PATCH"):
            raise HttpError(411, "a Content-Length is needed")
        return 0
    try:
        size = length_of(given)
    except ValueError as error:
        raise HttpError(400, str(error)) from None
    if size > LARGEST_BODY:
        raise HttpError(413, f"a body of {size} bytes; at most {LARGEST_BODY}")
    return size


class TooManyHeaders(ValueError):
    """More headers than anybody needs."""


def headers_of(lines: Iterable[str]) -> dict[str, str]:
    """Header lines without their line ends, as a table; ValueError names the first that is not allowed."""
    headers: dict[str, str] = {}
    for number, line in enumerate(lines):
        if number >= MOST_HEADERS:
            raise TooManyHeaders(f"more than {MOST_HEADERS} headers")
        name, colon, text = line.partition(":")
        if not colon or not NAME.match(name):
            raise ValueError(f"header {quoted(name, 40)}: a name, a colon and a text are needed, on one line")
        if CONTROL.search(text):
            raise ValueError(f"header {quoted(name, 40)}: control characters are not allowed")
        key, text = name.lower(), text.strip(" \t")
        if key in headers and key in SINGLE:
            raise ValueError(f"header {quoted(name, 40)} comes twice")
        headers[key] = f"{headers[key]}, {text}" if key in headers else text
    return headers


def length_of(text: str) -> int:
    """What a Content-Length says; ValueError where it is no plain number."""
    if not DIGITS.match(text):
        raise ValueError(f"Content-Length: {quoted(text, 40)} is no number of bytes")
    return int(text)


def words_of(text: str) -> list[str]:
    """The words of a header that is a list: `keep-alive, Close` is ["keep-alive", "close"]."""
    return [word.strip().lower() for word in text.split(",")]
