"""Who may ask: only this machine's names as Host, only GET, only with the token.

The Host check stops a foreign page whose name was pointed at 127.0.0.1; the token stops other users of this machine and
their programs. It comes once in the address (`/?token=…`), is turned into a cookie that scripts and other sites cannot
use, and is gone from the address bar.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

HOSTS = ("127.0.0.1", "localhost", "[::1]")
"""Any port: `ssh -L` may show this server under another one."""
HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "x-frame-options": "DENY",
    "cache-control": "no-store",
}
POLICY = "frame-ancestors 'none'; base-uri 'none'; form-action 'none'; object-src 'none'"
"""Beside the policy that each page carries in itself."""
REFUSALS = {
    405: "This server only shows: GET is all it knows.",
    421: "This server answers only to 127.0.0.1 or localhost.",
    403: "The token is missing or wrong. Open the address that `rlvr serve report` printed, token included.",
}


class Guard:
    """Wraps the application; whatever is refused never reaches it."""

    def __init__(self, app: ASGIApp, token: str, hosts: Iterable[str] = HOSTS) -> None:
        self._app, self._token, self._hosts = app, token, frozenset(hosts)
        self._cookie = f"rlvr_report_{hashlib.sha256(token.encode()).hexdigest()[:8]}"  # cookies know no ports

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check, then pass on."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        sealed = _sealed(send)
        headers = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
        if _host(headers.get(b"host", "")) not in self._hosts:
            await _refuse(421, scope, receive, sealed)
        elif scope["method"] not in ("GET", "HEAD"):
            await _refuse(405, scope, receive, sealed)
        elif self._asked_with_token(scope):
            await self._enter(scope, receive, sealed)
        elif self._knows(headers):
            await self._app(scope, receive, sealed)
        else:
            await _refuse(403, scope, receive, sealed)

    def _is_token(self, text: str) -> bool:
        return hmac.compare_digest(text.encode(), self._token.encode())

    def _asked_with_token(self, scope: Scope) -> bool:
        return any(key == "token" and self._is_token(value) for key, value in _query(scope))

    def _knows(self, headers: dict[bytes, str]) -> bool:
        word, _, given = headers.get(b"authorization", "").partition(" ")
        if word.lower() == "bearer" and self._is_token(given.strip()):
            return True
        try:
            jar = SimpleCookie(headers.get(b"cookie", ""))
        except CookieError:
            return False
        return self._cookie in jar and self._is_token(jar[self._cookie].value)

    async def _enter(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Keep the token as a cookie and go to the same address without it."""
        from starlette.responses import RedirectResponse

        rest = urlencode([(key, value) for key, value in _query(scope) if key != "token"])
        path = "/" + scope["path"].lstrip("/")  # never //elsewhere
        response = RedirectResponse(f"{path}?{rest}" if rest else path, status_code=303)
        response.set_cookie(self._cookie, self._token, httponly=True, samesite="strict", path="/")
        await response(scope, receive, send)


def _query(scope: Scope) -> list[tuple[str, str]]:
    return parse_qsl(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True)


def _host(value: str) -> str:
    """Without its port."""
    name, colon, port = value.rpartition(":")
    return (name if colon and port.isdigit() else value).lower()


async def _refuse(code: int, scope: Scope, receive: Receive, send: Send) -> None:
    from starlette.responses import PlainTextResponse

    await PlainTextResponse(REFUSALS[code] + "\n", status_code=code)(scope, receive, send)


def _sealed(send: Send) -> Send:
    """Every answer carries the headers."""

    async def sealed(message: Message) -> None:
        if message["type"] == "http.response.start":
            extra = {**HEADERS, "content-security-policy": POLICY}
            present = {name.lower() for name, _ in message["headers"]}
            added = [(k.encode(), v.encode()) for k, v in extra.items() if k.encode() not in present]
            message = {**message, "headers": [*message["headers"], *added]}
        await send(message)

    return sealed
