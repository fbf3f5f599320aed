"""Bringing verl's results home, with a stand-in for verl: metrics, answers, checkpoints, failure and resume."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from rlvrlab.errors import InfrastructureError, LabError, TrainingDiverged, UserError
from rlvrlab.recipe import load_recipe
from rlvrlab.record.run import read_events, read_info, read_metrics
from rlvrlab.scale.verl import checkpoints, follow, launch, told, validate
from rlvrlab.train.checkpoint import defect

RECIPE = """
name = "away"
phases = ["grpo"]
[env]
type = "countdown"
numbers = [2]
style = "bare"
[engine]
type = "verl"
model = "owner/model"
gpus = 1
[data]
train_size = 20
dev_size = 4
[rollout]
n = 4
max_tokens = 6
[grpo]
batch_size = 4
steps = 4
[checkpoint]
every = 2
"""
STAND_IN = """#!{python}
import json, os, sys, pathlib
name = sys.argv[2] if len(sys.argv) > 2 else ""
if name == "verl.model_merger":
    target = pathlib.Path(sys.argv[sys.argv.index("--target_dir") + 1])
    (target / "config.json").write_text("{{}}")
elif name == "rlvrlab.scale.verl.checkpoints":
    print("some words")
    print(json.dumps({{"parameters": 1, "mean_logprob": -1.0}}))
elif name == "verl.trainer.main_ppo":
    given = dict(line.lstrip("+").split("=", 1) for line in sys.argv[3:])
    home = pathlib.Path(os.environ["RLVR_VERL_PLAN"])
    log = pathlib.Path(given["ray_kwargs.ray_init.runtime_env.env_vars.VERL_FILE_LOGGER_PATH"])
    raw, tracker = home / "checkpoints", home / "checkpoints" / "latest_checkpointed_iteration.txt"
    done = int(tracker.read_text()) if tracker.exists() else 0
    (home / "rollouts").mkdir(exist_ok=True)
    def say(step, **data):
        with log.open("a") as file:
            file.write(json.dumps({{"step": step, "data": data}}) + "\\n")
    (home / "seeds.txt").open("a").write(given["actor_rollout_ref.rollout.seed"] + "\\n")
    if given["trainer.val_before_train"] == "True":
        acc = "val-core/countdown/acc"
        say(done, **{{acc: 0.1, acc + "_low": 0.0, acc + "_high": 0.3}})
    for step in range(done + 1, 5):
        (home / "rollouts" / f"step_{{step}}.jsonl").write_text(json.dumps({{"id": f"{{step}}/a"}}) + "\\n")
        if step % 2 == 0:
            (raw / f"global_step_{{step}}" / "actor").mkdir(parents=True)
            tracker.write_text(str(step))
        if step == 3 and (home / "die").exists():
            print("\\x1b[36m(WorkerDict pid=1)\\x1b[0m RuntimeError: a worker was killed", flush=True)
            sys.exit(1)
        numbers = {{"critic/rewards/mean": 0.5, "timing_s/step": 2.0, "actor/broken": float("nan")}}
        say(step, **numbers, **{{"training/x": True}})
"""


@pytest.fixture
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    stand_in = tmp_path / "python"
    stand_in.write_text(STAND_IN.format(python=sys.executable))
    stand_in.chmod(stand_in.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv(launch.PYTHON, str(stand_in))
    monkeypatch.setattr(launch, "LOOK_EVERY_S", 0.05)
    path = tmp_path / "recipe.toml"
    path.write_text(RECIPE)
    return path


def started(recipe: Path, **options):
    seen = []
    resolved = load_recipe(recipe, [f"output_dir={recipe.parent / 'runs'}"])
    return launch.start(resolved, lambda phase, state, row: seen.append(row["step"]), ["rlvr"], **options), seen


@pytest.mark.slow
def test_a_run_comes_home(recipe: Path) -> None:
    ended, seen = started(recipe)
    assert (ended.status, ended.exit_code, seen) == ("finished", 0, [0, 1, 2, 3, 4])
    rows = read_metrics(ended.folder)
    assert [row["phase_step"] for row in rows] == [0, 1, 2, 3, 4] and rows[1]["time/step_s"] == 2.0
    assert not {"actor/broken", "training/x"} & rows[1].keys()
    assert ended.summary["grpo"]["before"]["accuracy"] == 0.1
    assert (ended.folder / "rollouts" / "step_3.jsonl").is_file()
    for step in (2, 4):
        place = ended.folder / "checkpoints" / f"global_step_{step}"
        assert defect(place) is None and (place / "actor" / "huggingface" / "config.json").is_file()
        assert json.loads((place / "actor" / "proof.json").read_text())["parameters"] == 1
    assert read_info(ended.folder)["status"] == "finished"


def killed_in_step_3(recipe: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    original = launch.prepare

    def prepared(plan, lab, wanted):
        original(plan, lab, wanted)
        (plan.folder / "die").touch()

    monkeypatch.setattr(launch, "prepare", prepared)
    with pytest.raises(InfrastructureError, match="RuntimeError: a worker was killed"):
        started(recipe)
    folder = next((recipe.parent / "runs").iterdir())
    assert read_info(folder)["status"] == "failed" and read_metrics(folder)[-1]["step"] == 2
    (folder / "artifacts" / "verl" / "die").unlink()
    return folder


@pytest.mark.slow
def test_a_killed_worker_and_a_resume(recipe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, seen = killed_in_step_3(recipe, monkeypatch), []
    ended = launch.resume(folder, lambda phase, state, row: seen.append(row["step"]))
    assert ended.status == "finished" and seen == [3, 4]
    assert [row["step"] for row in read_metrics(folder)] == [0, 1, 2, 3, 4]
    assert any("resumes after step 2" in event["text"] for event in read_events(folder))
    first, again = map(int, (folder / "artifacts" / "verl" / "seeds.txt").read_text().split())
    assert (first, again) == (0, launch.resumed_settings(0, 2)["actor_rollout_ref.rollout.seed"])


FULL = """if step == 3 and done == 0:
            with (home / "filler").open("wb", buffering=0) as file:
                for size in (1 << 20, 1 << 12, 1):
                    try:
                        while file.write(b"x" * size):
                            pass
                    except OSError:
                        continue
        if step % 2 == 0:"""


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "runs"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(place)], capture_output=True)
    if mounted.returncode:
        pytest.skip("mounting is not allowed here")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.slow
def test_a_full_disk_on_the_head_node_is_a_clear_stop(recipe: Path, small_disk: Path) -> None:
    """With room again the run goes on from its last complete checkpoint, and no step is missing or there twice."""
    Path(os.environ[launch.PYTHON]).write_text(
        STAND_IN.replace("if step % 2 == 0:", FULL).format(python=sys.executable)
    )
    with pytest.raises(LabError, match="No space left"):
        started(recipe)
    (folder,) = small_disk.iterdir()
    home = folder / "artifacts" / "verl"
    (home / "filler").unlink()
    shutil.rmtree(home / "checkpoints" / "global_step_4", ignore_errors=True)  # verl would write over it
    (home / "checkpoints" / checkpoints.TRACKER).write_text("2")
    ended = launch.resume(folder, lambda phase, state, row: None)
    assert ended.status == "finished" and [row["step"] for row in read_metrics(folder)] == [0, 1, 2, 3, 4]
    assert any("resumes after step 2" in event["text"] for event in read_events(folder))


@pytest.mark.parametrize(("note", "merged", "mended"), [("2", [2], None), ("", [2, 4], 2), ("x", [], 0), ("", [4], 0)])
def test_a_damaged_note_of_the_last_checkpoint(tmp_path: Path, note: str, merged: list[int], mended: int) -> None:
    raw, ours = tmp_path / "raw", tmp_path / "ours"
    (raw / "global_step_2" / "actor").mkdir(parents=True)
    for step in merged:
        (ours / f"global_step_{step}").mkdir(parents=True)
    (raw / checkpoints.TRACKER).write_text(note)
    assert checkpoints.mend_tracker(raw, ours) == mended
    assert checkpoints.complete_steps(raw) == ([] if mended == 0 else [2])


@pytest.mark.slow
@pytest.mark.parametrize("reported", [True, False])
def test_what_verl_reported_before_we_were_killed_is_read_on_resume(
    recipe: Path, monkeypatch: pytest.MonkeyPatch, reported: bool
) -> None:
    """verl was ahead of its follower: the checkpoint of step 2 is there, our line is not; perhaps not even verl's."""
    folder = killed_in_step_3(recipe, monkeypatch)
    behind = [folder / "logs" / "metrics.jsonl", folder / "artifacts" / "verl" / "metrics_0.jsonl"]
    for log in behind[: 1 if reported else 2]:
        log.write_text("".join(line + "\n" for line in log.read_text().splitlines() if '"step": 2' not in line))
    launch.resume(folder, lambda phase, state, row: None)
    assert [row["step"] for row in read_metrics(folder)] == ([0, 1, 2, 3, 4] if reported else [0, 1, 3, 4])
    lost = [event["text"] for event in read_events(folder) if event["kind"] == "lost"]
    assert lost == ([] if reported else ["verl was killed before it reported the numbers of step 2"])


def test_verl_is_missing_or_of_another_version(recipe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(launch.PYTHON, str(recipe.parent / "no_python"))
    with pytest.raises(UserError, match="no such Python"):
        started(recipe)
    monkeypatch.setattr(validate, "version", lambda name: {"verl": "0.8.0"}[name])
    with pytest.raises(UserError, match=r"verl 0\.8\.0 is installed, this is made for 0\.9\.1"):
        validate.check_versions()
    monkeypatch.setattr(validate, "version", lambda name: {"verl": "0.9.1", "ray": "2.9.0"}[name])
    with pytest.raises(UserError, match=r"Ray 2\.9\.0 is too old"):
        validate.check_versions()
    assert not (recipe.parent / "runs").exists()


@pytest.mark.parametrize(
    ("said", "named"),
    [
        ("error: verl is not installed in /usr", True),
        ("ModuleNotFoundError: No module named 'rlvrlab'", True),
        ("error: trainer.nnodes: 0 is too few", False),
    ],
)
def test_where_a_package_is_missing_the_python_that_was_asked_is_named(tmp_path: Path, said: str, named: bool) -> None:
    asked = tmp_path / "python"
    asked.write_text(f"#!/bin/sh\ncat >&2 <<'END'\nTraceback\n{said}\nEND\nexit 1\n")
    asked.chmod(0o755)
    with pytest.raises(UserError) as caught:
        launch.ask_verls_python(str(asked), ["-m", "anything"], {})
    remedy = f" ({asked}; {launch.PYTHON} names another)" if named else ""
    assert str(caught.value) == said.removeprefix("error: ") + remedy


@pytest.mark.parametrize(
    ("rollout", "attention", "there", "refused"),
    [
        ("vllm", None, {"vllm"}, r"flash-attn is not installed.*attn_implementation=sdpa"),
        ("vllm", "sdpa", {"vllm"}, None),
        ("vllm", None, {"vllm", "flash_attn"}, None),
        ("sglang", "sdpa", {"vllm"}, "sglang is not installed"),
    ],
)
def test_what_samples_and_attends_must_be_installed(
    rollout: str, attention: str | None, there: set[str], refused: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name if name in there else None)
    model = SimpleNamespace(override_config={} if attention is None else {"attn_implementation": attention})
    config = SimpleNamespace(
        actor_rollout_ref=SimpleNamespace(rollout=SimpleNamespace(name=rollout), model=model),
        critic=SimpleNamespace(model=SimpleNamespace(override_config={}), enable=False),
        trainer=SimpleNamespace(device="cuda"),
    )
    if refused is None:
        validate.check_packages(config)
        return
    with pytest.raises(UserError, match=refused):
        validate.check_packages(config)


def test_an_address_says_nothing_about_sizes(recipe: Path) -> None:
    wanted = launch._addressed({"ray_kwargs.ray_init.num_cpus": 3, "a": 1}, "ray://x:1")
    assert wanted == {"a": 1, "ray_kwargs.ray_init.address": "ray://x:1"}


def test_a_merge_that_fails_is_said(recipe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = STAND_IN.replace('(target / "config.json").write_text("{{}}")', 'sys.exit("no shards")')
    Path(os.environ[launch.PYTHON]).write_text(broken.format(python=sys.executable))
    ended, _ = started(recipe)
    assert not list((ended.folder / "checkpoints").glob("global_step_*"))
    told = [event["text"] for event in read_events(ended.folder) if event["kind"] == "checkpoint"]
    assert len(told) == 2 and "no shards" in told[0]


def test_what_the_update_said_and_updates_left_out_are_on_record(recipe: Path) -> None:
    """The guard's words of step 1 come home; three updates that were not finite stop the run."""
    said = """(home / "events").mkdir(exist_ok=True)
        if step == 1:  # once: whoever follows may be reading it
            (home / "events" / "step_1.jsonl").write_text(json.dumps(["guard", "skill a is not protected"]) + "\\n")
        numbers"""
    odd = STAND_IN.replace("numbers = {{", f'{said} = {{{{"actor/grad_norm": 1.0 if step == 1 else float("nan"), ', 1)
    Path(os.environ[launch.PYTHON]).write_text(odd.format(python=sys.executable))
    with pytest.raises(TrainingDiverged, match="the last at step 4"):
        started(recipe)
    folder = next((recipe.parent / "runs").iterdir())
    events = [(event["kind"], event.get("step")) for event in read_events(folder)]
    assert ("guard", 1) in events and [step for kind, step in events if kind == "skipped_update"] == [2, 3, 4]
    assert [row.get("actor/skipped") for row in read_metrics(folder)] == [None, None, 1.0, 1.0, 1.0]
    assert read_info(folder)["status"] == "failed"


def test_events_of_an_attempt_that_was_killed_are_replaced(tmp_path: Path) -> None:
    told.write_events(tmp_path, 4, [("guard", "of the attempt before")], begun=True)
    told.write_events(tmp_path, 4, [("guard", "first")], begun=True)
    told.write_events(tmp_path, 4, [("guard", "second")], begun=False)
    assert told.take_events(tmp_path, 5) == [("guard", "first"), ("guard", "second")]
    assert told.take_events(tmp_path, 5) == []


def test_damaged_words_of_an_update_are_said_to_be_lost(tmp_path: Path) -> None:
    told.write_events(tmp_path, 4, [("guard", "first")], begun=True)
    for damage in ("{", "[1]", "3", "[" * 5000):
        (tmp_path / "events" / "step_5.jsonl").write_text(damage + "\n")
        ((kind, words),) = told.take_events(tmp_path, 5)
        assert kind == "lost" and "step 5" in words


@pytest.mark.parametrize("line", ["x", "3", "{}", '{"step": "1", "data": {}}', '{"step": 1}', "[" * 5000])
def test_a_foreign_line_of_verls_log_is_one_line_of_error(tmp_path: Path, line: str) -> None:
    follower = follow.Follower.__new__(follow.Follower)
    follower._read = 0
    (tmp_path / "log").write_text(line + "\n")
    with pytest.raises(LabError, match="log: ") as told_of:
        follower._new(tmp_path / "log")
    assert "\n" not in str(told_of.value)


def test_half_a_line_is_read_when_it_is_whole(tmp_path: Path) -> None:
    follower = follow.Follower.__new__(follow.Follower)
    follower._read = 0
    log = tmp_path / "log"
    assert follower._new(log) == []
    log.write_text('{"step": 1, "data": {}}\n{"step": 2, ')
    assert [one["step"] for one in follower._new(log)] == [1]
    log.write_text('{"step": 1, "data": {}}\n{"step": 2, "data": {}}\n')
    assert [one["step"] for one in follower._new(log)] == [2]


def test_only_finished_checkpoints_count(tmp_path: Path) -> None:
    for step in (2, 4, 6):
        (tmp_path / f"global_step_{step}" / "actor").mkdir(parents=True)
    assert checkpoints.complete_steps(tmp_path) == []
    (tmp_path / checkpoints.TRACKER).write_text("4")
    assert checkpoints.complete_steps(tmp_path) == [2, 4]


def test_names_are_ours() -> None:
    record = {"step": 3, "data": {"actor/surgery/weight/a": 0.7, "timing_s/gen": 1.0, "actor/kl_loss": 0.1}}
    row = follow.row_of(record, "grpo")
    assert row == {
        "step": 3, "phase": "grpo", "phase_step": 3, "surgery/weight/a": 0.7, "time/rollout_s": 1.0,
        "actor/kl_loss": 0.1,
    }  # fmt: skip
