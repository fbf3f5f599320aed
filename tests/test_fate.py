"""A process ends with the one that started it, even when that one is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from sources import SOURCE, files

from rlvrlab import fate

CHILD = "import time; print('up', flush=True); time.sleep(60)"
STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"
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


@pytest.mark.parametrize("group", [True, False])
def test_one_that_does_not_end_is_killed_and_all_share_the_wait(group: bool) -> None:
    words = [sys.executable, "-c", STUBBORN]
    started = [subprocess.Popen(words, stdout=subprocess.PIPE, start_new_session=group) for _ in range(3)]
    for one in started:
        assert one.stdout is not None and one.stdout.readline() == b"up\n"
    begun = time.monotonic()
    fate.end(started, 0.5, group=group)
    assert [one.returncode for one in started] == [-signal.SIGKILL] * 3 and time.monotonic() - begun < 30
    fate.end(started, 0.5, group=group)
    for one in started:
        assert one.stdout is not None
        one.stdout.close()


def test_a_group_whose_number_is_somebody_elses_by_now_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    child = subprocess.Popen([sys.executable, "-c", ""])
    monkeypatch.setattr(os, "killpg", refuse)
    fate.end([child], 60, group=True)
    assert child.returncode == 0


def test_the_watcher_and_the_kill_have_one_home() -> None:
    """A second start would forget the watcher, a second end the group or somebody else's number."""
    texts = {file: (SOURCE / file).read_text() for file, _ in files(SOURCE)}
    assert [file for file, text in texts.items() if '"rlvrlab.fate"' in text] == ["fate.py"]
    assert [file for file, text in texts.items() if "os.killpg(" in text] == ["fate.py"]


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
