"""A recipe on the hf engine through the whole loop, and its exact resume."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import needs_torch  # noqa: F401
import pytest
from tiny_models import tiny

from rlvrlab.recipe import load_recipe
from rlvrlab.train import session

RECIPE = """
name = "tiny_hf"
question = "Does a language model go through every phase, and end where an uninterrupted run ends?"
phases = ["sft", "dpo", "grpo", "ppo"]
[env]
type = "countdown"
numbers = [2]
high = 9
style = "bare"
[reward]
type = "random"
[data]
train_size = 12
dev_size = 4
[rollout]
n = 4
max_tokens = 6
[eval]
every = 2
[checkpoint]
every = 2
keep = 9
[kl]
coef = 0.01
[sft]
steps = 40
batch_size = 12
references = 12
learning_rate = 0.03
[dpo]
steps = 2
batch_size = 4
problems = 12
[grpo]
steps = 3
batch_size = 4
[ppo]
steps = 2
batch_size = 4
"""


def quiet(*_: object) -> None:
    pass


def metrics(folder: Path) -> bytes:
    """To the byte, less the clock."""
    return re.sub(rb', "time/[^"]+": [^,}]+', b"", (folder / "logs" / "metrics.jsonl").read_bytes())


@pytest.mark.slow
@pytest.mark.parametrize(("rank", "phases"), [(4, '["sft", "dpo", "grpo", "ppo"]'), (0, '["sft", "grpo", "ppo"]')])
def test_all_phases_and_a_resume_from_the_middle(tmp_path: Path, rank: int, phases: str) -> None:
    (tmp_path / "tiny.toml").write_text(RECIPE)
    keys = ["engine.type=hf", f"engine.model={tiny('llama')}", f"engine.lora_rank={rank}", "engine.device=cpu"]
    keys.append(f"phases={phases}")
    whole = session.start(load_recipe(tmp_path / "tiny.toml", [*keys, f"output_dir={tmp_path / 'out'}"]), quiet)
    assert whole.status == "finished"
    steps = sorted(int(path.name.rpartition("_")[2]) for path in (whole.folder / "checkpoints").iterdir())
    assert len(steps) > 3
    cut = Path(shutil.copytree(whole.folder, tmp_path / "copy" / whole.folder.name))
    for step in steps[len(steps) // 2 :]:
        shutil.rmtree(cut / "checkpoints" / f"global_step_{step}")
    assert session.resume(cut, quiet).status == "finished"
    assert metrics(cut) == metrics(whole.folder)
    last = f"checkpoints/global_step_{steps[-1]}/actor/engine.safetensors"
    assert (cut / last).read_bytes() == (whole.folder / last).read_bytes()


TWO_SKILLS = """type = "mixture"
members = [
  {type = "countdown", label = "plus", numbers = [2], high = 9, operators = "+", style = "bare"},
  {type = "countdown", label = "times", numbers = [2], high = 9, operators = "*", style = "bare"},
]
[protocol]
type = "sequential"
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "guard",
    [
        ["guard.type=penalty", "guard.loss=kl_full", "guard.memory_per_skill=2"],
        ["guard.type=proximal", "guard.gradient=kl_full", "guard.constraints=2", "guard.memory_per_skill=4"],
        ["guard.type=average", "guard.decay=0.5", "guard.every=2"],
    ],
    ids=["exact KL", "proximal", "average"],
)
def test_guards_with_anchors_and_vectors_resume_exactly(tmp_path: Path, guard: list[str]) -> None:
    """Cut two steps into the second stage; the exact KL is 0 in that stage's first update and not in its second."""
    env = RECIPE[RECIPE.index('type = "countdown"') : RECIPE.index("[reward]")]
    (tmp_path / "tiny.toml").write_text(RECIPE.replace(env, TWO_SKILLS))
    keys = ["engine.type=hf", f"engine.model={tiny('llama')}", "engine.lora_rank=4", "engine.device=cpu", *guard]
    keys += ['phases=["grpo"]', "grpo.steps=8", "eval.every=0", f"output_dir={tmp_path / 'out'}"]
    whole = session.start(load_recipe(tmp_path / "tiny.toml", keys), quiet)
    cut = Path(shutil.copytree(whole.folder, tmp_path / "copy" / whole.folder.name))
    for step in (7, 8):
        shutil.rmtree(cut / "checkpoints" / f"global_step_{step}", ignore_errors=True)
    assert session.resume(cut, quiet).status == "finished"
    assert metrics(cut) == metrics(whole.folder)
    rows = [json.loads(line) for line in (whole.folder / "logs" / "metrics.jsonl").read_text().splitlines()]
    losses = [row["guard/plus/loss"] for row in rows if "guard/plus/loss" in row]
    assert "guard.type=penalty" not in guard or (losses[0] == 0.0 < losses[1] and len(losses) == 4)
    assert any(key.startswith("guard/") for row in rows for key in row)
