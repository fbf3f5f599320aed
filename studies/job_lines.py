"""Many independent runs of a study, several at a time: one line per finished run, none of them run twice.

A script of a study hands over its jobs by name; those whose line is already in the file are left out, so a queue that
was cut goes on where it was. With a limit of seconds no job is started that would not end within it, as far as the
longest one so far tells.
"""

from __future__ import annotations

import json
import math
import time
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

Row = dict[str, Any]
Job = TypeVar("Job")


def rows_of(path: Path) -> list[Row]:
    """The lines that are there."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def run_missing(
    path: Path,
    jobs: Mapping[str, Job],
    work: Callable[[Job], Row],
    name: Callable[[Row], str],
    processes: int,
    seconds: float = math.inf,
) -> int:
    """Run the jobs that have no line yet, in their order, and say how many are left because time was short."""
    path.parent.mkdir(parents=True, exist_ok=True)
    done = {name(row) for row in rows_of(path)}
    left = deque(job for key, job in jobs.items() if key not in done)
    began, longest, running = time.monotonic(), 0.0, dict[Future[Row], float]()
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        while left or running:
            while left and len(running) < processes and time.monotonic() - began + longest < seconds:
                running[pool.submit(work, left.popleft())] = time.monotonic()
            if not running:
                break
            for ended in wait(running, return_when=FIRST_COMPLETED).done:
                longest = max(longest, time.monotonic() - running.pop(ended))
                with path.open("a") as file:
                    file.write(json.dumps(ended.result()) + "\n")
    return len(left)
