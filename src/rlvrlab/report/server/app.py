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

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from rlvrlab.errors import LabError
from rlvrlab.record.files import to_json
from rlvrlab.report.server.files import Refused, read_part
from rlvrlab.report.server.guard import Guard
from rlvrlab.report.server.index import index_page
from rlvrlab.report.server.shelf import Shelf
from rlvrlab.report.server.stream import News, stream

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from rlvrlab.report.page import Live

LEFT_OUT = ("folder", "age_s", "quiet_s")
"""Of a list's entry: where this machine keeps it, and what changes with the clock."""
MOST_STREAMS = 64
"""Pages that may be open at once."""
MOST_COMPARED = 16


class Dashboard:
    """One folder's pages."""

    def __init__(self, root: Path, ended: Callable[[], bool] = lambda: False) -> None:
        self.shelf, self._ended, self._open = Shelf(root), ended, 0

    async def index(self, request: Request) -> Response:
        """The page that lists; its script fetches the list."""
        from starlette.responses import HTMLResponse

        html, policy = index_page(self.shelf.root.name)
        return HTMLResponse(html, headers={"content-security-policy": policy})

    async def runs(self, request: Request) -> Response:
        """Every run, in short."""
        from starlette.concurrency import run_in_threadpool
        from starlette.responses import Response

        entries = await run_in_threadpool(self.shelf.entries)
        facts = [{key: value for key, value in entry.facts().items() if key not in LEFT_OUT} for entry in entries]
        return Response(to_json(facts), media_type="application/json")

    async def run(self, request: Request) -> Response:
        """One run's page."""
        from rlvrlab.report.page import Live

        name = request.path_params["name"]
        folder = await self._folder(name)
        if folder is None:
            return _missing(name)
        live = Live(*(f"/{room}/{quote(name)}" for room in ("events", "document", "file")))
        return await self._page([folder], live)

    async def compare(self, request: Request) -> Response:
        """Two or more runs, or evaluations, side by side."""
        names = request.query_params.getlist("run")
        if not 2 <= len(names) <= MOST_COMPARED:
            return _words(f"Name two to {MOST_COMPARED} runs: /compare?run=A&run=B", 400)
        folders = [await self._folder(name) for name in names]
        known = [folder for folder in folders if folder is not None]
        return await self._page(known, None) if len(known) == len(names) else _missing(*names)

    async def document(self, request: Request) -> Response:
        """What a run's page shows; 304 when it has not changed."""
        from starlette.concurrency import run_in_threadpool
        from starlette.responses import Response

        name = request.path_params["name"]
        folder = await self._folder(name)
        if folder is None:
            return _missing(name)
        try:
            gathered = await run_in_threadpool(self.shelf.gathered, [folder], patient=True)
        except LabError as error:
            return _words(str(error), 400)
        tag = f'"{abs(hash(gathered.fingerprint)):x}"'
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers={"etag": tag})
        return Response(gathered.text, media_type="application/json", headers={"etag": tag})

    async def events(self, request: Request) -> Response:
        """A run's news."""
        from starlette.responses import StreamingResponse

        name = request.path_params["name"]
        folder = await self._folder(name)
        if folder is None:
            return _missing(name)
        if self._open >= MOST_STREAMS:
            return _words(f"{MOST_STREAMS} pages are open already; close some", 503)
        news = News.since(self.shelf, folder, request.headers.get("last-event-id"))

        async def told() -> AsyncIterator[str]:
            self._open += 1  # here: a stream that nobody begins to read never comes to its end
            try:
                async for text in stream(news, self._ended):
                    if await request.is_disconnected():
                        break
                    yield text
            finally:
                self._open -= 1

        return StreamingResponse(told(), media_type="text/event-stream", headers={"x-accel-buffering": "no"})

    async def file(self, request: Request) -> Response:
        """A part of one of the run's files."""
        from starlette.concurrency import run_in_threadpool
        from starlette.responses import Response

        name, path = request.path_params["name"], request.query_params.get("path", "")
        folder = await self._folder(name)
        if folder is None:
            return _missing(name)
        line = request.query_params.get("line", "1")
        first = int(line) if line.isascii() and line.isdigit() and len(line) < 9 else 1
        try:
            data = await run_in_threadpool(read_part, folder, path, first)
        except Refused as error:
            return _words(str(error), 404)
        except OSError as error:
            return _words(f"{path}: cannot be read ({error.strerror})", 404)
        return Response(data, media_type="text/plain; charset=utf-8")

    async def _folder(self, name: str) -> Path | None:
        """Not on the loop: the folder of runs may have to be looked through again."""
        from starlette.concurrency import run_in_threadpool

        return await run_in_threadpool(self.shelf.folder, name)

    async def _page(self, folders: list[Path], live: Live | None) -> Response:
        from starlette.concurrency import run_in_threadpool
        from starlette.responses import HTMLResponse

        from rlvrlab.report.page import page

        def make() -> str:
            return page(self.shelf.gathered(folders).document, live)

        try:
            return HTMLResponse(await run_in_threadpool(make))
        except LabError as error:
            return _words(str(error), 400)


def create_app(root: Path, token: str, ended: Callable[[], bool] = lambda: False) -> Guard:
    """The application with its guard around it."""
    from starlette.applications import Starlette
    from starlette.routing import Route

    board = Dashboard(root, ended)
    routes = [
        Route("/", board.index),
        Route("/runs.json", board.runs),
        Route("/run/{name:path}", board.run),
        Route("/document/{name:path}", board.document),
        Route("/events/{name:path}", board.events),
        Route("/compare", board.compare),
        Route("/file/{name:path}", board.file),
    ]
    return Guard(Starlette(routes=routes), token)


def _words(text: str, code: int) -> Response:
    from starlette.responses import PlainTextResponse

    return PlainTextResponse(text + "\n", status_code=code)


def _missing(*names: str) -> Response:
    return _words(f"No such run here: {', '.join(names)}. The list is at /", 404)
