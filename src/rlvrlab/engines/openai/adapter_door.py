"""The adapter door: takes a trainer's LoRA adapters for model servers of this machine that do not see its folder.

GET  /health
POST /adapters                       {"name", "config", "size", "sha256"} -> {"folder"} where it is here, else {"have"}
POST /pieces?name=&sha256=&start=    bytes of its safetensors from `start` on -> {"have"}, and {"folder"} when all are
POST /forget                         {"name"}

`rlvr serve model PATH --adapters RANK --receive PORT` starts one beside its servers. They load by path from its folder,
which is private, and removed when the door ends. It runs no code of an adapter and reads none of its numbers.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from rlvrlab.engines.openai.adapter_files import Announced, checked_name
from rlvrlab.engines.openai.adapter_shelf import Shelf
from rlvrlab.engines.openai.launch import TOKEN_ENV
from rlvrlab.errors import UserError, quoted
from rlvrlab.fate import share_fate
from rlvrlab.http_access import admit_token, read_token, refuse_open_door
from rlvrlab.http_messages import DIGITS, HttpError, Request
from rlvrlab.http_server import HttpServer, JsonRoutes, told_to_stop

ANNOUNCE, PIECES, FORGET = "/adapters", "/pieces", "/forget"
GRACE_S = 5.0


class AdapterDoor:
    """The requests above, on a shelf in `home`."""

    def __init__(self, home: Path, token: str | None = None, hosts: Collection[str] = ()) -> None:
        self.shelf, self.token, self.port = Shelf(home), token, 0
        answer = JsonRoutes(
            {
                ("GET", "/health"): lambda request: {},
                ("POST", ANNOUNCE): self._announce,
                ("POST", PIECES): self._piece,
                ("POST", FORGET): self._forget,
            }
        )
        self.http = HttpServer(answer, lambda head: admit_token(head, self.token), hosts, raw={PIECES})

    async def start(self, host: str, port: int) -> None:
        """Listen; `port` becomes the real one when it was 0."""
        refuse_open_door(host, self.token, TOKEN_ENV)
        self.port = await self.http.start(host, port)

    async def _announce(self, request: Request) -> dict[str, Any]:
        return await _shelved(lambda form: self.shelf.begin(Announced.of(form)), request.json())

    async def _piece(self, request: Request) -> dict[str, Any]:
        name, sha256, start = (_only(request, key) for key in ("name", "sha256", "start"))
        if not DIGITS.match(start):
            raise UserError(f"start: {quoted(start, 40)} is no number of bytes")
        if not request.body:
            raise UserError("a piece without bytes; send at least one")
        return await _shelved(self.shelf.add, checked_name(name), sha256, int(start), request.body)

    async def _forget(self, request: Request) -> dict[str, Any]:
        await asyncio.to_thread(self.shelf.forget, checked_name(request.json().get("name")))
        return {}


async def _shelved(work: Callable[..., Path | int], *given: Any) -> dict[str, Any]:
    """In a thread, which goes on to its end also where the caller hangs up: no piece is half there."""
    try:
        got = await asyncio.to_thread(work, *given)
    except LookupError as error:
        raise HttpError(409, str(error.args[0])) from None
    except OSError as error:
        words = error.strerror or str(error)
        raise HttpError(507, f"the adapter cannot be kept here ({words}); make room for temporary files") from None
    return {"folder": str(got)} if isinstance(got, Path) else {"have": got}


def _only(request: Request, key: str) -> str:
    given = request.arguments().get(key, [])
    if len(given) != 1:
        raise UserError(f"{key}: once in the address, ?{key}=…")
    return given[0]


def main() -> None:
    """Until told to stop, or until the process that started it is gone."""
    parser = argparse.ArgumentParser(prog="rlvr serve model --receive")
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--allow-host", action="append", default=[])
    parser.add_argument("--parent", type=int, required=True)
    given = parser.parse_args()
    token = read_token(TOKEN_ENV, None)

    async def run() -> None:
        stop = asyncio.create_task(told_to_stop())
        await asyncio.sleep(0)  # from now on a signal is an orderly end
        if not share_fate(given.parent, signal.SIGTERM):
            sys.exit("the process that started this one is gone")
        home = Path(tempfile.mkdtemp(prefix="rlvr_adapters_"))
        try:
            door = AdapterDoor(home, token, given.allow_host)
            await door.start(given.host, given.port)
            await stop
            await door.http.close(GRACE_S)
        finally:
            shutil.rmtree(home, ignore_errors=True)

    asyncio.run(run())


if __name__ == "__main__":
    main()
