"""The real verl trainer on a local Ray cluster on a CPU, from recipe to evaluation. `make verl-test`; takes minutes."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from rlvrlab.record.run import read_events, read_info, read_metrics
from rlvrlab.train.checkpoint import defect

pytestmark = [pytest.mark.oracle, pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
RECIPE = """
name = "two_skills"
phases = ["grpo"]
[env]
type = "mixture"
members = [
    { type = "countdown", numbers = [2], high = 12, style = "bare", label = "small" },
    { type = "countdown", numbers = [3], high = 30, style = "bare", label = "large" },
]
[reward]
type = "random"  # a model of random weights answers nothing right, and a constant reward teaches nothing
[engine]
type = "verl"
model = "nano"
gpus = 1
rollout = "cpu"
gradient_checkpointing = false
prompt_tokens = 64
[surgery]
type = "mgda"
conflict_threshold = 1.0
group_strategy = "task_type"
noise_every = 2
[data]
train_size = 40
dev_size = 8
[rollout]
n = 4
max_tokens = 8
[grpo]
steps = 2
batch_size = 8
learning_rate = 1e-3
[checkpoint]
every = 1
"""


def rlvr(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from rlvrlab.cli import main; main()", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=1500)


GUARDED = """
[protocol]
type = "sequential"
order = ["small", "large"]
shares = [5, 1]
carry_optimizer = true
[guard]
type = "l2"
protected = ["large"]
"""
"""The anchor of step 0 is needed after a resume in the middle of the first stage; so are the pass rates so far."""


@pytest.fixture
def _verl_is_there() -> None:
    for name in ("verl", "ray", "hydra", "transfer_queue", "torchdata", "peft"):
        if find_spec(name) is None:  # not imported here: that takes this process longer than all else it does
            pytest.skip(f"{name} is not installed; needs verl's environment: make verl-test")


@pytest.mark.usefixtures("_verl_is_there")
def test_a_run_killed_half_way_takes_verl_along_is_resumed_and_evaluated(tmp_path: Path) -> None:
    text = RECIPE.replace("steps = 2", "steps = 6").replace("every = 1", "every = 3")
    (tmp_path / "recipe.toml").write_text(text.replace('group_strategy = "task_type"\nnoise_every = 2\n', "") + GUARDED)
    run = killed_in_step(tmp_path, 5)
    drawn = {step: answers(run, step) for step in (4, 5)}
    done = rlvr(tmp_path, "train", "--resume", str(run), "--json")
    assert done.returncode == 0, done.stderr[-2000:]
    resumed = next(event for event in read_events(run) if event["kind"] == "resume")
    assert resumed["step"] == 3 and read_info(run)["status"] == "finished"
    rows = read_metrics(run)
    lost = [event["step"] for event in read_events(run) if event["kind"] == "lost"]  # verl reports after it has saved
    assert [row["step"] for row in rows] == [step for step in range(7) if step not in lost]
    assert "val-core/mixture/acc" in rows[0]
    assert all(row["actor/grad_norm"] > 0 for row in rows[1:]), "the gradients must not vanish"
    assert any("surgery/weight/difficulty0" in row for row in rows)
    assert len((run / "rollouts" / "step_6.jsonl").read_text().splitlines()) == 32
    # Made again after the resume: the same answers, in the fifth step by weights that an update had moved meanwhile.
    assert {step: answers(run, step) for step in drawn} == drawn
    first, again = (numbers(run, session, 4) for session in (0, 1))
    for name in ("actor/entropy", "actor/grad_norm", "actor/lr", "critic/rewards/mean"):
        assert again[name] == pytest.approx(first[name], rel=1e-3), name
    home = run / "artifacts" / "verl"
    assert [path.name for path in (home / "anchors").iterdir()] == ["step_0_rank_0.safetensors"]
    assert {path.name for path in (home / "difficulty").iterdir()} == {"step_3.json", "step_6.json"}
    before, after = merged(run, 3), merged(run, 6)
    moved = max(float((after[name] - value).abs().max()) for name, value in before.items())
    assert 0 < moved < 1 and all(bool(value.isfinite().all()) for value in after.values())
    evaluated(tmp_path, run)


def answers(run: Path, step: int) -> list[tuple[str, list[int]]]:
    """Problems and tokens of a step: in the record, or where verl's trainer wrote them down for it."""
    places = (run / "rollouts", run / "artifacts" / "verl" / "rollouts")
    (path, *_) = (folder / f"step_{step}.jsonl" for folder in places if (folder / f"step_{step}.jsonl").exists())
    return sorted((row["problem"], row["tokens"]) for row in map(json.loads, path.read_text().splitlines()))


def numbers(run: Path, session: int, step: int) -> dict[str, float]:
    """What verl itself reported of a step, the first time it was started or the second."""
    lines = (run / "artifacts" / "verl" / f"metrics_{session}.jsonl").read_text().splitlines()
    return next(row["data"] for row in map(json.loads, lines) if row["step"] == step and "actor/lr" in row["data"])


def killed_in_step(folder: Path, step: int) -> Path:
    """Its run folder, killed when the answers of this step are known; verl is gone too."""
    command = [sys.executable, "-c", "from rlvrlab.cli import main; main()", "train", "recipe.toml"]
    started = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until = time.monotonic() + 900
    try:
        while not list(folder.glob(f"experiments/**/rollouts/step_{step}.jsonl")):
            assert started.poll() is None and time.monotonic() < until
            time.sleep(0.1)
    finally:  # also where it took too long: verl and Ray must not go on behind the tests that follow
        started.kill()
        started.wait()
    (run,) = (folder / "experiments").iterdir()
    while any(str(run) in line and "main_ppo" in line for line in commands()):
        assert time.monotonic() < until, "verl outlived the process that launched it"
        time.sleep(0.3)
    return run


def merged(run: Path, step: int) -> dict[str, Any]:
    """The weights of a checkpoint, which is whole."""
    from safetensors.torch import load_file

    place = run / "checkpoints" / f"global_step_{step}"
    assert defect(place) is None
    return load_file(next((place / "actor" / "huggingface").glob("*.safetensors")))


def evaluated(folder: Path, run: Path) -> None:
    assert any("merged and loaded back" in event["text"] for event in read_events(run))
    told = rlvr(folder, "eval", "--run", str(run), "--size", "4", "--json")
    assert told.returncode == 0, told.stderr[-2000:]


@pytest.mark.usefixtures("_verl_is_there")
def test_adapters_from_recipe_to_evaluation(tmp_path: Path) -> None:
    (tmp_path / "recipe.toml").write_text(RECIPE)
    words = ["engine.lora_rank=8", "checkpoint.every=2", "grpo.learning_rate=0.01", "surgery.noise_every=1"]
    done = rlvr(tmp_path, "train", "recipe.toml", *words, "--json")
    assert done.returncode == 0, done.stderr[-2000:]
    run = tmp_path / json.loads(done.stdout)["folder"]
    assert read_info(run)["status"] == "finished"
    rows = read_metrics(run)
    assert [row["step"] for row in rows] == [0, 1, 2] and "val-core/mixture/acc" in rows[0]
    updates = rows[1:]
    assert all(row["actor/grad_norm"] > 0 for row in updates), "the gradients must not vanish"
    assert any(abs(row["surgery/weight/large"] - row["surgery/weight/small"]) > 1e-3 for row in updates)
    assert all("reward/random" in row and "advantage/unjudged_rows" in row for row in updates)
    assert any("surgery/permutation_z" in row for row in updates), "a skill of two live problems has halves"
    merged(run, 2)
    assert not list((run / "checkpoints" / "global_step_2" / "actor" / "huggingface").glob("*adapter*"))
    evaluated(tmp_path, run)


@pytest.mark.usefixtures("_verl_is_there")
def test_the_skill_safe_step_bounds_both_skills_that_are_trained_together(tmp_path: Path) -> None:
    """In verl's own trainer: each update is corrected so that neither skill loses by it, to first order."""
    text = RECIPE.replace('type = "mgda"\nconflict_threshold = 1.0\n', 'type = "mean"\n').replace(
        "noise_every = 2\n", ""
    )
    (tmp_path / "recipe.toml").write_text(text + '[guard]\ntype = "skill_safe"\nmemory_per_skill = 4\n')
    done = rlvr(tmp_path, "train", "recipe.toml", "checkpoint.every=2", "--json")
    assert done.returncode == 0, done.stderr[-2000:]
    run = tmp_path / json.loads(done.stdout)["folder"]
    updates = read_metrics(run)[1:]
    assert [row["step"] for row in updates] == [1, 2]
    for row in updates:
        assert row["guard/protected"] == 2.0 and row["guard/violation"] < 1e-5 <= row["actor/grad_norm"]
        assert {"guard/small/memory", "guard/large/memory", "guard/correction"} <= row.keys()


@pytest.mark.usefixtures("_verl_is_there")
def test_phases_one_after_the_other_as_the_plan_prints_them(tmp_path: Path) -> None:
    """SFT on hf, GRPO on verl from its model, and the model that verl's run is exported as."""
    text = RECIPE.replace('["grpo"]', '["sft", "grpo"]').replace('type = "verl"', 'type = "hf"')
    engine = ('gpus = 1\nrollout = "cpu"\n', "gradient_checkpointing = false\nprompt_tokens = 64\n")
    for lines in engine:
        text = text.replace(lines, "")
    sft = "[sft]\nsteps = 2\nbatch_size = 8\nreferences = 8\n"
    (tmp_path / "recipe.toml").write_text(text.replace("[grpo]\n", f"{sft}[grpo]\n"))
    words = ("engine.gpus=1", "engine.rollout=cpu", "engine.prompt_tokens=64", "engine.gradient_checkpointing=false")
    told = rlvr(tmp_path, "train", "recipe.toml", *words, "--engine", "verl", "--plan", "--json")
    assert told.returncode == 0, told.stderr[-2000:]
    parts = json.loads(told.stdout)["parts"]
    assert [part["engine"] for part in parts] == ["hf", "verl"]
    for command in (command for part in parts for command in part["commands"]):
        done = rlvr(tmp_path, *shlex.split(command)[1:])
        assert done.returncode == 0, (command, done.stderr[-2000:])
    (run,) = (tmp_path / "experiments").glob("two_skills_2_*")
    assert read_info(run)["status"] == "finished" and (tmp_path / "two_skills_2" / "config.json").is_file()


def commands() -> list[str]:
    """Of all processes."""
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    return listed.stdout.splitlines()


def test_the_presets_are_recipes_for_verl() -> None:
    """Here for verl's own checks; tests/scale/test_verl_keys.py checks their keys everywhere."""
    pytest.importorskip("hydra", reason="needs verl's environment: make verl-test")
    from rlvrlab.recipe import load_recipe
    from rlvrlab.scale.verl import keys, validate
    from rlvrlab.scale.verl.spelling import override

    presets = sorted((Path(__file__).parents[2] / "recipes").glob("verl_*.toml"))
    assert len(presets) >= 12
    for path in presets:
        wanted = keys.settings(load_recipe(path), "/home")
        config = validate.composed([override(key, value) for key, value in wanted.items()])
        assert config.trainer.n_gpus_per_node == 8
