"""The dashboard's addresses.

/                          the list of runs, with search, tags and boxes to tick
/runs.json                 the same as JSON
/run/NAME                  a run's page, live
/document/NAME             the document it shows, as JSON
/events/NAME               its news (see stream.py)
/compare?run=A&run=B       two runs side by side
/file/NAME?path=P&line=N   a file of a run, as text
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from urllib.parse import quote, unquote

from rlvrlab import plain_files
from rlvrlab.errors import LabError
from rlvrlab.http_messages import Request, Response
from rlvrlab.record.files import to_json
from rlvrlab.report.page import Live, page
from rlvrlab.report.server.guard import TEXT, text_response
from rlvrlab.report.server.index import index_page
from rlvrlab.report.server.shelf import Shelf
from rlvrlab.report.server.stream import News, stream

HTML = "text/html; charset=utf-8"
LEFT_OUT = ("folder", "age_s", "quiet_s")
"""Fields of an entry that /runs.json leaves out: its place on this machine, and what changes with the clock."""
MOST_STREAMS = 64
"""Pages that may be open at once."""
MOST_COMPARED = 16
LARGEST = 1 << 20
"""Bytes of a file that are shown at once."""


class Dashboard:
    """One folder's pages; what reads the disk runs in a thread."""

    def __init__(self, root: Path) -> None:
        self.shelf, self._open = Shelf(root), 0
        self._rooms: dict[str, Callable[[Request, str, Path], Awaitable[Response]]] = {
            "run": self._run,
            "document": self._document,
            "events": self._events,
            "file": self._file,
        }

    async def __call__(self, request: Request) -> Response:
        """Find the page; where an address names a run, its folder is looked up first."""
        path = unquote(request.path)
        if path == "/":
            html, policy = index_page(self.shelf.root.name)
            return Response(html.encode(), 200, {"content-security-policy": policy}, HTML)
        if path == "/runs.json":
            entries = await asyncio.to_thread(self.shelf.entries)
            facts = [{key: value for key, value in entry.facts().items() if key not in LEFT_OUT} for entry in entries]
            return Response(to_json(facts).encode())
        if path == "/compare":  # runs, or evaluations, side by side
            names = request.arguments().get("run", [])
            if not 2 <= len(names) <= MOST_COMPARED:
                return text_response(f"Name two to {MOST_COMPARED} runs: /compare?run=A&run=B", 400)
            folders = [await asyncio.to_thread(self.shelf.folder, name) for name in names]
            known = [folder for folder in folders if folder is not None]
            return await self._page(known, None) if len(known) == len(names) else _missing(*names)
        room, _, name = path.removeprefix("/").partition("/")
        if room not in self._rooms:
            return text_response("Not Found", 404)
        folder = await asyncio.to_thread(self.shelf.folder, name)
        return _missing(name) if folder is None else await self._rooms[room](request, name, folder)

    async def _run(self, request: Request, name: str, folder: Path) -> Response:
        live = Live(*(f"/{room}/{quote(name)}" for room in ("events", "document", "file")))
        return await self._page([folder], live)

    async def _page(self, folders: list[Path], live: Live | None) -> Response:
        try:
            text = await asyncio.to_thread(lambda: page(self.shelf.gathered(folders).document, live))
            return Response(text.encode(), 200, {}, HTML)
        except LabError as error:
            return text_response(str(error), 400)

    async def _document(self, request: Request, name: str, folder: Path) -> Response:
        """What a run's page shows; 304 when it has not changed."""
        try:
            gathered = await asyncio.to_thread(self.shelf.gathered, [folder], patient=True)
        except LabError as error:
            return text_response(str(error), 400)
        tag = f'"{abs(hash(gathered.fingerprint)):x}"'
        if request.headers.get("if-none-match") == tag:
            return Response(b"", 304, {"etag": tag})
        return Response(gathered.text.encode(), 200, {"etag": tag})

    async def _events(self, request: Request, name: str, folder: Path) -> Response:
        """A run's news, until the browser hangs up."""
        if self._open >= MOST_STREAMS:
            return text_response(f"{MOST_STREAMS} pages are open already; close some", 503)
        news = News.since(self.shelf, folder, request.headers.get("last-event-id"))

        async def told() -> AsyncIterator[bytes]:
            self._open += 1  # here: a stream that nobody begins to read never comes to its end
            try:
                async for text in stream(news):
                    yield text.encode()
            finally:
                self._open -= 1

        return Response(told(), 200, {"x-accel-buffering": "no"}, "text/event-stream; charset=utf-8")

    async def _file(self, request: Request, name: str, folder: Path) -> Response:
        """A part of one of the run's files."""
        given = request.arguments()
        path, line = given.get("path", [""])[-1], given.get("line", ["1"])[-1]
        first = int(line) if line.isascii() and line.isdigit() and len(line) < 9 else 1
        try:
            return Response(await asyncio.to_thread(read_part, folder, path, first), 200, {}, TEXT)
        except Unreadable as error:
            return text_response(str(error), 404)
        except OSError as error:
            return text_response(f"{path}: cannot be read ({error.strerror})", 404)


class Unreadable(Exception):
    """No such file to show; the words say why."""


def read_part(folder: Path, name: str, line: int) -> bytes:
    """At most LARGEST bytes of a text file below `folder`, from a line on."""
    # Only what really lies below the folder: no `..`, no absolute name, no link that leads out.
    if not name or "\0" in name:
        raise Unreadable("name a file of the run")
    path = plain_files.below(folder, name)
    try:
        if path is None or not path.is_file():
            raise Unreadable(f"{name}: no such file in this run")
    except OSError:  # a folder on the way may not be entered
        raise Unreadable(f"{name}: no such file in this run") from None
    with plain_files.opened(path) as file:
        for _ in range(line - 1):
            if not file.readline(LARGEST):
                raise Unreadable(f"{name}: has no line {line}")
        data = file.read(LARGEST + 1)
    if b"\0" in data[:4096]:
        raise Unreadable(f"{name}: not a text file")
    if len(data) > LARGEST:
        data = data[:LARGEST] + f"\n… cut off after {LARGEST >> 20} MB; ?line=N goes on from a line".encode()
    return data


def _missing(*names: str) -> Response:
    return text_response(f"No such run here: {', '.join(names)}. The list is at /", 404)
