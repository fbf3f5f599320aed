"""Recipes in parts, one of them trained by the real verl on a CPU. `make verl-test`; takes minutes."""

from __future__ import annotations

import json
import shlex
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from verl_runs import merged, needs_verl, rlvr

from rlvrlab.record.run import read_events, read_info, read_metrics

pytestmark = [pytest.mark.oracle, pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
FOUR = """
name = "four"
phases = ["sft", "dpo", "grpo", "repair"]
[env]
type = "minicode"
skills = ["gen"]
levels = [1]
[engine]
type = "hf"
model = "nano"
[data]
train_size = 300
dev_size = 24
[rollout]
n = 8
max_tokens = 7  # most right answers have as many, the end token with them: they are not cut off
[eval]
every = 0
test_size = 8
[optimizer]
warmup_steps = 10
[sft]
steps = 60
batch_size = 32
learning_rate = 3e-3
references = 300
[dpo]
steps = 3
batch_size = 8
problems = 24
learning_rate = 3e-4
[grpo]
steps = 2
batch_size = 16
learning_rate = 5e-4
[repair]
steps = 3
batch_size = 8
problems = 24
learning_rate = 5e-4
"""
"""After so much SFT some answers are right and others wrong, which the later phases live on."""
VERL = ("engine.gpus=1", "engine.rollout=cpu", "engine.prompt_tokens=64", "engine.gradient_checkpointing=false")


@needs_verl
def test_phases_one_after_the_other_as_the_plan_prints_them(tmp_path: Path) -> None:
    """SFT and DPO on hf, GRPO on verl, repair on hf: every phase trains, and from the last model of the one before."""
    (tmp_path / "recipe.toml").write_text(FOUR)
    told = rlvr(tmp_path, "train", "recipe.toml", *VERL, "--engine", "verl", "--plan", "--json")
    assert told.returncode == 0, told.stderr[-2000:]
    parts = json.loads(told.stdout)["parts"]
    assert [(part["engine"], part["phases"]) for part in parts] == [
        ("hf", ["sft", "dpo"]), ("verl", ["grpo"]), ("hf", ["repair"]),
    ]  # fmt: skip
    for command in (command for part in parts for command in part["commands"]):
        done = rlvr(tmp_path, *shlex.split(command)[1:])
        assert done.returncode == 0, (command, done.stderr[-2000:])
    runs = [next((tmp_path / "experiments").glob(f"four_{number}_*")) for number in (1, 2, 3)]
    assert [updates(run) for run in runs] == [{"sft": 60, "dpo": 3}, {"grpo": 2}, {"repair": 3}]
    trained = [row for run in runs for row in read_metrics(run) if row["phase_step"]]
    assert {name for row in trained for name in row if name.endswith("/pairs")} == {"dpo/pairs", "repair/pairs"}
    for number, (before, run) in enumerate(pairwise(runs), 1):
        first, last = read_metrics(run)[0], read_metrics(before)[-1]
        assert examined(first) == examined(last) and first["val-core/minicode/acc"] > 0
        model = json.loads((run / "config.json").read_text())["recipe"]["engine"]["model"]
        assert model == str(tmp_path / f"four_{number}")
        assert apart(merged(before, last["step"]), exported(Path(model))) == 0
    models = [exported(tmp_path / f"four_{number}") for number in (1, 2, 3)]
    assert all(apart(before, after) > 1e-5 for before, after in pairwise(models))


def updates(run: Path) -> dict[str, int]:
    """How often the weights were changed in each phase of a finished run."""
    assert read_info(run)["status"] == "finished" and not read_info(run).get("skipped")
    assert not [event for event in read_events(run) if event["kind"] in ("skipped_update", "surgery_failed")]
    counts: dict[str, int] = {}
    for row in read_metrics(run):
        left_out = row.get("actor/silent") or row.get("actor/silent_update") or row.get("actor/skipped")
        counts.setdefault(row["phase"], 0)
        counts[row["phase"]] += row.get("actor/grad_norm", 0.0) > 0 and not left_out
    return counts


def examined(row: dict[str, Any]) -> dict[str, float]:
    """All that an evaluation on dev problems found: right answers, and errors by kind."""
    return {name: value for name, value in row.items() if name.startswith("val-core/")}


def exported(folder: Path) -> dict[str, Any]:
    from safetensors.torch import load_file

    return load_file(next(folder.glob("*.safetensors")))


def apart(these: dict[str, Any], those: dict[str, Any]) -> float:
    """The largest difference of any two weights."""
    assert these.keys() == those.keys()
    return max(float((those[name] - value).abs().max()) for name, value in these.items())


def test_the_presets_are_recipes_for_verl() -> None:
    """Here for verl's own checks; tests/scale/test_verl_keys.py checks their keys everywhere."""
    pytest.importorskip("hydra", reason="needs verl's environment: make verl-test")
    from rlvrlab.recipe import load_recipe
    from rlvrlab.scale.verl import keys, validate
    from rlvrlab.scale.verl.spelling import override

    presets = sorted((Path(__file__).parents[2] / "recipes").glob("verl_*.toml"))
    assert len(presets) >= 14
    for path in presets:
        wanted = keys.settings(load_recipe(path), "/home")
        config = validate.composed([override(key, value) for key, value in wanted.items()])
        assert config.trainer.n_gpus_per_node == 8
