"""The local launcher's slots, and what an exit code means; children here are bare interpreters."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pytest

from rlvrlab.errors import UserError
from rlvrlab.study.launchers import Job, launcher_of
from rlvrlab.study.launchers import local as local_module
from rlvrlab.study.launchers.base import outcome_of
from rlvrlab.study.schema import Resources

SHOW = "import os; print(os.environ['CUDA_VISIBLE_DEVICES'], os.environ['OMP_NUM_THREADS'])"


def jobs(tmp_path: Path, count: int) -> list[Job]:
    found = [Job(f"t{i}", tmp_path / f"t{i}") for i in range(count)]
    for job in found:
        job.folder.mkdir()
    return found


def test_gpus_and_threads_are_dealt_out_and_given_back(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(local_module, "worker_command", lambda folder: [sys.executable, "-S", "-c", SHOW])
    launcher = launcher_of("local", Resources(processes=5, cpus=3, gpus=2, gpu_ids=[4, 5, 6, 7]))
    waiting, ended, seen = jobs(tmp_path, 3), [], []
    while len(ended) < 3:
        while waiting and launcher.free:
            launcher.start(waiting.pop(0))
        seen.append(len(waiting))
        ended += launcher.wait(20)
    assert seen[0] == 1, "four GPUs are two trials at once, however many processes are allowed"
    assert {one.status for one in ended} == {"done"}
    logs = [(tmp_path / f"t{i}" / "log.txt").read_text().split() for i in range(3)]
    assert [log[0] for log in logs[:2]] == ["4,5", "6,7"] and logs[2][0] in ("4,5", "6,7") and logs[0][1] == "3"


@pytest.mark.slow
def test_a_trial_that_ignores_its_limit_is_ended(tmp_path, monkeypatch) -> None:
    stubborn = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"
    )
    monkeypatch.setattr(local_module, "worker_command", lambda folder: [sys.executable, "-S", "-c", stubborn])
    monkeypatch.setattr(local_module, "GRACE_S", 0.3)
    launcher = launcher_of("local", Resources(time_limit_s=2.0))
    (job,) = jobs(tmp_path, 1)
    launcher.start(job)
    started, ended = time.monotonic(), []
    while not ended and time.monotonic() - started < 60:
        ended = launcher.wait(1)
    assert ended[0].status == "timed_out" and "time_limit_s = 2" in ended[0].why


@pytest.mark.parametrize(
    ("code", "status"),
    [(0, "done"), (1, "failed"), (2, "failed"), (3, "oom"), (4, "stopped"), (-15, "stopped"), (-9, "killed")],
)  # fmt: skip
def test_exit_codes_say_what_happened(tmp_path, code: int, status: str) -> None:
    (tmp_path / "failure.json").write_text(json.dumps({"code": code, "why": "words"}))
    found = outcome_of(Job("t", tmp_path), code)
    assert found.status == status
    assert code == 0 or found.why.startswith("words" if code > 0 or code == -15 else "its process was ended by SIG")


@pytest.mark.parametrize(("name", "package"), [("ray", "ray"), ("slurm", "submitit")])
def test_a_missing_extra_says_what_to_install(monkeypatch, name: str, package: str) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(UserError, match=rf"pip install 'rlvrlab\[{name}\]'"):
        launcher_of(name, Resources())
