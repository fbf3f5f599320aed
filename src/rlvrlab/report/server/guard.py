"""Who may ask: only with GET, and only with the token. (Only under this machine's names: http_server.py sees to that.)

The token stops other users of this machine and their programs. It comes once in the address (`/?token=…`), is turned
into a cookie that scripts and other sites cannot use, and is gone from the address bar. The cookie holds a secret made
from the token: browsers send it to every server under 127.0.0.1, whatever its port.
"""

from __future__ import annotations

import hmac
from dataclasses import replace
from urllib.parse import parse_qsl, quote, urlencode

from rlvrlab.http_access import bearer_of, same_token
from rlvrlab.http_messages import HttpError, Request, Response
from rlvrlab.http_server import Handler

HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "x-frame-options": "DENY",
    "cache-control": "no-store",
    "content-security-policy": "frame-ancestors 'none'; base-uri 'none'; form-action 'none'; object-src 'none'",
}
"""Headers of every response; the policy applies in addition to the one that each page carries itself."""
TEXT = "text/plain; charset=utf-8"
READ_ONLY = "This server only shows: GET is all it knows."
NO_TOKEN = "The token is missing or wrong. Open the address that `rlvr serve report` printed, token included."  # noqa: S105


def text_response(words: str, status: int) -> Response:
    """One line for a person."""
    return Response(f"{words}\n".encode(), status, {}, TEXT)


class Guard:
    """Wraps the handler; whatever is refused never reaches it."""

    def __init__(self, handler: Handler, token: str) -> None:
        self._handler, self._token = handler, token
        self._secret = hmac.digest(token.encode(), b"cookie", "sha256").hex()
        name = hmac.digest(token.encode(), b"name", "sha256").hex()[:8]  # servers at other ports share the jar
        self._cookie = f"rlvr_report_{name}"

    def admit(self, request: Request) -> None:
        """Before anything of a request is kept: who may not look must not fill the memory."""
        if request.method not in ("GET", "HEAD"):
            raise Refused(READ_ONLY, 405)
        if self._asked_with_token(request) or same_token(bearer_of(request), self._token):
            return
        for part in request.headers.get("cookie", "").split(";"):  # whatever other servers have put beside ours
            name, _, value = part.strip().partition("=")
            if name == self._cookie and same_token(value, self._secret):
                return
        raise Refused(NO_TOKEN, 403)

    async def __call__(self, request: Request) -> Response:
        """The first visit, with the token in the address, is sent on to the same address without it."""
        if not self._asked_with_token(request):
            return _sealed(await self._handler(request))
        rest = urlencode([(key, value) for key, value in _pairs(request) if key != "token"])
        path = "/" + quote(request.path.lstrip("/"), safe="/%")  # never //elsewhere
        cookie = f"{self._cookie}={self._secret}; HttpOnly; Path=/; SameSite=Strict"
        headers = {"location": f"{path}?{rest}" if rest else path, "set-cookie": cookie}
        return _sealed(Response(b"", 303, headers, TEXT))

    def _asked_with_token(self, request: Request) -> bool:
        return any(key == "token" and same_token(value, self._token) for key, value in _pairs(request))


class Refused(HttpError):
    """A refusal as text instead of JSON."""

    def __init__(self, words: str, status: int) -> None:
        super().__init__(status, words)
        self.response = _sealed(text_response(words, status))


def _pairs(request: Request) -> list[tuple[str, str]]:
    try:
        return parse_qsl(request.query, keep_blank_values=True)
    except ValueError:
        return []


def _sealed(response: Response) -> Response:
    return replace(response, headers={**HEADERS, **response.headers})
