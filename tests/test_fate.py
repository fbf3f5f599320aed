"""A process ends with the one that started it, even when that one is killed."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

CHILD = "import time; print('up', flush=True); time.sleep(60)"
PARENT = f"""
import os, subprocess, sys, time
child = [sys.executable, "-m", "rlvrlab.fate", str(os.getpid()), sys.executable, "-c", {CHILD!r}]
subprocess.Popen(child, stdout=open(sys.argv[1], "w"))
time.sleep(60)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="asks the Linux kernel")
def test_it_dies_with_a_killed_parent(tmp_path: Path) -> None:
    said = tmp_path / "said"
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(said)])
    _until(lambda: said.exists() and said.read_text() == "up\n")
    parent.kill()
    parent.wait()
    _until(lambda: not _holds(said))


@pytest.mark.skipif(sys.platform != "linux", reason="asks the Linux kernel")
def test_it_does_not_start_without_its_parent(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "rlvrlab.fate", "1", sys.executable, "-c", "print('up')"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and done.stdout == "" and "is gone" in done.stderr


def _holds(path: Path) -> bool:
    """Whether any process still has the file open."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if any(link.resolve() == path.resolve() for link in (process / "fd").iterdir()):
                return True
        except OSError:  # it ended while it was looked at
            continue
    return False


def _until(done: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not done():
        assert time.monotonic() < until
        time.sleep(0.05)
