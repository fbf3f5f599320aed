"""verl's sharded checkpoints as ours: merged to `actor/huggingface`, loaded back as proof, with a manifest.

    python -m rlvrlab.scale.verl.checkpoints FOLDER      loads a merged model and scores a few tokens with it
verl's own files stay under artifacts/verl/checkpoints: verl resumes from them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from rlvrlab.errors import CheckpointError
from rlvrlab.train import checkpoint
from rlvrlab.train.state import State

TRACKER = "latest_checkpointed_iteration.txt"
LIMIT_S = 3600


def complete_steps(raw: Path) -> list[int]:
    """Steps of verl's checkpoints that were written to the end: verl notes each in its tracker afterwards."""
    try:
        latest = int((raw / TRACKER).read_text().strip())
    except (OSError, ValueError):
        return []
    there = [path.name.removeprefix("global_step_") for path in raw.glob("global_step_*") if (path / "actor").is_dir()]
    return sorted(int(name) for name in there if name.isdigit() and int(name) <= latest)


def mend_tracker(raw: Path, folder: Path) -> int | None:
    """Where a full disk or a kill left verl's tracker without a number, write the last step that we could merge."""
    path = raw / TRACKER
    if not path.is_file() or path.read_text(errors="replace").strip().isdecimal():
        return None
    there = [int(one.name.removeprefix("global_step_")) for one in folder.glob("global_step_*")]
    whole = [step for step in there if (raw / f"global_step_{step}" / "actor").is_dir()]
    if not whole:
        path.unlink()  # verl would stop at it; without one it begins anew
        return 0
    path.write_text(str(max(whole)))
    return max(whole)


def index(raw: Path, folder: Path, state: State, python: str) -> Path:
    """Merge one of verl's checkpoints into the run's folder of checkpoints; all of it or nothing."""
    source: Any = _Sharded(raw / f"global_step_{state.step}" / "actor", python)
    return checkpoint.save(folder, source, state)


class _Sharded:
    """As much of an engine as saving a checkpoint asks for."""

    def __init__(self, actor: Path, python: str) -> None:
        self._actor, self._python = actor, python

    def save(self, folder: Path) -> None:
        """Merge, and prove that the result is a model."""
        target = folder / "huggingface"
        target.mkdir(parents=True)
        arguments = ["--backend", "fsdp", "--local_dir", str(self._actor), "--target_dir", str(target)]
        _run([self._python, "-m", "verl.model_merger", "merge", *arguments], f"{self._actor}: verl's merger failed")
        proof = _run([self._python, "-m", "rlvrlab.scale.verl.checkpoints", str(target)], f"{target}: no model")
        (folder / "proof.json").write_text(proof.strip().splitlines()[-1] + "\n", encoding="utf-8")

    def snapshot(self) -> None:
        """Whether the weights are finite is seen when they are loaded back."""

    def pull(self, snapshot: None) -> None:
        """See snapshot."""

    def gramian(self, vectors: list[None]) -> dict[str, list[list[float]]]:
        """See snapshot."""
        return {"global": np.zeros((1, 1))}  # type: ignore[dict-item]

    def release(self, vectors: list[None]) -> None:
        """Nothing is held."""


def _run(command: list[str], trouble: str) -> str:
    quiet = {"CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1"}  # a GPU belongs to the training that goes on
    environment = {**os.environ, **quiet}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, env=environment)  # noqa: S603
    except subprocess.TimeoutExpired:
        raise CheckpointError(f"{trouble}: not done after {LIMIT_S} s") from None
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip() or "no word").splitlines()[-1]
        raise CheckpointError(f"{trouble}: {last}")
    return done.stdout


def prove(folder: Path) -> dict[str, Any]:
    """Load with plain Transformers and score a few tokens; an adapter beside the weights is merged into them first."""
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, use_safetensors=True, trust_remote_code=False
    )
    adapter = folder / "lora_adapter"
    if adapter.is_dir():
        from peft import PeftModel

        model = PeftModel.from_pretrained(model, adapter).merge_and_unload()
        model.save_pretrained(folder)
        shutil.rmtree(adapter)
    tokens = torch.arange(1, 9)[None, :] % model.config.vocab_size
    with torch.no_grad():
        scores = torch.log_softmax(model(tokens).logits.float(), -1)[0, :-1].gather(1, tokens[0, 1:, None])
    if not bool(torch.isfinite(scores).all()) or not all(bool(torch.isfinite(p).all()) for p in model.parameters()):
        raise CheckpointError(f"{folder}: weights are NaN or infinite; lower the learning rate")
    return {"parameters": sum(p.numel() for p in model.parameters()), "mean_logprob": float(scores.mean())}


if __name__ == "__main__":
    try:
        print(json.dumps(prove(Path(sys.argv[1]))))
    except CheckpointError as error:
        sys.exit(str(error))
