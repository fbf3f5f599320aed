"""A browser's manners on nothing but the standard library: one request at a time to a dashboard in this process."""

from __future__ import annotations

import asyncio
import http.client
import json
from concurrent.futures import ThreadPoolExecutor
from email.message import Message
from pathlib import Path
from typing import Any, NamedTuple

from rlvrlab.report.server.serving import create_server


class Answer(NamedTuple):
    status_code: int
    headers: Message
    content: bytes

    @property
    def text(self) -> str:
        return self.content.decode()

    def json(self) -> Any:
        return json.loads(self.content)


class PageClient:
    """Asks the dashboard of a folder; redirects are not followed, cookies are kept."""

    def __init__(self, root: Path, token: str, headers: dict[str, str], cookies: dict[str, str] | None = None) -> None:
        self._server, self._headers = create_server(root, token), headers
        self.cookies = cookies or {}

    def get(self, path: str, headers: dict[str, str] | None = None) -> Answer:
        return self.request("GET", path, headers)

    def request(self, method: str, path: str, headers: dict[str, str] | None = None) -> Answer:
        """In a thread of its own: a browser of other tests may keep this one's event loop."""
        known = {"cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items())} if self.cookies else {}
        work = self._exchange(method, path, {**self._headers, **known, **(headers or {})})
        with ThreadPoolExecutor(1) as pool:
            answer = pool.submit(asyncio.run, work).result()
        for cookie in answer.headers.get_all("set-cookie", []):
            name, _, value = cookie.partition(";")[0].partition("=")
            self.cookies[name] = value
        return answer

    async def _exchange(self, method: str, path: str, headers: dict[str, str]) -> Answer:
        port = await self._server.start("127.0.0.1", 0)
        try:
            return await asyncio.to_thread(exchange, port, method, path, headers)
        finally:
            await self._server.close()


def exchange(port: int, method: str, path: str, headers: dict[str, str]) -> Answer:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, path, headers=headers)
        response = connection.getresponse()
        return Answer(response.status, response.headers, response.read())
    finally:
        connection.close()
