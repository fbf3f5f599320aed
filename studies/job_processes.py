"""A queue of commands, several at a time, each bounded in time: for runs on a GPU, whose memory only an end gives back.

A job is ready once what it needs is there, and not begun where what it makes is there already; a job that fails is
begun once more and then logged and left. Nothing is begun that would not end in time, as far as the longest job of its
kind tells, and whatever still runs when the time is over is killed with all of its processes.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

TICK_S = 0.2
TRIES = 2


@dataclass(frozen=True)
class Job:
    """One command."""

    name: str
    kind: str
    """Jobs of one kind take about as long."""
    words: Sequence[str]
    ready: Callable[[], bool]
    done: Callable[[], bool]
    limit_s: float


@dataclass
class Queue:
    """Jobs in their order, what runs of them, and how they ended."""

    logs: Path
    processes: int
    deadline: float
    """In seconds of time.monotonic."""
    running: dict[str, tuple[Job, subprocess.Popen[bytes], float]] = field(default_factory=dict)
    longest: dict[str, float] = field(default_factory=dict)
    tries: dict[str, int] = field(default_factory=dict)

    def run(self, jobs: Sequence[Job]) -> list[str]:
        """Until nothing more can be begun and nothing runs; the names of the jobs that are not done."""
        self.logs.mkdir(parents=True, exist_ok=True)
        try:
            while True:
                self._reap()
                while len(self.running) < self.processes and (job := self._next(jobs)):
                    self._begin(job)
                if not self.running:
                    return [job.name for job in jobs if not job.done()]
                time.sleep(TICK_S)
        finally:
            for _, begun, _ in self.running.values():
                _kill(begun)

    def _next(self, jobs: Sequence[Job]) -> Job | None:
        left = self.deadline - time.monotonic()
        for job in jobs:
            tried_out = self.tries.get(job.name, 0) >= TRIES
            if job.name in self.running or tried_out or job.done() or not job.ready():
                continue
            if left > self.longest.get(job.kind, 0.0):
                return job
        return None

    def _begin(self, job: Job) -> None:
        self.tries[job.name] = self.tries.get(job.name, 0) + 1
        with (self.logs / f"{job.name}.log").open("ab") as log:
            begun = subprocess.Popen(job.words, stdout=log, stderr=log, start_new_session=True)  # noqa: S603
        self.running[job.name] = job, begun, time.monotonic()
        self._say(f"begun    {job.name}")

    def _reap(self) -> None:
        for name, (job, begun, since) in list(self.running.items()):
            now = time.monotonic()
            late = now > self.deadline or now - since > job.limit_s
            if begun.poll() is None and not late:
                continue
            _kill(begun)
            del self.running[name]
            if job.done():
                self.longest[job.kind] = max(self.longest.get(job.kind, 0.0), now - since)
            self._say(f"{'ended' if job.done() else 'cut' if late else 'FAILED':8} {name} after {now - since:.0f} s")

    def _say(self, words: str) -> None:
        with (self.logs / "queue.log").open("a") as log:
            log.write(f"{time.strftime('%H:%M:%S')} {words}\n")


def _kill(begun: subprocess.Popen[bytes]) -> None:
    """With all of its processes; also what a dead one left behind."""
    with suppress(ProcessLookupError):
        os.killpg(begun.pid, signal.SIGKILL)
    begun.wait()
