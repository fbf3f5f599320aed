"""Measurements that take turns, so that whatever else a machine does meets all of them; and work beside them.

What is measured runs in a process of its own with the `rlvrlab` of one source folder, this one's or another version's.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from rlvrlab import fate

OWN = Path(__file__).parents[1] / "src"
THIS, OTHER = "this version", "the other"
R = TypeVar("R")


def sources(against: Path | None) -> dict[str, Path]:
    """The `src` folders that take turns; without another version only this one."""
    return {THIS: OWN} | ({OTHER: against.resolve()} if against else {})


def in_turn(sides: Iterable[str], rounds: int, measure: Callable[[str], R]) -> list[dict[str, R]]:
    """What was measured in each round; every second one begins with the last side, so that none is always first."""
    order = list(sides)
    return [{side: measure(side) for side in order[:: -1 if number % 2 else 1]} for number in range(rounds)]


def environment(source: Path) -> dict[str, str]:
    """That of a process which imports `rlvrlab` from there."""
    return {**os.environ, "PYTHONPATH": str(source)}


def refuse_without_package(source: Path) -> None:
    """Stop where Python would import `rlvrlab` from elsewhere, and compare a version with itself."""
    words = [sys.executable, "-c", "import rlvrlab; print(rlvrlab.__file__)"]
    done = subprocess.run(words, env=environment(source), capture_output=True, text=True, check=False)
    if done.returncode or not Path(done.stdout.strip()).is_relative_to(source):
        raise SystemExit(f"{source}: no rlvrlab is imported from there; name the src folder of a worktree")


def children_cpu_s() -> float:
    """CPU seconds of all processes that this one started and awaited."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@contextmanager
def spinning(count: int) -> Iterator[None]:
    """So many processes that want a processor all the time; they end with the block, or with this process."""
    words = fate.command([sys.executable, "-S", "-c", "while True: pass"])
    spinners = [subprocess.Popen(words) for _ in range(count)]
    try:
        time.sleep(1 if count else 0)
        yield
    finally:
        for spinner in spinners:
            spinner.kill()
            spinner.wait()
