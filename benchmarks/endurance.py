"""Do the servers stay the same over many requests?

    python benchmarks/endurance.py judge [--requests 100000] [--seconds 900] [--clients 4] [--json]
    python benchmarks/endurance.py model [--requests 100000] [--seconds 900] [--clients 4] [--json]

`rlvr serve judge`, or `rlvr serve model nano`, in a process of its own, asked by several threads over kept
connections. Told are the requests that were answered rightly, those that were not, and the memory of the server and
all its children: the median of every tenth of the way. Growth is that of the last tenth over the second, when caches
are warm.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import urlsplit

RLVR = [sys.executable, "-m", "rlvrlab"]
SERVERS = {
    "judge": (["serve", "judge", "--port", "0", "--workers", "2", "--json"], "/run_code"),
    "model": (["serve", "model", "nano", "--port", "0", "--json"], "/v1/completions"),
}
TENTHS = 10
ALLOWED = 0.05
"""What is promised: the memory grows by at most so much."""


def question(model: str | None, number: int) -> dict[str, Any]:
    """A program for the judge; where there is a model, a prompt for it."""
    if model is None:
        return {"code": f"print({number} + 1)", "language": "python"}
    return {"model": model, "prompt": f"{number % 90} 1 = {number % 90 + 1}\n", "max_tokens": 4, "seed": number}


def is_right(kind: str, number: int, answer: dict[str, Any]) -> bool:
    if kind == "judge":
        return answer["run_result"]["stdout"].strip() == str(number + 1)
    return isinstance(answer["choices"][0]["text"], str)


class Clients:
    """Threads that ask one question after the other until the questions or the time are over."""

    def __init__(self, kind: str, ready: dict[str, Any], requests: int, seconds: float) -> None:
        url = ready["url"] if kind == "judge" else ready["urls"][0]
        self._kind, self._model = kind, ready.get("model")
        self._address, self._path = urlsplit(url), SERVERS[kind][1]
        self._numbers, self._until = iter(range(requests)), time.monotonic() + seconds
        self._taking = threading.Lock()
        self.counts: Counter[str] = Counter()

    def _next(self) -> int | None:
        with self._taking:
            return next(self._numbers, None) if time.monotonic() < self._until else None

    def ask(self) -> None:
        connection = http.client.HTTPConnection(self._address.hostname or "", self._address.port, timeout=600)
        while (number := self._next()) is not None:
            try:
                body = json.dumps(question(self._model, number))
                connection.request("POST", self._path, body, {"Content-Type": "application/json"})
                answer = connection.getresponse()
                content = json.loads(answer.read())
                told = f"status {answer.status}"
                if answer.status == 200:
                    told = "right" if is_right(self._kind, number, content) else "wrong"
            except (OSError, http.client.HTTPException, ValueError, KeyError) as error:
                told = f"lost: {type(error).__name__}"
                connection.close()
            with self._taking:
                self.counts[told] += 1


def _children(task: Path) -> list[str]:
    """Of one thread; a process has those of all its threads."""
    try:
        return (task / "children").read_text().split()
    except OSError:
        return []


def memory_mb(pid: int) -> float:
    """Of the process and everything below it; pages they share count once for each of them."""
    children = [child for task in Path(f"/proc/{pid}/task").iterdir() for child in _children(task)]
    own = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") / 1e6
    total = own
    for child in map(int, children):
        try:
            total += memory_mb(child)
        except (FileNotFoundError, ProcessLookupError):
            continue
    return total


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=SERVERS)
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=900.0)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    server = subprocess.Popen([*RLVR, *SERVERS[given.kind][0]], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        clients = Clients(given.kind, json.loads(server.stdout.readline()), given.requests, given.seconds)
        threads = [threading.Thread(target=clients.ask) for _ in range(given.clients)]
        for thread in threads:
            thread.start()
        started, samples = time.monotonic(), [[] for _ in range(TENTHS)]
        while any(thread.is_alive() for thread in threads):
            time.sleep(0.5)
            done = max(sum(clients.counts.values()) / given.requests, (time.monotonic() - started) / given.seconds)
            samples[min(TENTHS - 1, int(TENTHS * done))].append(memory_mb(server.pid))
        seconds = round(time.monotonic() - started)
    finally:
        server.terminate()
        server.wait()
    memory = [round(median(tenth), 1) for tenth in samples if tenth]
    found = {"kind": given.kind, "answered": dict(clients.counts), "seconds": seconds, "memory_mb": memory}
    found["growth"] = round(memory[-1] / memory[min(1, len(memory) - 1)] - 1, 4)
    print(json.dumps(found) if given.json else found)
    return 0 if set(clients.counts) == {"right"} and found["growth"] <= ALLOWED else 1


if __name__ == "__main__":
    raise SystemExit(main())
