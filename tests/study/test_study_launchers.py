"""The local launcher's slots, trials that share a machine, and exit codes; children here are bare interpreters."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner
from study_lab import HEAD, Pretend, write_study

from rlvrlab.cli.verbs import rlvr
from rlvrlab.errors import UserError
from rlvrlab.judge.workers.pool import WORKERS, Pool, default_size
from rlvrlab.study import launchers
from rlvrlab.study.launchers import Job, base, launcher_of
from rlvrlab.study.launchers import local as local_module
from rlvrlab.study.launchers.base import outcome_of, too_many_threads, worker_env
from rlvrlab.study.schema import Resources

SHOW = "import os; print(*map(os.environ.get, ('CUDA_VISIBLE_DEVICES', 'OMP_NUM_THREADS', 'RLVR_JUDGE_WORKERS')))"


def jobs(tmp_path: Path, count: int) -> list[Job]:
    found = [Job(f"t{i}", tmp_path / f"t{i}") for i in range(count)]
    for job in found:
        job.folder.mkdir()
    return found


def test_gpus_threads_and_judges_are_dealt_out_and_given_back(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(base, "cores", lambda: 16)
    monkeypatch.delenv(WORKERS, raising=False)
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
    assert [log[0] for log in logs[:2]] == ["4,5", "6,7"] and logs[2][0] in ("4,5", "6,7")
    assert {(threads, workers) for _, threads, workers in logs} == {("3", "9")}, "two trials at once share 16 cores"


@pytest.mark.parametrize(
    ("asked", "there", "workers"),
    [
        ({"processes": 4}, 16, 5),
        ({"processes": 4, "cpus": 16}, 16, 5),
        ({"processes": 1}, 16, 17),
        ({"processes": 40}, 16, 2),
        ({"processes": 8, "gpus": 1, "gpu_ids": [0, 1]}, 16, 9),
        ({"processes": 4, "launcher": "ray"}, 16, 5),
        ({"processes": 64, "cpus": 8, "launcher": "ray", "address": "auto"}, 16, 9),
        ({"processes": 64, "cpus": 8, "launcher": "slurm"}, 8, 9),
        ({"processes": 2, "cpus": 64, "launcher": "slurm"}, 8, 9),
        ({"processes": 4, "cpus": 8, "launcher": "slurm", "cluster": "local"}, 8, 3),
    ],
)
def test_judges_of_trials_at_once_share_the_cores(monkeypatch, asked: dict, there: int, workers: int) -> None:
    monkeypatch.setattr(base, "cores", lambda: there)
    monkeypatch.delenv(WORKERS, raising=False)
    monkeypatch.setenv(WORKERS, worker_env(Resources(**asked))[WORKERS])
    assert default_size() == workers == Pool().size


def test_the_user_s_number_of_judge_workers_is_every_trial_s(monkeypatch) -> None:
    monkeypatch.setenv(WORKERS, "3")
    assert worker_env(Resources(processes=2))[WORKERS] == "3" and default_size() == 3
    for wrong in ("0", "-1", "many"):
        monkeypatch.setenv(WORKERS, wrong)
        with pytest.raises(UserError, match=rf"^{WORKERS}={wrong}: a whole number above 0 is needed$"):
            default_size()


def test_what_a_cluster_starts_has_its_share_of_the_machine_that_was_chosen(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(base, "cores", lambda: 16)
    monkeypatch.setattr(base, "worker_command", lambda folder: [sys.executable, "-S", "-c", SHOW])
    monkeypatch.delenv(WORKERS, raising=False)
    resources = Resources(processes=64, cpus=4, launcher="slurm")
    (job,) = jobs(tmp_path, 1)
    assert base.run_worker(str(job.folder), resources.model_dump_json()).status == "done"
    assert (job.folder / "log.txt").read_text().split()[1:] == ["4", "5"]


def test_a_judge_counts_only_the_cores_that_it_may_use(monkeypatch) -> None:
    monkeypatch.delenv(WORKERS, raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 5, 9}, raising=False)
    assert default_size() == 4


@pytest.mark.parametrize(
    ("asked", "remedy"),
    [
        ({"processes": 2, "cpus": 8}, None),
        ({"processes": 4, "cpus": 8}, "set cpus = 4 or processes = 2"),
        ({"processes": 40, "cpus": 2}, "set processes = 8"),
        ({"processes": 2, "cpus": 40}, "set cpus = 8"),
        ({"processes": 40, "cpus": 40}, "set processes = 1 and cpus = 16"),
        ({"processes": 8, "cpus": 8, "gpus": 1, "gpu_ids": [0, 1]}, None),
        ({"processes": 4, "cpus": 8, "launcher": "ray"}, "set cpus = 4"),
        ({"processes": 4, "cpus": 8, "launcher": "ray", "address": "auto"}, None),
        ({"processes": 4, "cpus": 8, "launcher": "slurm"}, None),
    ],
)
def test_more_threads_than_cores_are_told_with_what_fits(monkeypatch, asked: dict, remedy: str | None) -> None:
    monkeypatch.setattr(base, "cores", lambda: 16)
    told = too_many_threads(Resources(**asked))
    assert [remedy in one for one in told] == ([] if remedy is None else [True])


def test_plan_and_run_say_on_one_line_that_threads_do_not_fit_and_go_on(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(base, "cores", lambda: 16)
    monkeypatch.setattr(launchers, "launcher_of", lambda name, resources: Pretend(lambda job: 0.5))
    monkeypatch.chdir(tmp_path)
    text = HEAD.replace("[suites", "[resources]\nprocesses = 4\ncpus = 8\n[suites") + '[[stages]]\nname = "a"\n'
    write_study(tmp_path, text)
    line = (
        "study.toml:6: resources.cpus: 4 trials at once × 8 threads are 32, on 16 cores, so they slow each other down; "
        "up to 16 threads fit: set cpus = 4 or processes = 2"
    )
    planned = CliRunner().invoke(rlvr, ["study", "plan", "study.toml", "--no-cost", "--json"])
    assert planned.exit_code == 0 and line in json.loads(planned.stdout)["notes"]
    done = CliRunner().invoke(rlvr, ["study", "run", "study.toml"])
    assert done.exit_code == 0 and f"warning: {line}" in done.stderr.splitlines()
    fitting = CliRunner().invoke(rlvr, ["study", "run", "study.toml", "--processes", "2"])
    assert fitting.exit_code == 0 and "slow each other down" not in fitting.stderr


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
