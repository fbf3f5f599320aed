"""LoRA on a model of our own: PEFT's names, first values, arithmetic and files, without importing it."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from rlvrlab.engines.hf.config import ADAPTER_SEED, ALL_LINEAR, HfConfig, alpha_of
from rlvrlab.models.tensors import ADAPTER_CONFIG

NAME = "default"
"""PEFT's name for the one adapter of a model."""
SETTINGS = {
    "peft_type": "LORA", "task_type": "CAUSAL_LM", "bias": "none", "fan_in_fan_out": False, "inference_mode": False,
    "init_lora_weights": True, "lora_dropout": 0.0, "use_dora": False, "use_rslora": False, "modules_to_save": None,
    "rank_pattern": {}, "alpha_pattern": {}, "layers_to_transform": None, "layers_pattern": None,
}  # fmt: skip
"""What adapter_config.json says of every adapter that is made here."""


class AdaptedLinear(nn.Module):  # type: ignore[misc]
    """A frozen linear layer with an adapter; attributes are those of PEFT's, which adapters.py and others read."""

    merged = disable_adapters = fan_in_fan_out = False
    lora_variant: ClassVar[Any] = MappingProxyType({})

    def __init__(self, base: Any, rank: int, scale: float) -> None:
        super().__init__()
        self.base_layer, self.scaling, self.active_adapters = base, {NAME: scale}, [NAME]
        self.in_features, self.out_features = base.in_features, base.out_features
        self.lora_dropout = nn.ModuleDict({NAME: nn.Identity()})
        # Both draw their first values and A draws again: PEFT's numbers, from the same seed.
        self.lora_A = nn.ModuleDict({NAME: nn.Linear(base.in_features, rank, bias=False)})
        self.lora_B = nn.ModuleDict({NAME: nn.Linear(rank, base.out_features, bias=False)})
        nn.init.kaiming_uniform_(self.lora_A[NAME].weight, a=math.sqrt(5))
        nn.init.zeros_(self.lora_B[NAME].weight)
        for side in (self.lora_A, self.lora_B):
            side.to(base.weight.device, base.weight.dtype)

    def forward(self, x: Tensor) -> Any:
        """As PEFT computes it; adapters.py has a faster way."""
        return self.base_layer(x) + self.lora_B[NAME](self.lora_A[NAME](x)) * self.scaling[NAME]

    def get_delta_weight(self, name: str) -> Tensor:
        """What a merge adds to the layer's weight."""
        return self.lora_B[name].weight @ self.lora_A[name].weight * self.scaling[name]


class OwnAdapter:
    """The adapter of a model, inside it."""

    def __init__(self, model: Any, settings: dict[str, Any]) -> None:
        self.model, self.settings = model, settings

    def state(self) -> dict[str, Tensor]:
        """Its tensors by the names that PEFT gives them in a file."""
        named = {name: tensor for name, tensor in self.model.state_dict().items() if ".lora_" in name}
        return {f"base_model.model.{name.replace(f'.{NAME}.', '.')}": tensor for name, tensor in named.items()}

    def save_settings(self, folder: Path) -> None:
        """adapter_config.json, for PEFT and servers."""
        (folder / ADAPTER_CONFIG).write_text(json.dumps(self.settings, indent=2), encoding="utf-8")


def targets_of(tensors: Iterable[str], asked: str) -> set[str] | None:
    """The linear layers of blocks that the recipe asks for; None where it asks for anything beside them, or for what
    is not there: PEFT knows what to do or to say then."""
    parts = [name.split(".") for name in tensors]
    modules = {".".join(words[:end]) for words in parts for end in range(1, len(words))}
    linear = {name for name in modules if name.endswith("_proj")}
    if asked == ALL_LINEAR:
        return linear
    by_target = [{name for name in modules if f".{name}".endswith(f".{one}")} for one in asked.split(",")]
    found = set().union(*by_target)
    return found if all(by_target) and found <= linear else None


def add(model: Any, targets: Collection[str], config: HfConfig) -> OwnAdapter:
    """Freeze the model and give these layers adapters; their first values are the same in every run."""
    rank, alpha = config.lora_rank, alpha_of(config.lora_rank, config.lora_alpha)
    model.requires_grad_(False)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(ADAPTER_SEED)
        for name in [name for name, _ in model.named_modules() if name in targets]:
            parent, _, last = name.rpartition(".")
            above = model.get_submodule(parent)
            setattr(above, last, AdaptedLinear(getattr(above, last), rank, alpha / rank))
    every = {name.rpartition(".")[2] for name in targets}
    asked = every if config.lora_targets == ALL_LINEAR else set(config.lora_targets.split(","))
    own = {"r": rank, "lora_alpha": alpha, "target_modules": sorted(asked), "base_model_name_or_path": config.model}
    return OwnAdapter(model, SETTINGS | own)
