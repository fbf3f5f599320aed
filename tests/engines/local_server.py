"""The laboratory's own model server in a thread of the test, with a hook that spoils answers and a switch."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

from rlvrlab.engines.hf import Hf
from rlvrlab.engines.hf.serving import ModelServer
from rlvrlab.http_messages import Request, Response
from rlvrlab.http_server import HttpServer

Spoil = Callable[[dict[str, Any], dict[str, Any], int], Any]
"""(request body, right answer, number of the request) -> what is answered instead; None hangs up."""


class LocalServer:
    """Serves a model folder; `spoil` sees every answer to token prompts."""

    def __init__(self, model: str, largest_rank: int = 8) -> None:
        self.server = ModelServer(Hf(model, device="cpu"), "base", largest_rank)
        self.spoil: Spoil = lambda body, right, number: right
        self.mute = False
        """Hang up on everyone, also on checks."""
        self.asked: list[dict[str, Any]] = []
        self.loaded: list[str] = []
        self._inner = self.server.answer
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> LocalServer:
        self._thread.start()
        self.revive()
        return self

    def __exit__(self, *_: object) -> None:
        self.die()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.port}/v1"

    @property
    def adapters(self) -> list[str]:
        return list(self.server.merging.adapters)

    def revive(self) -> None:
        """Listen, at the same port as before; adapters are forgotten, as by a new process."""
        for name in self.adapters:
            self.server.merging.drop(name)
        self.server.http = HttpServer(self._answer)
        self._running = asyncio.run_coroutine_threadsafe(self.server.serve("127.0.0.1", self.server.port), self._loop)
        until = time.monotonic() + 60
        while time.monotonic() < until:
            if self.server.port and self._listens():
                return
            time.sleep(0.01)
        raise AssertionError("the server does not start")

    def _listens(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.server.port), 1.0).close()
        except OSError:
            return False
        return True

    def die(self) -> None:
        """Stop listening and cut every connection."""
        asyncio.run_coroutine_threadsafe(self._hang_up(), self._loop).result(60)
        self._running.cancel()
        asyncio.run_coroutine_threadsafe(asyncio.sleep(0.05), self._loop).result(60)

    async def _hang_up(self) -> None:
        await self.server.http.close()
        for _ in range(50):  # turns of the loop: connections accepted a moment ago get their tasks only now
            await asyncio.sleep(0)
        await self.server.http.close()

    async def _answer(self, request: Request) -> Response:
        if self.mute:
            raise ConnectionAbortedError
        response = await self._inner(request)
        if request.path.endswith("load_lora_adapter") and "unload" not in request.path:
            self.loaded.append(request.json()["lora_name"])
        if request.path != "/v1/completions" or not isinstance(request.json()["prompt"], list):
            return response
        self.asked.append(request.json())
        answer = self.spoil(request.json(), json.loads(response.body), len(self.asked) - 1)
        if answer is None:
            raise ConnectionAbortedError
        return Response.of_json(answer)
