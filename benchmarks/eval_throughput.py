"""Requests per second of a whole evaluation (asking, judging, keeping) against a server that answers at once:

    python benchmarks/eval_throughput.py [--problems N] [--rounds R] [--json]

The server is a process of its own that knows the right answer to every other problem. Measured: `evaluate` on
Countdown with 3 and 4 numbers, EVAL@1, 64 requests abreast, every sample appended to samples.jsonl; wall seconds, and
CPU seconds of this process. For comparison: the same requests through httpx, where it is installed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from rlvrlab.engines.openai import Servers
from rlvrlab.envs.countdown import Countdown
from rlvrlab.evals.answering import ServerAnswerer
from rlvrlab.evals.evaluate import evaluate
from rlvrlab.evals.protocol import eval_at_1
from rlvrlab.record.files import Lines

MODEL = "instant"
CONCURRENCY = 64
TARGET = 500
OURS = "evaluation, judged and kept"


def answer_of(text: str) -> bytes:
    message = {"role": "assistant", "content": text}
    content = {
        "id": "x",
        "object": "chat.completion",
        "model": MODEL,
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 80, "completion_tokens": 24, "total_tokens": 104},
    }
    body = json.dumps(content).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body


def problems(size: int):
    return Countdown().problems("test", size, 0)


async def serve(size: int) -> None:
    env = Countdown()
    known = {p.prompt: env.gold(p) for i, p in enumerate(problems(size)) if i % 2 == 0}
    models = json.dumps({"object": "list", "data": [{"id": MODEL, "object": "model"}]}).encode()
    listing = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(models) + models

    class Instant(asyncio.Protocol):
        def connection_made(self, transport) -> None:
            self.transport, self.data = transport, b""

        def data_received(self, data: bytes) -> None:
            self.data += data
            while (end := self.data.find(b"\r\n\r\n")) >= 0:
                head = self.data[:end].lower()
                size = int(head.partition(b"content-length:")[2].split(b"\r\n")[0] or 0)
                if len(self.data) < end + 4 + size:
                    return
                body, self.data = self.data[end + 4 : end + 4 + size], self.data[end + 4 + size :]
                if not body:
                    self.transport.write(listing)
                    continue
                prompt = json.loads(body)["messages"][0]["content"]
                self.transport.write(answer_of(known.get(prompt) or "<think>hm</think><answer>1+2</answer>"))

    server = await asyncio.get_running_loop().create_server(Instant, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


class Kept:
    """As record/evaluation.py keeps them: one line per sample, written at once."""

    def __init__(self, path: Path) -> None:
        self._lines = Lines(path)

    def rows(self) -> list:
        return []

    def append(self, rows) -> None:
        for row in rows:
            self._lines.append(row)


def measured(url: str, asked) -> dict:
    with tempfile.TemporaryDirectory() as folder, Servers([url], concurrency=CONCURRENCY) as servers:
        wall, cpu = time.perf_counter(), time.process_time()
        found = evaluate(
            ServerAnswerer(servers), Countdown(), asked, eval_at_1(), store=Kept(Path(folder) / "samples.jsonl")
        )
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    accuracy = found.accuracy()
    assert accuracy.judged == len(asked) and 0.45 < accuracy.value < 0.55, accuracy
    return {"requests_per_s": len(asked) / wall, "cpu_ms_per_request": cpu / len(asked) * 1e3}


async def through_httpx(url: str, asked, shared: bool) -> dict:
    import httpx

    places = CONCURRENCY if shared else 1
    limits = httpx.Limits(max_connections=places, max_keepalive_connections=places)
    clients = [
        httpx.AsyncClient(limits=limits, timeout=None, trust_env=False) for _ in range(1 if shared else CONCURRENCY)
    ]
    waiting = iter(asked)

    async def work(client) -> None:
        for problem in waiting:
            body = {"model": MODEL, "messages": [{"role": "user", "content": problem.prompt}], "max_tokens": 2048}
            (await client.post(f"{url}/v1/chat/completions", json=body)).json()

    wall, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(work(clients[i % len(clients)]) for i in range(CONCURRENCY)))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    for client in clients:
        await client.aclose()
    return {"requests_per_s": len(asked) / wall, "cpu_ms_per_request": cpu / len(asked) * 1e3}


def figures_of(size: int, rounds: int) -> dict[str, dict]:
    """Start the server, evaluate, and for comparison ask alone; the best of `rounds`."""
    asked = problems(size)
    server = subprocess.Popen([sys.executable, __file__, "--serve", str(size)], stdout=subprocess.PIPE)
    try:
        url = f"http://127.0.0.1:{int(server.stdout.readline())}"
        figures = {OURS: max((measured(url, asked) for _ in range(rounds)), key=lambda one: one["requests_per_s"])}
        with suppress(ImportError):
            few = asked[: max(64, size // 6)]
            figures["httpx, one client, asking only"] = asyncio.run(through_httpx(url, few, shared=True))
            figures["httpx, a client per connection, asking only"] = asyncio.run(through_httpx(url, few, shared=False))
        return figures
    finally:
        server.terminate()
        server.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        asyncio.run(serve(given.serve))
        return
    figures = figures_of(given.problems, given.rounds)
    if given.json:
        print(json.dumps(figures, indent=2))
        return
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    for name, one in figures.items():
        print(f"{name:46} {one['requests_per_s']:8.0f} requests/s {one['cpu_ms_per_request']:8.2f} ms CPU each")
    reached = figures[OURS]["requests_per_s"]
    print(f"target {TARGET} requests/s: {'reached' if reached >= TARGET else 'MISSED'}")


if __name__ == "__main__":
    main()
