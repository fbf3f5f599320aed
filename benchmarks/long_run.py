"""Does a long run cost the same per step at its end as at its start?

    python benchmarks/long_run.py [--steps 50000] [--seconds 900] [--json]

A tiny toy recipe with an evaluation every 10 steps and a checkpoint every 100. CPU time of the process is read every
hundredth part of the steps; told are the median of the first ten parts, of the last ten, their ratio, and the memory.
On a busy machine the same work takes more CPU time (caches and cores are shared), so a fixed piece of work is timed
beside the steps, and the ratio that counts is that of steps measured in such pieces. With --seconds the run is ended
in good order when the time is up, and the parts are those that were done.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import signal
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from rlvrlab.recipe import load_recipe
from rlvrlab.record.facts import machine
from rlvrlab.train import session

RECIPE = """
name = "long"
phases = ["grpo"]
[env]
type = "countdown"
numbers = [2]
high = 9
style = "bare"
[engine]
type = "toy"
max_number = 90
buckets = 4
[data]
train_size = 40
dev_size = 4
[rollout]
n = 2
max_tokens = 6
[record]
rollouts = "none"
[eval]
every = 10
[checkpoint]
every = 100
[grpo]
batch_size = 2
"""
ALLOWED = 0.10
"""What is promised: the last steps cost at most so much more than the first ones."""


PIECE_EVERY = 20
"""Steps between two fixed pieces of work."""


def piece() -> None:
    """Some work of the kinds that a step is made of, always the same."""
    numbers = np.arange(64.0)
    for number in range(40):
        row = {"step": number, "text": f"{number} + 1", "values": (numbers * number).tolist()}
        np.exp(-numbers).sum()
        hashlib.sha256(json.dumps(row).encode()).hexdigest()


class Parts:
    """CPU seconds per step and per fixed piece of work, and resident memory, part by part."""

    def __init__(self, size: int, seconds: float) -> None:
        self.size, self.until = size, time.monotonic() + seconds
        self.cpu_ms: list[float] = []
        self.piece_ms: list[float] = []
        self._pieces: list[float] = []
        self.memory_mb: list[float] = []
        self._step, self._cpu = 0, time.process_time()

    def observe(self, phase: Any, state: Any, row: dict[str, Any]) -> None:
        if state.step % PIECE_EVERY == 0:
            started = time.process_time()
            piece()
            self._pieces.append(time.process_time() - started)
        if state.step - self._step >= self.size and self._pieces:
            now = time.process_time()
            self.cpu_ms.append(1000 * (now - self._cpu - sum(self._pieces)) / (state.step - self._step))
            self.piece_ms.append(1000 * statistics.median(self._pieces))
            self._pieces = []
            self.memory_mb.append(
                int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") / 1e6
            )
            self._step, self._cpu = state.step, now
        if time.monotonic() > self.until:
            os.kill(os.getpid(), signal.SIGINT)
            self.until = float("inf")


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=50_000)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    parts = Parts(max(1, given.steps // 100), given.seconds)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "long.toml").write_text(RECIPE)
        words = [f"grpo.steps={given.steps}", f"output_dir={folder}"]
        session.start(load_recipe(Path(folder) / "long.toml", words), parts.observe)
    # The first part pays for imports and caches.
    done, pieces = parts.cpu_ms[1:], [cpu / work for cpu, work in zip(parts.cpu_ms, parts.piece_ms, strict=True)][1:]
    share = max(1, len(done) // 10)
    first, last = statistics.median(done[:share]), statistics.median(done[-share:])
    ratio = statistics.median(pieces[-share:]) / statistics.median(pieces[:share])
    found = {
        "steps": len(parts.cpu_ms) * parts.size,
        "cpu_ms_per_step_first": round(first, 3),
        "cpu_ms_per_step_last": round(last, 3),
        "ratio_in_cpu_time": round(last / first, 3),
        "ratio_in_fixed_work": round(ratio, 3),
        "fixed_work_by_tenths": [
            round(statistics.median(pieces[i : i + share]), 3) for i in range(0, len(pieces), share)
        ],
        "memory_mb_first": round(parts.memory_mb[0]),
        "memory_mb_last": round(parts.memory_mb[-1]),
    }
    print(json.dumps({**found, "machine": machine()}) if given.json else found)
    return 0 if ratio <= 1 + ALLOWED else 1


if __name__ == "__main__":
    raise SystemExit(main())
