"""Who may ask a server of the laboratory: decided from the head of a request, before any of its body is read.

Host     must name this machine, so that a web page under a name that leads here (DNS rebinding) gets nothing.
Origin   where a browser sends one, it must be the server itself: other sites may not ask.
body     must be application/json, or bytes where a server takes them, which a browser only sends to other sites after
         asking them.
token    compared in constant time; it comes from the environment or a file, because every user of a machine can read
         the command lines of all.
"""

from __future__ import annotations

import hmac
import ipaddress
import os
import re
import socket
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from rlvrlab.errors import UserError, quoted
from rlvrlab.http_messages import JSON, HttpError, Request

LONGEST_TOKEN = 4096
AUTHORITY = re.compile(r"(?:\[([0-9a-f:.]+)\]|([0-9a-z._-]+))(?::[0-9]{1,5})?\Z")


def allowed_hosts(listens_at: str, further: Collection[str] = ()) -> frozenset[str]:
    """Names that a Host header may have; `further` are those a user adds. IP addresses are looked at by admit_host."""
    own = {"localhost"} if is_loopback(listens_at) else {"localhost", listens_at, socket.gethostname()}
    return frozenset(name.lower() for name in (*own, *further))


def admit_host(head: Request, names: Collection[str], *, only_here: bool) -> None:
    """Refuse a Host that is none of `names`, and no address: of this machine alone where it listens `only_here`."""
    host = host_name(head.headers["host"])
    if host and (host in names or (is_loopback(host) if only_here else _address(host))):
        return
    raise HttpError(
        403, f"unexpected Host header {quoted(host, 80)}; a server allows more names with --allow-host NAME"
    )


def admit_origin(head: Request) -> None:
    """Refuse what a page of another site sends."""
    origin = head.headers.get("origin")
    if origin is not None and origin_authority(origin) != head.headers["host"].lower():
        raise HttpError(403, f"unexpected Origin header {quoted(origin, 80)}; pages of other sites may not ask")


def admit_kind(head: Request, wanted: str = JSON) -> None:
    """Refuse a body that is declared as anything but what is wanted."""
    if head.method in ("GET", "HEAD"):
        return
    kind = head.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != wanted:
        raise HttpError(415, f"Content-Type {quoted(kind, 80)}; {wanted} is needed")


def admit_token(head: Request, token: str | None) -> None:
    """Refuse a request without the token, where there is one."""
    if token and not same_token(bearer_of(head), token):
        raise HttpError(401, "a valid token is needed: Authorization: Bearer …")


def bearer_of(head: Request) -> str:
    """The token that a request brings along, or nothing."""
    scheme, _, given = head.headers.get("authorization", "").partition(" ")
    return given.strip() if scheme.lower() == "bearer" else ""


def same_token(given: str, token: str) -> bool:
    """Compared in constant time."""
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), token.encode())


def read_token(variable: str, file: Path | None) -> str | None:
    """The token from a file, else from an environment variable; None where neither is given."""
    text, where = os.environ.get(variable), variable
    if file is not None:
        where = str(file)
        try:
            with file.open(encoding="utf-8") as opened:
                text = opened.read(LONGEST_TOKEN + 1)
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"--token-file {file}: cannot be read ({error})") from None
    if text is None:
        return None
    token = text.strip()
    if not token or len(token) > LONGEST_TOKEN or not (token.isascii() and token.isprintable()) or " " in token:
        what = "is empty" if not token else f"has no token: at most {LONGEST_TOKEN} plain characters without blanks"
        raise UserError(f"{where} {what}; make one with `openssl rand -hex 24`")
    return token


def refuse_open_door(host: str, token: str | None, variable: str) -> None:
    """No server of ours is reached from other machines without a token."""
    if not is_loopback(host) and not token:
        remedy = f"set {variable} or --token-file, or stay on 127.0.0.1"
        raise UserError(f"refusing to listen on {host} without a token; {remedy}")


def is_loopback(host: str) -> bool:
    """Is it a name or an address under which only this machine can be reached?"""
    address = _address(host)
    return address.is_loopback if address else host.lower() == "localhost"


def host_name(authority: str) -> str:
    """`[::1]:80` is ::1, `Here.example:80` is here.example; nothing where it is neither a name nor an address."""
    parts = AUTHORITY.match(authority.lower())
    return (parts[1] or parts[2]) if parts else ""


def origin_authority(url: str) -> str | None:
    """Host and port of a page's origin; None where it is no address of a page, e.g. `null`."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    return parts.netloc.lower() if parts.scheme in ("http", "https") and not parts.path else None


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """None for a name, which anybody can have made lead here."""
    with suppress(ValueError):
        return ipaddress.ip_address(host)
    return None
