"""Judging and evaluating at scale:

    python benchmarks/scale.py judge [--requests 1000] [--clients 10] [--servers 1] [--fleet 1] [--json]
    python benchmarks/scale.py flat [--requests 20000] [--json]
    python benchmarks/scale.py ray [--problems 200] [--workers 2] [--json]

judge: `rlvr serve judge` in processes of their own gets all requests at once, from so many independent clients. Lost is
what came back without a verdict; latencies are what a client waits, queue and retries included; the queue's fill, the
refusals, descriptors and memory are the servers' own. Distinct programs, so nothing is remembered. With --fleet N each
address has up to N servers behind it, and the memory is that of the process in front of them.
flat: the same requests to one server in ten equal waves, with its memory and descriptors after each; what grows from
wave to wave leaks.
ray: the same evaluation of the toy engine in one process and over Ray workers on this machine; the results must agree.
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
import urllib.request
from pathlib import Path

from rlvrlab.judge.fusion.client import FusionClient
from rlvrlab.judge.statistics import percentile
from rlvrlab.judge.tasks import Call, CallsTask

RLVR = [sys.executable, "-c", "from rlvrlab.cli import main; main()"]
TASK = CallsTask("double", tuple(Call((x,), 2 * x) for x in range(5)))


class Server:
    """One judge server and what it says of itself."""

    def __init__(self, queue: int, fleet: int = 1) -> None:
        command = [*RLVR, "serve", "judge", "--port", "0", "--queue", str(queue), "--servers", str(fleet), "--json"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.url = json.loads(self.process.stdout.readline())["url"]

    def facts(self) -> dict:
        with urllib.request.urlopen(f"{self.url}/v1/load", timeout=60) as answer:
            return json.loads(answer.read())

    def memory_mb(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) / 1024

    def resident_mb(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) / 1024

    def files(self) -> int:
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))


def program(i: int) -> str:
    return f"def double(x):\n    return {'2 * x' if i % 3 else 'x'}  # {i}"


async def load(urls: list[str], requests: int, clients: int, first: int = 0) -> tuple[list[float], int, int]:
    """Waiting times in ms, how many came back without a verdict, and how many with a wrong one."""
    asking = [FusionClient(tuple(urls), concurrency=requests) for _ in range(clients)]
    waited: list[float] = []
    lost = wrong = 0

    async def one(i: int) -> None:
        nonlocal lost, wrong
        started = time.perf_counter()
        verdict = await asking[i % clients].judge(program(i), TASK)
        waited.append(1000 * (time.perf_counter() - started))
        lost += verdict.correct is None
        wrong += verdict.correct is not None and verdict.correct != bool(i % 3)

    await asyncio.gather(*(one(i) for i in range(first, first + requests)))
    for client in asking:
        await client.close()
    return waited, lost, wrong


def judge(given: argparse.Namespace) -> dict:
    servers = [Server(given.queue, given.fleet) for _ in range(given.servers)]
    try:
        asyncio.run(load([one.url for one in servers], 20, 1))
        idle_files = [one.files() for one in servers]
        started, spent = time.perf_counter(), time.process_time()
        waited, lost, wrong = asyncio.run(load([one.url for one in servers], given.requests, given.clients))
        wall, spent = time.perf_counter() - started, time.process_time() - spent
        facts = [one.facts() for one in servers]
        time.sleep(1.5)
        left = [one.files() - before for one, before in zip(servers, idle_files, strict=True)]
        memory = [round(one.memory_mb()) for one in servers]
    finally:
        for one in servers:
            one.process.terminate()
            one.process.wait()
    waited.sort()
    return {
        "requests": given.requests,
        "clients": given.clients,
        "servers": given.servers,
        **({"most_servers_behind_one_address": max(one["most_servers"] for one in facts)} if given.fleet > 1 else {}),
        "lost": lost + given.requests - len(waited),
        "wrong": wrong,
        **{f"p{p}_ms": round(percentile(waited, p / 100), 1) for p in (50, 95, 99)},
        "requests_per_s": round(given.requests / wall, 1),
        "client_cpu_ms_each": round(1000 * spent / given.requests, 2),
        "queue": given.queue,
        "most_in_queue": max(one["most_load"] for one in facts),
        "turned_away": sum(one["refused"] for one in facts),
        "server_peak_mb": max(memory),
        "descriptors_left_open": max(left),
    }


def flat(given: argparse.Namespace) -> dict:
    server, each = Server(given.queue), given.requests // 10
    memory, files, lost, wrong = [], [], 0, 0
    try:
        for wave in range(10):
            waited, unjudged, mistaken = asyncio.run(load([server.url], each, given.clients, wave * each))
            lost, wrong = lost + unjudged + each - len(waited), wrong + mistaken
            time.sleep(1.5)
            memory.append(round(server.resident_mb(), 1))
            files.append(server.files())
    finally:
        server.process.terminate()
        server.process.wait()
    return {"requests": 10 * each, "lost": lost, "wrong": wrong, "resident_mb": memory, "descriptors": files}


def ray(given: argparse.Namespace) -> dict:
    words = ["eval", "countdown", "numbers=[2]", "style=bare", "--engine", "toy", "--size", str(given.problems)]
    words += ["--max-tokens", "64", "--protocol", "@k", "--n", "4", "--json"]
    places = {"one process": [], "ray": ["--ray", "local", "--ray-workers", str(given.workers)]}
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, more in places.items():
            started = time.perf_counter()
            done = subprocess.run([*RLVR, *words, *more, "-o", name], cwd=folder, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            wall = time.perf_counter() - started
            told = json.loads(done.stdout)
            found[name] = {
                "wall_s": round(wall, 1),
                "evaluating_s": told["wall_s"],
                "acc": told["total"]["mean_accuracy"],
            }
        rows = [
            sorted((row["problem"], row["sample"], row["completion"], row["correct"]) for row in map(json.loads, lines))
            for lines in ((Path(folder) / name / "samples.jsonl").read_text().splitlines() for name in places)
        ]
    return {"workers": given.workers, "samples": len(rows[0]), "same": rows[0] == rows[1], **found}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["judge", "flat", "ray"])
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--clients", type=int, default=10)
    parser.add_argument("--servers", type=int, default=1)
    parser.add_argument("--fleet", type=int, default=1)
    parser.add_argument("--queue", type=int, default=256)
    parser.add_argument("--problems", type=int, default=200)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    figures = {"judge": judge, "flat": flat, "ray": ray}[given.what](given)
    if given.json:
        print(json.dumps(figures, indent=2))
        return
    load_now = os.getloadavg()[0]
    print(f"{platform.machine()}, {os.cpu_count()} cores, load {load_now:.1f}, Python {platform.python_version()}")
    for name, value in figures.items():
        print(f"{name:22} {value}")
    if given.what == "judge":
        good = figures["lost"] == figures["wrong"] == 0 and figures["most_in_queue"] <= figures["queue"]
        print(f"none lost, queue bounded: {'reached' if good else 'MISSED'}")


if __name__ == "__main__":
    main()
