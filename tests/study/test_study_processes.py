"""Real trials in real processes: kill -9, time limits, memory, Ray, submitit, exported scripts."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from study_lab import HEAD, decision, stage, write_study

pytestmark = pytest.mark.slow
RLVR = [sys.executable, "-c", "from rlvrlab.cli import main; main()"]
ENV = {**os.environ, "OMP_NUM_THREADS": "1"}
HERE = Path(__file__).parent
TINY = """phases = ["grpo"]
[env]
type = "countdown"
numbers = [2]
high = 9
style = "bare"
[data]
train_size = 8
dev_size = 2
[rollout]
n = 2
max_tokens = 4
[engine]
type = "toy"
buckets = 4
[grpo]
steps = 2
batch_size = 2
[eval]
every = 0
[record]
rollouts = "none"
"""


def rlvr(*words: object, folder: Path, timeout: float = 600) -> subprocess.CompletedProcess[str]:
    done = [*RLVR, *map(str, words)]
    return subprocess.run(done, cwd=folder, env=ENV, capture_output=True, text=True, timeout=timeout)


def result(folder: Path) -> dict:
    return json.loads((folder / "out" / "tried" / "study.json").read_text())


def runs(folder: Path) -> dict[str, list[Path]]:
    home = folder / "out" / "tried" / "trials"
    return {one.name: [p.parent for p in one.glob("runs/*/*/config.json")] for one in home.iterdir()}


def test_kill_9_in_a_study_loses_no_trial_and_repeats_none(tmp_path) -> None:
    seeds = "seeds = [0, 1, 2, 3]\n"
    text = HEAD.replace("[suites", seeds + "[resources]\nprocesses = 2\n[suites").replace("size = 8", "size = 2")
    text += '[[stages]]\nname = "a"\nfactors = { "grpo.learning_rate" = [0.1, 0.2] }\n'
    write_study(tmp_path, text, TINY)
    finished: dict[str, int] = {}
    for at in (2, 5):
        child = subprocess.Popen(
            [*RLVR, "study", "run", "study.toml"], cwd=tmp_path, env=ENV, stderr=subprocess.DEVNULL
        )
        home = tmp_path / "out" / "tried" / "trials"
        until = time.monotonic() + 300
        while len(list(home.glob("*/result.json"))) < at and time.monotonic() < until:
            time.sleep(0.05)
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        now = {p.parent.name: p.stat().st_mtime_ns for p in home.glob("*/result.json")}
        assert len(now) >= at and all(now[name] == when for name, when in finished.items())
        finished = now
    done = rlvr("study", "run", "study.toml", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    made, folders = result(tmp_path), runs(tmp_path)
    assert made["status"] == "finished" and len(made["trials"]) == 8 == len(folders)
    assert all(len(own) == 1 for own in folders.values()), "a trial that was begun goes on in its own run folder"
    for name in finished:  # the winner's result is written again when it is asked test problems, its run is not
        events = (folders[name][0] / "logs" / "events.jsonl").read_text()
        assert events.count('"kind": "start"') == 1
    tried = [[one["status"] for one in trial["attempts"]] for trial in made["trials"].values()]
    # What ran when the study was killed was lost and went on, or ended by itself before the kernel told it to.
    assert all(own[-1] == "finished" or own == ["running"] for own in tried)
    # The winner's trials were finished before they were asked test problems.
    assert {status for own in tried for status in own[:-1]} <= {"lost", "finished"}
    assert decision(made, "a")["significant"] is False


@pytest.mark.long
def test_odd_trials_cost_only_themselves(tmp_path) -> None:
    """Memory that runs out, a trial that never ends, one that fails, one whose process dies: five arms at once."""
    shutil.copy(HERE / "odd_trials.py", tmp_path)
    text = (
        HEAD.replace("size = 8", "size = 2")
        + f"""
[resources]
processes = 3
time_limit_s = 30
retries = 1
[[ladder]]
reward.memory = 1
[[ladder]]
reward.memory = 2
[[stages]]
name = "a"
fixed = {{ "reward.type" = "odd_trials.py:Odd" }}
[stages.arms]
fine = {{ "reward.how" = "fine" }}
hang = {{ "reward.how" = "hang" }}
oom = {{ "reward.how" = "oom" }}
error = {{ "reward.how" = "error" }}
die = {{ "reward.how" = "die", "reward.mark" = "{tmp_path}/died" }}
"""
    )
    write_study(tmp_path, text, TINY)
    done = rlvr("study", "run", "study.toml", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    made = result(tmp_path)
    by_arm = {arm["name"]: made["trials"][arm["trials"][0]] for arm in stage(made, "a")["arms"]}
    assert {name: one["status"] for name, one in by_arm.items()} == {
        "fine": "finished", "hang": "timed_out", "oom": "finished", "error": "failed", "die": "finished"
    }  # fmt: skip
    assert [one["status"] for one in by_arm["oom"]["attempts"]] == ["oom", "oom", "finished"]
    assert [one["status"] for one in by_arm["die"]["attempts"]] == ["killed", "finished"]
    why = {one["trial"]: one["why"] for one in made["failures"]}
    assert why[by_arm["hang"]["id"]] == "not done after resources.time_limit_s = 30"
    assert "raised ValueError: planted at odd_trials.py:" in why[by_arm["error"]["id"]]
    run = tmp_path / "out/tried" / by_arm["oom"]["run"]
    assert json.loads((run / "config.json").read_text())["recipe"]["reward"]["memory"] == 2
    evaluation = tmp_path / "out/tried" / by_arm["fine"]["evaluations"]["here"]["here"]
    assert json.loads((evaluation / "metrics.json").read_text())["here"]["problems"] == 2


@pytest.mark.long
def test_ctrl_c_keeps_what_runs(tmp_path) -> None:
    shutil.copy(HERE / "odd_trials.py", tmp_path)
    slow = TINY.replace("steps = 2", "steps = 4000").replace("every = 0", "every = 4000")
    write_study(tmp_path, HEAD.replace("size = 8", "size = 2") + '[[stages]]\nname = "a"\n', slow)
    child = subprocess.Popen([*RLVR, "study", "run", "study.toml"], cwd=tmp_path, env=ENV, stderr=subprocess.DEVNULL)
    until = time.monotonic() + 300
    while not list(tmp_path.glob("out/tried/trials/*/runs/*/*/logs/metrics.jsonl")) and time.monotonic() < until:
        time.sleep(0.1)
    time.sleep(1)
    child.send_signal(signal.SIGTERM)
    assert child.wait(120) == 143
    (own,) = runs(tmp_path).values()
    assert json.loads((own[0] / "run_info.json").read_text())["status"] == "preempted"
    status = rlvr("study", "status", "study.toml", "--json", folder=tmp_path)
    (trial,) = json.loads(status.stdout)["trials"].values()
    assert trial["status"] == "waiting" and trial["attempts"][0]["status"] == "stopped"


@pytest.mark.long
def test_ray_runs_the_same_study_and_survives_a_worker_s_death(tmp_path) -> None:
    pytest.importorskip("ray", reason="the ray extra is not installed")
    shutil.copy(HERE / "odd_trials.py", tmp_path)
    text = (
        HEAD.replace("size = 8", "size = 2")
        + f"""
[resources]
processes = 2
[[stages]]
name = "a"
fixed = {{ "reward.type" = "odd_trials.py:Odd" }}
arms.fine = {{ "reward.how" = "fine" }}
arms.die = {{ "reward.how" = "kill_parent", "reward.mark" = "{tmp_path}/died" }}
"""
    )
    write_study(tmp_path, text, TINY)
    done = rlvr("study", "run", "study.toml", "--launcher", "ray", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    made = result(tmp_path)
    assert made["launcher"] == "ray" and (tmp_path / "died").exists()
    assert {one["status"] for one in made["trials"].values()} == {"finished"}
    assert all(len(own) == 1 for own in runs(tmp_path).values())
    gone = rlvr("study", "run", "study.toml", "--launcher", "ray", "--address", "127.0.0.1:9", folder=tmp_path)
    assert gone.returncode == 1 and "nothing listens at 127.0.0.1:9" in gone.stderr and "Traceback" not in gone.stderr


@pytest.mark.long
def test_submitit_runs_the_same_study(tmp_path) -> None:
    pytest.importorskip("submitit", reason="the slurm extra is not installed")
    text = (
        HEAD.replace("size = 8", "size = 2")
        + """
[resources]
processes = 2
cluster = "local"
slurm = { slurm_partition = "gpu" }
[[stages]]
name = "a"
factors = { "grpo.learning_rate" = [0.1, 0.2] }
"""
    )
    write_study(tmp_path, text, TINY)
    done = rlvr("study", "run", "study.toml", "--launcher", "slurm", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert {one["status"] for one in result(tmp_path)["trials"].values()} == {"finished"}


@pytest.mark.long
def test_exported_scripts_run_the_chain_without_the_runner(tmp_path) -> None:
    text = (
        HEAD.replace("size = 8", "size = 2")
        + """
[[stages]]
name = "a"
factors = { "reward.type" = ["binary", "binary_format"] }
fixed = { "reward.type" = "binary_format", "reward.format" = 0.25 }
[[stages]]
name = "b"
base = 'best("a")'
inputs = { "sft.steps" = 'best("a").grpo.steps' }
arms = { x = { "reward.type" = "binary" } }
"""
    )
    write_study(tmp_path, text, TINY)
    made = rlvr("study", "export", "study.toml", "-o", "scripts", "--json", folder=tmp_path)
    assert made.returncode == 0, made.stderr
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "rlvr").write_text(f'#!/bin/sh\nexec {sys.executable} -c "from rlvrlab.cli import main; main()" "$@"\n')
    (folder / "rlvr").chmod(0o755)
    env = {**ENV, "PATH": f"{folder}:{os.environ['PATH']}", "BEST_a": "type=binary_format"}
    done = subprocess.run(
        ["sh", "scripts/run_all.sh"], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "scripts/out/b/x/seed_0/settings.txt").read_text().split() == [
        'reward.type="binary"',
        "sft.steps=2",
    ]
    assert len(list(tmp_path.glob("scripts/out/*/*/seed_0/eval_here/metrics.json"))) == 3
    (config,) = tmp_path.glob("scripts/out/a/type=binary_format/seed_0/runs/*/config.json")
    assert json.loads(config.read_text())["recipe"]["reward"] == {"type": "binary_format", "format": 0.25}
