"""Peak GPU memory of one update of the hf engine, by a formula whose three numbers were fitted to measurements.

    python -m rlvrlab.scale.sizing        what it says of larger models; docs/cluster.md has the table

An update is at its peak at one of three moments (`moments`): when the logits are made, when a block goes backward, or
in the optimiser's step. Most of what lies in memory then is counted, from what the engine holds in which precision
(bfloat16 has 2 bytes): 2 bytes per frozen parameter. Per trained one 22 while gradients are made (float32 weights, two
moments and their sum of gradients; bfloat16 copy, reference and gradients) and 36 in Adam's step, which needs four
more vectors and no bfloat16 gradients. Per token the four widest activations of a block's MLP and, going backward,
three of their gradients; a block's attention mask by the longest row, and the mask it is made of; the input alone of a
block that is checkpointed; the logits, where they are few enough to be kept. What cannot be counted so is fitted
(`Fitted`) by `python benchmarks/memory_fit.py` to one H200's figures, and a test compares.

It is torch's count of what is allocated: CUDA's own memory and what torch reserves on top come to it. Nothing else was
measured: other GPUs, 4-bit weights, experts, surgery, guards, value heads, several GPUs, verl.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from rlvrlab.shares import about

GB = 1e9
LOGITS_AT_A_TIME, LOGITS_KEPT = 1 << 27, 1 << 30
"""The head's own limits on a GPU (engines/hf/head.py)."""


class Fitted(NamedTuple):
    """Bytes found by least squares on relative errors."""

    block: float
    """Per token and hidden number that a block keeps, besides its MLP and mask."""
    output: float
    """Per token and hidden number behind the last block."""
    logit: float
    """Per logit made at a time, besides the logit itself."""


FITTED = Fitted(block=19.28, output=13.07, logit=11.88)
LARGEST_ERROR = 0.01
"""Of the 21 measured updates, relative."""
OTHER_MODEL_ERROR = 0.12
"""The largest for one of the two models, fitted to the other alone."""
RESERVED_GB = 3.6
"""What torch had reserved beyond the peak, at most."""
SAID = (
    f"a formula fitted to 135M and 1.5B on one H200: at most {about(LARGEST_ERROR)} off there, "
    f"{about(OTHER_MODEL_ERROR)} on the one when fitted to the other; all else is extrapolated; "
    f"torch reserves up to {RESERVED_GB} GB more"
)


class Model(NamedTuple):
    """The sizes that matter of a dense model of Llama's kind."""

    parameters: float
    layers: int
    hidden: int
    intermediate: int
    vocabulary: int

    def adapter(self, rank: int) -> float:
        """Parameters of a LoRA on all linear layers, at most: as many key heads as heads."""
        return rank * self.layers * (11 * self.hidden + 3 * self.intermediate)


MODELS = {
    "135M": Model(134515008, 30, 576, 1536, 49152),
    "1.5B": Model(1777088000, 28, 1536, 8960, 151936),
    "4B": Model(4.0e9, 36, 2560, 9728, 151936),
    "7B": Model(7.6e9, 28, 3584, 18944, 152064),
    "14B": Model(14.8e9, 48, 5120, 13824, 152064),
    "32B": Model(32.8e9, 64, 5120, 27648, 152064),
}
"""The first two were measured; 1.5B is Qwen2.5-Coder's shape with an output layer of its own."""


def model_of(config: Mapping[str, Any], parameters: int) -> Model | None:
    """From a model's config.json; None where the formula is not for it."""
    keys = ("num_hidden_layers", "hidden_size", "intermediate_size", "vocab_size")
    sizes = [config.get(key) for key in keys]
    strange = "quantization_config" in config or any("expert" in key for key in config)
    if strange or not parameters or not all(type(size) is int and size > 0 for size in sizes):
        return None
    return Model(parameters, *sizes)  # type: ignore[arg-type]


class Update(NamedTuple):
    """How a model is updated."""

    at_once: int
    """Tokens of a forward pass: engine.micro_tokens, or all where they are fewer."""
    row: int
    """Tokens of the longest prompt with its answer."""
    adapter: float = 0.0
    """Trained parameters of a LoRA; 0 trains all of the model's."""
    checkpointing: bool = False


class Moment(NamedTuple):
    """A point of an update that may be its peak."""

    counted: float
    """Bytes."""
    times: Fitted
    """How often each of the fitted numbers comes to them."""

    def bytes(self, fitted: Fitted) -> float:
        """In all."""
        return self.counted + sum(number * times for number, times in zip(fitted, self.times, strict=True))


def moments(model: Model, update: Update) -> list[Moment]:
    """The optimiser's step, the logits, a block on its way back."""
    frozen, trained = (model.parameters, update.adapter) if update.adapter else (0.0, model.parameters)
    tokens, hidden, logits = update.at_once, update.at_once * model.hidden, update.at_once * model.vocabulary
    norms = 0 if update.adapter else 4 * hidden  # inputs of the two norms' weights, where these are trained
    block = tokens * (8 * model.intermediate + 2 * update.row) + norms
    whole = 0 if update.checkpointing else model.layers
    inputs = 2 * hidden * model.layers if update.checkpointing else 0
    held = 2 * frozen + 22 * trained + tokens * update.row + inputs + whole * block
    made = min(logits, LOGITS_AT_A_TIME)
    again = int(update.checkpointing)
    return [
        Moment(2 * frozen + 36 * trained, Fitted(0, 0, 0)),
        Moment(held + 2 * (logits if logits <= LOGITS_KEPT else made), Fitted(whole * hidden, hidden, made)),
        Moment(held + 6 * tokens * model.intermediate + again * block, Fitted((whole + again) * hidden, 0, 0)),
    ]


def peak_gb(model: Model, update: Update, fitted: Fitted = FITTED) -> float:
    """What an update allocates at its peak, by the formula."""
    return max(moment.bytes(fitted) for moment in moments(model, update)) / GB


def four_ways(model: Model, at_once: int, row: int, rank: int = 16) -> dict[str, float]:
    """A LoRA and all parameters, without and with checkpointing."""
    adapters = {f"LoRA {rank}": model.adapter(rank), "all parameters": 0.0}
    return {
        name + words: peak_gb(model, Update(at_once, row, adapter, bool(words)))
        for name, adapter in adapters.items()
        for words in ("", ", checkpointing")
    }


def table(at_once: int = 16384, row: int = 2048) -> str:
    """What the formula says of all models, with these tokens at once."""
    cases = {name: four_ways(model, at_once, row) for name, model in MODELS.items()}
    lines = [f"| GB, {at_once:,} tokens at once | {' | '.join(cases['7B'])} |", "|---|---|---|---|---|"]
    lines += [f"| {name} | {' | '.join(f'{one:.0f}' for one in by.values())} |" for name, by in cases.items()]
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
