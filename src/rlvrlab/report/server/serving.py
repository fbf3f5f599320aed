"""Run the dashboard until it is told to stop."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from rlvrlab.errors import UserError
from rlvrlab.http_server import HttpServer, told_to_stop
from rlvrlab.report.server.app import Dashboard
from rlvrlab.report.server.guard import Guard

ADDRESS = "127.0.0.1"
"""Only this machine: from elsewhere, `ssh -L PORT:127.0.0.1:PORT` carries it."""
GRACE_S = 3.0
"""For pages that are being made when it is told to stop."""


class Address(NamedTuple):
    """Where the dashboard is."""

    url: str
    """To open in a browser; it holds the token."""
    port: int
    token: str


def serve(root: Path, port: int, token: str | None, announce: Callable[[Address], None]) -> None:
    """Listen, announce the address, serve until SIGINT or SIGTERM."""
    if not root.is_dir():
        raise UserError(f"{root}: no such folder; name the one your runs are in (a recipe's output_dir)")
    token = token or secrets.token_urlsafe(24)
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)  # a browser that leaves in the middle is no error

    async def run() -> None:
        server = create_server(root, token)
        actual = await server.start(ADDRESS, port)
        stop = asyncio.create_task(told_to_stop())
        await asyncio.sleep(0)  # signals are watched for before anybody can know the address
        announce(Address(f"http://{ADDRESS}:{actual}/?token={token}", actual, token))
        await stop
        await server.close(GRACE_S)

    asyncio.run(run())


def create_server(root: Path, token: str) -> HttpServer:
    """The dashboard of a folder behind its guard, not listening yet."""
    guard = Guard(Dashboard(root), token)
    return HttpServer(guard, guard.admit)
