"""The hf engine: any causal language model of Transformers, from a folder or the hub, with LoRA or all parameters.

    [engine]
    type = "hf"
    model = "models/smollm2-135m"
    lora_rank = 16

Only safetensors are read and no code that comes with a model is run. Nothing here imports torch before `build`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rlvrlab.errors import UserError
from rlvrlab.registry import register
from rlvrlab.types import CountOrZero, NonNegative, OptimizerSettings

if TYPE_CHECKING:
    from rlvrlab.engines.hf.engine import HfEngine

EMBEDDED = "embedded"


@register("engine", "hf")
@dataclass(frozen=True)
class Hf:
    """A causal language model on Transformers and PEFT."""

    model: str
    """A model on hand (`rlvr model list`), a folder in Hugging Face layout, or a name on the hub."""
    lora_rank: CountOrZero = 0
    """Rank of the adapter; 0 trains every parameter."""
    lora_alpha: NonNegative = 0.0
    """The adapter counts lora_alpha / lora_rank times; 0 takes twice the rank."""
    lora_targets: str = "all-linear"
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
    `http://127.0.0.1:8000/v1`. They need lora_rank > 0."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """Recipes and runs from before `sampler` may still hold `seed`."""
        from pydantic_core import core_schema

        return core_schema.no_info_before_validator_function(_without_seed, handler(source))

    def implies(self) -> dict[str, Any]:
        """Core keys that this plug-in sets where the recipe does not: another program's arithmetic is corrected for."""
        return {} if self.sampler == EMBEDDED else {"correction.level": "token"}

    def beside(self, folder: Path) -> Hf:
        """With the model's folder looked up beside the recipe first, then where the command was started."""
        from rlvrlab.models import locate

        return replace(self, model=locate(self.model, folder))

    def build(self, optimizer: OptimizerSettings) -> HfEngine:
        """Load the model; needs the `hf` extra."""
        if self.sampler != EMBEDDED and not self.lora_rank:
            remedy = "set engine.lora_rank, e.g. 16, or engine.sampler = 'embedded'"
            raise UserError(f"engine.sampler: servers take adapters, and lora_rank = 0 trains all weights; {remedy}")
        try:
            import peft  # noqa: F401
            import torch  # noqa: F401
            import transformers  # noqa: F401
        except ImportError as error:
            raise UserError(f"engine hf needs {error.name}; install it with: pip install 'rlvrlab[hf]'") from None
        from rlvrlab.engines.hf.engine import HfEngine
        from rlvrlab.models import resolve

        return HfEngine(replace(self, model=str(resolve(self.model))), optimizer)


def _without_seed(table: Any) -> Any:
    if not isinstance(table, dict) or "seed" not in table:
        return table
    if table["seed"] != 0:
        raise ValueError("seed is no longer a key: an adapter begins with the same values in every run; remove it")
    return {key: value for key, value in table.items() if key != "seed"}


__all__ = ["EMBEDDED", "Hf"]
