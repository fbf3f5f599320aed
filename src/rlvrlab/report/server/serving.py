"""Run the dashboard until it is told to stop."""

from __future__ import annotations

import logging
import secrets
import socket
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from rlvrlab.errors import UserError

ADDRESS = "127.0.0.1"
"""Only this machine: from elsewhere, `ssh -L PORT:127.0.0.1:PORT` carries it."""


class Address(NamedTuple):
    """Where the dashboard is."""

    url: str
    """With the token."""
    port: int
    token: str


def serve(root: Path, port: int, token: str | None, announce: Callable[[Address], None]) -> None:
    """Listen, announce the address, serve until SIGINT or SIGTERM."""
    try:
        import uvicorn

        from rlvrlab.report.server.app import create_app
    except ImportError as error:
        raise UserError(f"serve report: needs {error.name}; `pip install 'rlvrlab[report]'`") from None
    if not root.is_dir():
        raise UserError(f"{root}: no such folder; name the one your runs are in (a recipe's output_dir)")
    token = token or secrets.token_urlsafe(24)
    with _listening(port) as door:
        server: uvicorn.Server
        app = create_app(root, token, lambda: server.should_exit)
        config = uvicorn.Config(app, log_level="critical", access_log=False, server_header=False,
                                timeout_graceful_shutdown=3, lifespan="off")  # fmt: skip
        server = uvicorn.Server(config)
        logging.getLogger("asyncio").setLevel(logging.CRITICAL)  # a browser that leaves in the middle is no error
        actual = door.getsockname()[1]
        announce(Address(f"http://{ADDRESS}:{actual}/?token={token}", actual, token))
        server.run(sockets=[door])


def _listening(port: int) -> socket.socket:
    door = socket.socket()
    door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        door.bind((ADDRESS, port))
        door.listen()  # before the address is told: whoever comes early waits a moment
    except (OSError, OverflowError) as error:
        door.close()
        why = getattr(error, "strerror", None) or error
        raise UserError(f"cannot listen at {ADDRESS}:{port} ({why}); choose another --port, 0 for any") from None
    return door
