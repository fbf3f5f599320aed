"""Score tokens with a folder's model through plain Transformers: an opinion independent of the training engine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from rlvrlab.errors import InfrastructureError, UserError
from rlvrlab.extras import install_hf
from rlvrlab.models.quiet import quiet_transformers


class Scores(NamedTuple):
    """What Transformers says about a folder's model."""

    logprobs: list[list[float]]
    """Of each answer's tokens after its prompt, in float32."""
    parameters: int
    greedy: int
    """Tokens that are also the most likely ones."""


def rescore(folder: Path, rows: Sequence[tuple[Sequence[int], Sequence[int]]]) -> Scores:
    """Load the model anew and score (prompt, answer) pairs, one at a time: no padding that could hide a mistake."""
    try:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer
    except ImportError as error:
        raise UserError(f"{error.name}: not installed, and needed to check; {install_hf()}") from None
    with quiet_transformers():
        AutoTokenizer.from_pretrained(folder, local_files_only=True)
        model, loading = AutoModelForCausalLM.from_pretrained(
            folder, local_files_only=True, use_safetensors=True, dtype=torch.float32, output_loading_info=True
        )
    if loading["missing_keys"] or loading["unexpected_keys"]:
        raise InfrastructureError(f"{folder}: weights and configuration do not fit ({loading['missing_keys']})")
    if not all(bool(torch.isfinite(p).all()) for p in model.parameters()):
        raise InfrastructureError(f"{folder}: weights are NaN or infinite")
    logprobs, greedy = [], 0
    model.eval()
    with torch.inference_mode():
        for prompt, answer in rows:
            logits = model(input_ids=torch.tensor([[*prompt, *answer]])).logits[0, len(prompt) - 1 : -1]
            wanted = torch.tensor(list(answer))
            logprobs.append(logits.log_softmax(-1)[torch.arange(len(wanted)), wanted].tolist())
            greedy += int((logits.argmax(-1) == wanted).sum())
    return Scores(logprobs, sum(p.numel() for p in model.parameters()), greedy)
