"""One writer per run folder, whoever dies."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from rlvrlab.errors import RunLocked
from rlvrlab.record.files import Lock
from rlvrlab.record.run import Run

HOLDER = """
import sys, time
from pathlib import Path
from rlvrlab.record.files import Lock
held = Lock(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(600)
"""


@pytest.fixture
def holder(tmp_path: Path):
    child = subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None and child.stdout.readline() == "held\n"
    yield child
    child.kill()
    child.wait()
    child.stdout.close()


def test_a_second_process_is_told_who_holds_it(tmp_path: Path, holder: subprocess.Popen) -> None:
    with pytest.raises(RunLocked) as caught:
        Lock(tmp_path)
    text = str(caught.value)
    assert str(holder.pid) in text and socket.gethostname() in text and "\n" not in text
    assert caught.value.exit_code == 2


def test_the_lock_of_a_killed_process_is_free(tmp_path: Path, holder: subprocess.Popen) -> None:
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait()
    Lock(tmp_path).release()


def test_released_and_taken_again(tmp_path: Path) -> None:
    Lock(tmp_path).release()
    again = Lock(tmp_path)
    with pytest.raises(RunLocked):
        Lock(tmp_path)
    again.release()


@pytest.mark.slow
def test_the_command_refuses_a_run_that_is_going_on(tmp_path: Path) -> None:
    import runs

    folder = runs.run(tmp_path, "sft.steps=1", "grpo.steps=1", text=runs.ONLINE).folder
    before = {p: p.read_bytes() for p in folder.rglob("*.json*")}
    run = Run.open(folder)
    try:
        words = [str(Path(sys.executable).with_name("rlvr")), "train", "--resume", str(folder)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    finally:
        run.close()
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and str(os.getpid()) in done.stderr and "Traceback" not in done.stderr
    assert {p: p.read_bytes() for p in folder.rglob("*.json*")} == before
