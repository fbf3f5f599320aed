"""Bodies of many members: read as json.loads reads them, while other callers are answered."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import pytest

from rlvrlab import http_json
from rlvrlab.http_client import Host
from rlvrlab.http_json import MANY, MOST_KEYS, MOST_MEMBERS, read_fairly
from rlvrlab.http_messages import Request
from rlvrlab.http_server import HttpServer, JsonRoutes


@pytest.mark.parametrize(
    "value",
    [{"items": [{"code": "a, b: c\n", "é": [1, -2.5e3, None, True]}]}, [], {}, "x", 0, {"\ud800": "\U0001f600"}, None],
    ids=repr,
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_it_reads_what_the_fast_reader_reads(value: Any, encoding: str) -> None:
    for text in (json.dumps(value), json.dumps(value, indent=2, ensure_ascii=False)):
        body = text.encode(encoding, "surrogatepass")
        assert read_fairly(body) == json.loads(body) == value


@pytest.mark.parametrize("body", [b"", b"{", b"[1,]", b'{"a":1}x', b"\xff\xfe\xfd", b'{"a" 1}'])
def test_what_is_no_json_is_none(body: bytes) -> None:
    with pytest.raises(ValueError):
        json.loads(body)
    with pytest.raises(ValueError):
        read_fairly(body)


def asked(body: bytes) -> tuple[int, str, float]:
    """Status and words of an answer, and the longest that another caller of the server waited meanwhile."""

    async def go() -> tuple[int, str, float]:
        routes: dict[Any, Any] = {
            ("POST", "/"): lambda request: len(request.json()["x"]),
            ("GET", "/health"): lambda request: {},
        }
        server = HttpServer(JsonRoutes(routes))
        url = f"http://127.0.0.1:{await server.start('127.0.0.1', 0)}"
        large, small = Host(url), Host(url)
        await small.request("/health")
        asking, longest = asyncio.create_task(large.request("/", body)), 0.0
        while not asking.done():
            started = time.monotonic()
            await small.request("/health")
            longest = max(longest, time.monotonic() - started)
        answer = asking.result()
        await asyncio.gather(large.close(), small.close(), server.close())
        return answer.status, answer.body.decode(), longest

    return asyncio.run(go())


def test_large_bodies_are_answered_and_hold_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = json.loads

    def refused(body: Any, *given: Any, **named: Any) -> Any:
        assert len(body) < MANY, "it cannot be interrupted"
        return plain(body, *given, **named)

    monkeypatch.setattr("rlvrlab.http_messages.json.loads", refused)
    status, words, longest = asked(b'{"x":[' + b'{"a":1},' * MANY + b"{}]}")
    assert (status, int(words)) == (200, MANY + 1)
    assert longest < 1.0, "about 0.02 s on an idle machine"


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b'{"x":[' + b"0," * MOST_MEMBERS + b"0]}", 413, "commas and colons"),
        (b'{"x":{' + b",".join(b'"%x":0' % i for i in range(MOST_KEYS + 1)) + b"}}", 400, "65537 keys"),
        (b'{"x":[' + b"0," * MANY + b"]}", 400, "not JSON"),
        (b'{"x":[' + b"0," * MANY + b"[" * 5000 + b"]" * 5000 + b"]}", 400, "nested too deeply"),
    ],
    ids=["members", "keys", "broken", "deep"],
)
def test_what_is_too_much_is_refused(body: bytes, status: int, words: str) -> None:
    found, said, _ = asked(body)
    assert found == status and words in said


def test_the_server_reads_small_bodies_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_json, "read_fairly", lambda body: pytest.fail("a thread for nothing"))
    assert asked(b'{"x":[1,2]}')[:2] == (200, "2")
    assert Request("POST", "/", "", {}, b"[]", content={"a": 1}).json() == {"a": 1}
