"""What a run on verl will need, estimated before anything is paid for. Rules of thumb, not measurements.

    python -m rlvrlab.scale.verl.sizing        the table of docs/cluster.md

Memory per GPU while updating: FSDP shards float32 weights, gradients and two moments (16 bytes per trained parameter, 4
per frozen one, 4 more per skill under surgery); logits of one micro-batch in float32 with their gradient; one bfloat16
activation per layer and token, with gradient checkpointing. While sampling: bfloat16 weights over tensor_parallel GPUs.
Time: 2 operations per parameter and token forward, 4 backward, 2 for recomputing, at 35 % of an A100's peak, and
ANSWER_TOKENS_S for sampling.
"""

from __future__ import annotations

from typing import NamedTuple

PEAK_FLOPS = 312e12
USED = 0.35
ANSWER_TOKENS_S = 2500.0
"""Sampled tokens per second and GPU of a 7B model with many requests at once; falls with the model's size."""
GB = 1e9


class Model(NamedTuple):
    """The sizes that matter."""

    parameters: float
    layers: int
    hidden: int
    vocabulary: int


MODELS = {
    "4B": Model(4.0e9, 36, 2560, 151936),
    "7B": Model(7.6e9, 28, 3584, 152064),
    "14B": Model(14.8e9, 48, 5120, 152064),
    "32B": Model(32.8e9, 64, 5120, 152064),
}


class Need(NamedTuple):
    """Per GPU, and per step."""

    update_gb: float
    sampling_gb: float
    sample_s: float
    update_s: float


def need(
    model: Model,
    *,
    gpus: int,
    rows: int,
    tokens: int,
    micro_tokens: int = 16384,
    tensor_parallel: int = 1,
    lora: bool = False,
    skills: int = 0,
    reference: bool = False,
) -> Need:
    """`rows` answers of `tokens` tokens per step, prompts included; one pass of updates."""
    state = (4.0 if lora else 16.0 + 4.0 * skills) * model.parameters / gpus
    frozen = 4.0 * model.parameters / gpus if reference and not lora else 0.0
    logits = 8.0 * micro_tokens * model.vocabulary
    activations = 2.0 * micro_tokens * model.hidden * model.layers
    passes = 2.0 + (6.0 if lora else 8.0) + (2.0 if reference else 0.0)
    work = passes * model.parameters * rows * tokens
    rate = ANSWER_TOKENS_S * 7.6e9 / model.parameters * gpus
    return Need(
        update_gb=(state + frozen + logits + activations) / GB,
        sampling_gb=2.0 * model.parameters / tensor_parallel / GB,
        sample_s=rows * tokens / rate,
        update_s=work / (gpus * PEAK_FLOPS * USED),
    )


def table() -> str:
    """The cases of the presets in recipes/verl_*.toml."""
    cases = [
        ("4B, all parameters", need(MODELS["4B"], gpus=8, rows=1024, tokens=1024, reference=True)),
        ("7B, all parameters", need(MODELS["7B"], gpus=8, rows=512, tokens=2048)),
        ("7B, all parameters, 4 skills", need(MODELS["7B"], gpus=8, rows=512, tokens=2048, skills=4)),
        ("7B, LoRA, 4 skills", need(MODELS["7B"], gpus=8, rows=512, tokens=1024, lora=True, skills=4)),
        ("14B, LoRA", need(MODELS["14B"], gpus=8, rows=512, tokens=1024, lora=True, tensor_parallel=2)),
        ("32B, LoRA", need(MODELS["32B"], gpus=8, rows=512, tokens=1024, lora=True, tensor_parallel=4)),
    ]
    lines = ["| model, 8 GPUs | GB while updating | GB of weights while sampling | s sampling | s updating |"]
    lines.append("|---|---|---|---|---|")
    for name, one in cases:
        lines.append(
            f"| {name} | {one.update_gb:.0f} | {one.sampling_gb:.0f} | {one.sample_s:.0f} | {one.update_s:.0f} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
