"""An OpenAI-compatible server with scripted faults, in a thread of its own, on nothing but the standard library."""

from __future__ import annotations

import asyncio
import json
import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

Body = dict[str, Any]
Act = Callable[["FaultyServer", Body, int], "bytes | None"]
"""(server, request body, its number from 0) -> the bytes to answer; None hangs; b"" closes without an answer."""


def http(status: int, content: Any, *, declared: int | None = None, **headers: str) -> bytes:
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    extra = "".join(f"{name.replace('_', '-')}: {text}\r\n" for name, text in headers.items())
    length = len(body) if declared is None else declared
    return (
        f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n{extra}\r\n".encode()
        + body
    )


def chat(text: str, model: str = "m", finish: str = "stop", tokens: int = 3, **choice: Any) -> Body:
    message = {"role": "assistant", "content": text}
    usage = {"prompt_tokens": 5, "completion_tokens": tokens, "total_tokens": 5 + tokens}
    choices = [{"index": 0, "message": message, "finish_reason": finish, **choice}]
    return {"object": "chat.completion", "model": model, "choices": choices, "usage": usage}


def question(body: Body) -> str:
    return body["messages"][0]["content"]


class FaultyServer:
    """Answers by `act`; the client's greeting and /v1/models are answered properly unless told otherwise."""

    def __init__(self, act: Act, models: list[str] | None = None) -> None:
        self.act, self.requests, self.bodies = act, 0, []
        self.models: Any = ["m"] if models is None else models
        self.root = "/weights"
        self.greeting: Act = lambda server, body, n: http(200, chat("Blue.", server.models[0]))
        self.connections = 0
        self._hold_at, self._go_on = math.inf, threading.Event()
        self.dead = threading.Event()
        """Nobody listens any more; wait for it before a revival."""
        self.headers: list[dict[str, str]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        """Of all connections until the server stops: one that still has something to send closes late."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> FaultyServer:
        self._thread.start()
        self._run(self.listen())
        return self

    def __exit__(self, *_: object) -> None:
        self._run(self.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def die(self) -> None:
        """From outside or inside: stop listening and cut every connection."""
        self._loop.call_soon_threadsafe(lambda: self._loop.create_task(self.stop()))

    def revive(self) -> None:
        self._run(self.listen(self.port))

    @contextmanager
    def held(self, after: int) -> Iterator[None]:
        """After this many more requests all wait for the end of the block: whoever asks cannot finish meanwhile."""
        self._go_on.clear()
        self._hold_at = self.requests + after
        try:
            yield
        finally:
            self._hold_at = math.inf
            self._go_on.set()

    async def listen(self, port: int = 0) -> None:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", port)
        self.port: int = self._server.sockets[0].getsockname()[1]
        self.dead.clear()

    async def stop(self) -> None:
        self._server.close()
        me = asyncio.current_task()
        for _ in range(50):  # turns of the loop, not time: connections accepted a moment ago have no task yet
            await asyncio.sleep(0)
        for task in [task for task in self._tasks if task is not me]:
            task.cancel()
        await asyncio.gather(*(self._tasks - {me}), return_exceptions=True)
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()
        for _ in range(3):  # a transport tells in the next turn that it is gone
            await asyncio.sleep(0)
        self.dead.set()

    def _run(self, work: Any) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._writers.add(writer)
        self.connections += 1
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                while await self._exchange(reader, writer):
                    pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = head.split("\r\n")
        headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines if line)}
        self.headers.append(headers)
        body = json.loads(await reader.readexactly(int(headers.get("content-length", 0))) or b"{}")
        answer = self._answer(first.split(" ")[1], body)
        if answer is None:
            await asyncio.sleep(3600)
        writer.write(answer or b"")
        await writer.drain()
        return bool(answer) and b"Connection: close" not in answer

    def _answer(self, path: str, body: Body) -> bytes | None:
        if path == "/v1/models":
            if isinstance(self.models, bytes):
                return self.models
            return http(200, {"data": [{"id": name, "object": "model", "root": self.root} for name in self.models]})
        if "messages" in body and question(body) == "Name a colour.":
            return self.greeting(self, body, self.requests)
        self.requests += 1
        self.bodies.append(body)
        if self.requests > self._hold_at:
            self._go_on.wait(300)
        return self.act(self, body, self.requests - 1)
