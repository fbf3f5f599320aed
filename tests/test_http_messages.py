"""Requests that two readers could understand differently, and callers who have no business here, are refused."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import pytest

from rlvrlab.errors import UserError
from rlvrlab.http_access import (
    admit_host,
    admit_kind,
    admit_origin,
    admit_token,
    allowed_hosts,
    read_token,
    refuse_open_door,
)
from rlvrlab.http_messages import LARGEST_HEAD, MOST_HEADERS, HttpError, Request, body_size, parsed_size, request_of

GOOD = b"POST /run?x=1 HTTP/1.1\r\nHost: localhost:80\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n"


def status_of(work: object, *arguments: object, **named: object) -> int:
    """Of the refusal, 0 where there is none."""
    try:
        work(*arguments, **named)  # type: ignore[operator]
    except HttpError as error:
        return error.response.status
    return 0


def test_a_plain_request_is_read() -> None:
    head = request_of(GOOD)
    assert (head.method, head.path, head.query, body_size(head)) == ("POST", "/run", "x=1", 2)
    assert head.stays and not request_of(GOOD.replace(b"HTTP/1.1", b"HTTP/1.0")).stays


REFUSED = {
    "two Hosts": (GOOD.replace(b"Host", b"Host: localhost\r\nhost"), 400),
    "no Host": (GOOD.replace(b"Host", b"Hos"), 400),
    "two lengths": (GOOD.replace(b"Content-L", b"Content-Length: 2\r\ncontent-l"), 400),
    "a list of lengths": (GOOD.replace(b": 2", b": 2, 2"), 400),
    "a signed length": (GOOD.replace(b": 2", b": +2"), 400),
    "a length of other digits": (GOOD.replace(b": 2", b": \xb2"), 400),
    "length and chunks": (GOOD.replace(b"Content-L", b"Transfer-Encoding: chunked\r\nContent-L"), 400),
    "chunks": (GOOD.replace(b"Content-Length: 2", b"Transfer-Encoding: chunked"), 400),
    "an odd coding": (GOOD.replace(b"Content-Length: 2", b"Transfer-Encoding: \x0bchunked"), 400),
    "packed": (GOOD.replace(b"Content-L", b"Content-Encoding: gzip\r\nContent-L"), 415),
    "no length": (GOOD.replace(b"Content-Length: 2\r\n", b""), 411),
    "too long a body": (GOOD.replace(b": 2", b": 99999999999"), 413),
    "bare line feeds": (GOOD.replace(b"\r\n", b"\n"), 400),
    "one bare line feed": (GOOD.replace(b"80\r\n", b"80\n"), 400),
    "a bare line feed behind the first line": (GOOD.replace(b"1.1\r\nHost: ", b"1.1\nHost:"), 400),
    "a head without its empty line": (GOOD.removesuffix(b"\r\n\r\n"), 400),
    "a bare carriage return": (GOOD.replace(b"80\r\n", b"80\rX: y\r\n"), 400),
    "a folded header": (GOOD.replace(b"80\r\n", b"80\r\n more\r\n"), 400),
    "a first line that is folded": (GOOD.replace(b"Host", b" Host"), 400),
    "a blank before the colon": (GOOD.replace(b"Host:", b"Host :"), 400),
    "no colon": (GOOD.replace(b"Host:", b"Host"), 400),
    "an empty name": (GOOD.replace(b"Host:", b": x\r\nHost:"), 400),
    "an odd name": (GOOD.replace(b"Host:", b"H\x80st: x\r\nHost:"), 400),
    "a NUL": (GOOD.replace(b"localhost", b"local\0host"), 400),
    "an absolute target": (GOOD.replace(b"/run", b"http://evil.example/run"), 400),
    "a target without a path": (GOOD.replace(b"/run", b"*"), 400),
    "a target with a fragment": (GOOD.replace(b"/run", b"/run#x"), 400),
    "a target with blanks": (GOOD.replace(b"/run", b"/r un"), 400),
    "a target with a tab": (GOOD.replace(b"/run", b"/r\tun"), 400),
    "a target beyond ASCII": (GOOD.replace(b"/run", b"/r\xc3\xbcn"), 400),
    "a method in small letters": (GOOD.replace(b"POST", b"post"), 400),
    "an empty line first": (b"\r\n" + GOOD, 400),
    "no version": (GOOD.replace(b" HTTP/1.1", b""), 400),
    "another version": (GOOD.replace(b"HTTP/1.1", b"HTTP/2.0"), 505),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
    "too many headers": (GOOD.replace(b"Host", b"X: y\r\n" * MOST_HEADERS + b"Host"), 431),
    "too long a header": (GOOD.replace(b"Host", b"X: " + b"y" * LARGEST_HEAD + b"\r\nHost"), 431),
}


def test_as_many_headers_as_are_allowed_and_one_more() -> None:
    least = b"GET / HTTP/1.1\r\nHost: localhost\r\n"
    many = least + b"".join(b"X-%d: y\r\n" % number for number in range(MOST_HEADERS - 1))
    assert len(request_of(many + b"\r\n").headers) == MOST_HEADERS
    assert status_of(request_of, many + b"Last: y\r\n\r\n") == 431


@pytest.mark.parametrize(("head", "status"), REFUSED.values(), ids=REFUSED)
def test_what_could_be_understood_in_two_ways_is_refused(head: bytes, status: int) -> None:
    assert status_of(lambda: body_size(request_of(head))) == status


def asking(**headers: str) -> Request:
    named = {name.replace("_", "-"): text for name, text in {"host": "localhost:8080", **headers}.items()}
    return Request("POST", "/run_code", "", named, b"")


@pytest.mark.parametrize(
    ("listens_at", "host", "status"),
    [
        ("127.0.0.1", "localhost", 0),
        ("127.0.0.1", "LocalHost:8080", 0),
        ("127.0.0.1", "127.0.0.1:8080", 0),
        ("127.0.0.1", "[::1]:8080", 0),
        ("127.0.0.1", "10.0.0.7", 403),
        ("127.0.0.1", "evil.example", 403),
        ("127.0.0.1", "localhost.evil.example", 403),
        ("127.0.0.1", "127.0.0.1:80@evil.example", 403),
        ("127.0.0.1", "", 403),
        ("0.0.0.0", "10.0.0.7:8080", 0),
        ("0.0.0.0", "judge.local", 0),
        ("0.0.0.0", "evil.example", 403),
        ("gpu7.cluster", "GPU7.cluster:8080", 0),
    ],
)
def test_a_name_that_leads_here_is_not_enough(listens_at: str, host: str, status: int) -> None:
    names = allowed_hosts(listens_at, ("Judge.local",))
    assert status_of(admit_host, asking(host=host), names, only_here=listens_at == "127.0.0.1") == status


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://localhost:8080", 0),
        ("http://localhost", 403),
        ("http://localhost:8081", 403),
        ("http://evil.example", 403),
        ("null", 403),
        ("", 403),
        ("http://[", 403),
        ("file://localhost:8080", 403),
    ],
)
def test_pages_of_other_sites_may_not_ask(origin: str, status: int) -> None:
    assert status_of(admit_origin, asking()) == 0
    assert status_of(admit_origin, asking(origin=origin)) == status


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("application/json", 0),
        ("Application/JSON; charset=utf-8", 0),
        ("text/plain", 415),
        ("text/plain; application/json", 415),
        ("application/x-www-form-urlencoded", 415),
        ("multipart/form-data", 415),
        ("", 415),
    ],
)
def test_only_json_is_taken(kind: str, status: int) -> None:
    assert status_of(admit_kind, asking(content_type=kind)) == status


def test_a_token_is_a_whole_word_after_bearer() -> None:
    assert status_of(admit_token, asking(), None) == 0
    for given in ("Bearer secret", "bearer secret"):
        assert status_of(admit_token, asking(authorization=given), "secret") == 0
    for given in ("secret", "Bearer secre", "Bearer secret x", "Basic secret", "Bearer \xe9", ""):
        assert status_of(admit_token, asking(authorization=given), "secret") == 401
    assert status_of(admit_token, asking(), "secret") == 401


def test_tokens_come_from_the_environment_or_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "token"
    file.write_text("from-file\n")
    monkeypatch.delenv("X_TOKEN", raising=False)
    assert read_token("X_TOKEN", None) is None
    monkeypatch.setenv("X_TOKEN", "from-environment")
    assert (read_token("X_TOKEN", None), read_token("X_TOKEN", file)) == ("from-environment", "from-file")
    for bad in ("", " \n", "two words", "bell\x07", "é", "x" * 5000):
        monkeypatch.setenv("X_TOKEN", bad)
        with pytest.raises(UserError, match="X_TOKEN"):
            read_token("X_TOKEN", None)
    with pytest.raises(UserError, match="cannot be read"):
        read_token("X_TOKEN", tmp_path / "none")
    refuse_open_door("127.0.0.1", None, "X_TOKEN")
    refuse_open_door("0.0.0.0", "secret", "X_TOKEN")
    with pytest.raises(UserError, match="X_TOKEN"):
        refuse_open_door("0.0.0.0", None, "X_TOKEN")


UNITS = (
    "[],",
    "[[[1]]],",
    "{},",
    "1000,",
    "1.5,",
    '"ab",',
    '"",',
    '{"a":1},',
    "null,",
    "[1000],",
    '{"a":[1,2],"b":{}},',
    '"\u20ac",',
    '"\U0001f600",',
)


WIDE = ('["\U0001f600' + "a" * 50_000 + '"]', '["\\ud83d\\ude00' + "a" * 50_000 + '"]', '["' + "\u20ac" * 50_000 + '"]')
"""One character of four bytes makes four of every other in its string."""


@pytest.mark.parametrize("body", [f"[{unit * 5000}1]" for unit in UNITS] + [f"[{'[' * 900}{']' * 900}]", *WIDE])
def test_values_take_no_more_memory_than_was_estimated(body: str) -> None:
    size = parsed_size(body.encode())
    tracemalloc.start()
    try:
        values = json.loads(body)
        kept = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert values and kept <= size


def test_keys_of_objects_are_estimated_too() -> None:
    body = json.dumps({f"{number}": number + 1000 for number in range(5000)}, separators=(",", ":"))
    tracemalloc.start()
    try:
        values = json.loads(body)
        kept = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert values and kept <= parsed_size(body.encode())
