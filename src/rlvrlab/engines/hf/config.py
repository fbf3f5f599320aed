"""What a recipe's [engine] table says about an hf engine; the engine, its loader and its server read it.

Apart from table.py, so that those can name the type without importing what builds them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rlvrlab.types import CountOrZero, NonNegative

EMBEDDED = "embedded"
ALL_LINEAR = "all-linear"
"""PEFT's word for every linear layer but the output layer."""
ADAPTER_SEED = 0
"""An adapter's first values are drawn with it, so that they are the same in every run."""
MICRO_TOKENS = {"cpu": 4096, "cuda": 32768}


@dataclass(frozen=True)
class HfConfig:
    """The keys of `[engine] type = "hf"`."""

    model: str
    """A model on hand (`rlvr model list`), a folder in Hugging Face layout, or a name on the hub."""
    lora_rank: CountOrZero = 0
    """Rank of the adapter; 0 trains every parameter."""
    lora_alpha: NonNegative = 0.0
    """The adapter counts lora_alpha / lora_rank times; 0 takes twice the rank."""
    lora_targets: str = ALL_LINEAR
    """Modules that get an adapter, separated by commas: `q_proj,v_proj`; all-linear takes all but the output layer."""
    dtype: Literal["auto", "bfloat16", "float32"] = "auto"
    """Arithmetic of the model; auto is bfloat16 on a GPU and float32 on a CPU. Updates are always float32."""
    device: str = "auto"
    """cpu, cuda, cuda:1, …; auto takes a GPU when there is one."""
    micro_tokens: CountOrZero = 0
    """Tokens per forward pass; 0 takes 4096 on a CPU and 32768 on a GPU. Never changes a result beyond rounding."""
    gradient_checkpointing: bool = False
    """Make activations again in the backward pass: less memory, about a third more time."""
    quantize: Literal["none", "4bit"] = "none"
    """4bit holds the frozen weights in NF4 (QLoRA); needs bitsandbytes, a GPU and lora_rank > 0."""
    chat: bool = False
    """Wrap prompts in the tokenizer's chat template."""
    packing: bool = True
    """Compute shared prompts once; an architecture where that is not exact is padded instead."""
    sampler: str = EMBEDDED
    """embedded draws answers here; or servers that load the adapter after each update, separated by commas:
    `http://127.0.0.1:8000/v1`, or a file with one address on a line, which may change while the run trains. A server
    that does not see this machine's folder has its door behind it: `http://HOST:8000 adapters=http://HOST:9000`. They
    need lora_rank > 0."""

    def tokens_at_once(self, device: str) -> int:
        """Tokens per forward pass on a device of this type."""
        return self.micro_tokens or MICRO_TOKENS.get(device, MICRO_TOKENS["cuda"])


def alpha_of(rank: int, alpha: float) -> float:
    """What a recipe's `lora_alpha` stands for: 0 takes twice the rank."""
    return alpha or 2 * rank
