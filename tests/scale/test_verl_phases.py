"""A recipe in parts, one of them trained by the real verl on a CPU. `make verl-test`; takes minutes."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from verl_runs import RECIPE, needs_verl, rlvr

from rlvrlab.record.run import read_info

pytestmark = [pytest.mark.oracle, pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@needs_verl
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
