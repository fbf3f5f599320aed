"""The dashboard's figures: what an open live page costs the training it shows, and how fast 200 runs are listed.

    python benchmarks/dashboard.py [--json] [--rounds 3] [--steps 200]

Ratios first: CPU time of the same toy training with and without server and page, taking turns. The page is a client
that does what the browser's does: it reads the event stream and fetches the document whenever it is told to.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path
from typing import Any

from rlvrlab.record.facts import machine, package_versions
from rlvrlab.report.gather import gather
from rlvrlab.report.page import page
from rlvrlab.report.runs import list_runs

ROOT = Path(__file__).resolve().parents[1]
RLVR = Path(sys.executable).parent / "rlvr"
RECIPE = ROOT / "recipes/toy_countdown.toml"


def train(folder: Path, steps: int, seed: int) -> dict[str, float]:
    """CPU and wall seconds of one training."""
    words = [str(RLVR), "train", str(RECIPE), f"output_dir={folder}", f"grpo.steps={steps}", f"seed={seed}", "--json"]
    started = time.perf_counter()
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return {"cpu_s": used.ru_utime + used.ru_stime, "wall_s": time.perf_counter() - started}


class OpenPage(threading.Thread):
    """Finds the newest run of a dashboard and keeps its page open."""

    def __init__(self, server: int, address: dict[str, Any]) -> None:
        super().__init__(daemon=True)
        self._server, self.opening_cpu_s = server, 0.0
        self._base, self._token = address["url"].partition("/?")[0], address["token"]
        self.lines = self.documents = 0

    def run(self) -> None:
        while not (runs := json.loads(self._ask("/runs.json").read())):
            time.sleep(0.2)
        name, before = runs[0]["name"], _cpu(self._server)
        self._ask(f"/run/{name}").read()
        self.opening_cpu_s = _cpu(self._server) - before
        kind = ""
        for raw in self._ask(f"/events/{name}"):
            line = raw.decode().rstrip()
            kind = line.removeprefix("event: ") if line.startswith("event: ") else kind
            if line.startswith("data: ") and kind == "metrics":
                self.lines += len(json.loads(line[6:])["rows"])
            elif line.startswith("data: ") and kind == "change":
                self._ask(f"/document/{name}").read()
                self.documents += 1

    def _ask(self, path: str) -> Any:
        request = urllib.request.Request(self._base + path, headers={"authorization": f"Bearer {self._token}"})
        return urllib.request.urlopen(request, timeout=60)


def watched(folder: Path, steps: int, seed: int) -> dict[str, float]:
    """The same with a dashboard and one open page."""
    words = [str(RLVR), "serve", "report", str(folder), "--json"]
    server = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    open_page = OpenPage(server.pid, json.loads(server.stdout.readline()))
    ready = _cpu(server.pid)
    open_page.start()
    found = train(folder, steps, seed)
    time.sleep(1.5)
    found["server_cpu_s"] = _cpu(server.pid) - ready - open_page.opening_cpu_s
    found["opening_cpu_s"] = open_page.opening_cpu_s
    server.terminate()
    server.communicate(timeout=15)
    return {**found, "lines": open_page.lines, "documents": open_page.documents}


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def live_cost(rounds: int, steps: int) -> list[dict[str, Any]]:
    """Rounds of both, the order changing."""
    plain, seen = [], []
    for number in range(rounds):
        with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
            for kind in ("plain", "seen") if number % 2 == 0 else ("seen", "plain"):
                if kind == "plain":
                    plain.append(train(Path(one), steps, number))
                else:
                    seen.append(watched(Path(two), steps, number))
    ratios = [after["cpu_s"] / before["cpu_s"] for before, after in zip(plain, seen, strict=True)]
    server = [row["server_cpu_s"] / row["wall_s"] for row in seen]
    last = seen[-1]
    return [
        {"what": "training CPU, watched / alone", "median": statistics.median(ratios), "all": ratios,
         "asked": "≤ 1.01"},
        {"what": "opening the page", "server_cpu_s": statistics.median(row["opening_cpu_s"] for row in seen),
         "asked": "once per page, whatever the training takes"},
        {"what": "following: server CPU / wall time", "median": statistics.median(server), "all": server,
         "asked": "≤ 0.01 of a core"},
        {"what": "the last round", **{k: float(v) for k, v in last.items()}, "asked": "lines and documents arrived"},
    ]  # fmt: skip


def listing(count: int = 200, steps: int = 400) -> dict[str, Any]:
    """One real run, copied."""
    import shutil

    with tempfile.TemporaryDirectory() as folder:
        train(Path(folder) / "made", steps, 0)
        (source,) = (Path(folder) / "made").iterdir()
        shutil.rmtree(source / "checkpoints")
        shutil.rmtree(source / "rollouts")
        for number in range(count):
            shutil.copytree(source, Path(folder) / "runs" / f"run_{number:03}")
        size = (source / "logs/metrics.jsonl").stat().st_size
        started, wall = time.process_time(), time.perf_counter()
        found = list_runs(Path(folder) / "runs")
        seconds, wall = time.process_time() - started, time.perf_counter() - wall
        assert len(found) == count
    return {
        "what": f"{count} runs listed",
        "cpu_s": seconds,
        "wall_s": wall,
        "metrics_kb": size / 1000,
        "asked": "≤ 1 s",
    }


def document(steps: int = 400) -> dict[str, Any]:
    """What one refresh of an open page costs the server."""
    with tempfile.TemporaryDirectory() as folder:
        train(Path(folder), steps, 0)
        (run,) = Path(folder).iterdir()
        gather(run)
        started = time.process_time()
        found = gather(run)
        gathered = time.process_time() - started
        size = len(page(found))
        drawn = time.process_time() - started - gathered
    return {"what": f"a page of {steps} steps", "gather_cpu_s": gathered, "page_cpu_s": drawn, "mb": size / 1e6,
            "asked": "≤ 3 s for 2,000 steps"}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=200)
    options = parser.parse_args()
    facts = {**machine(), **package_versions(), "load": round(os.getloadavg()[0], 1)}
    rows = [*live_cost(options.rounds, options.steps), listing(), document()]
    if options.json:
        print(json.dumps({"machine": facts, "figures": rows}, indent=2))
        return
    print(", ".join(f"{key} {value}" for key, value in facts.items()))
    for row in rows:
        figures = ", ".join(f"{k} {v:.4g}" for k, v in row.items() if isinstance(v, float))
        spread = f" ({', '.join(f'{v:.4f}' for v in row['all'])})" if "all" in row else ""
        print(f"{row['what']:<36} {figures}{spread}   (asked: {row['asked']})")


if __name__ == "__main__":
    main()
