"""Small runs of the real verl trainer on a local Ray cluster on a CPU, and what their folders say."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from rlvrlab.record.run import read_events
from rlvrlab.train.checkpoint import defect

PARTS = ("verl", "ray", "hydra", "transfer_queue", "torchdata", "peft")
needs_verl = pytest.mark.skipif(  # not imported here: that takes this process longer than all else it does
    any(find_spec(name) is None for name in PARTS), reason="needs verl's environment: make verl-test"
)
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


def commands() -> list[str]:
    """Of all processes."""
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    return listed.stdout.splitlines()


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
