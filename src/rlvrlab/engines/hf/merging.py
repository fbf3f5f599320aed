"""LoRA adapters in PEFT's layout, merged into a plain model one at a time: what the model server switches between.

Only safetensors and JSON are read. W + s·B·A is summed in float32 and rounded once, as the embedded sampler does it, so
both draw the same answers. Anything that is more than plain LoRA is refused.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from rlvrlab.errors import UserError

PREFIX = "base_model.model."
UNCLEAR = "\0"
"""Marks weights that are neither the base nor a known adapter: they must be merged anew before use."""
UNKNOWN = ("use_dora", "modules_to_save", "rank_pattern", "alpha_pattern", "lora_bias", "layer_replication")
"""Settings that make an adapter more than B·A on some layers."""


class Delta(NamedTuple):
    """The low-rank update of one layer: scale · B·A, added to its weight."""

    b_OR: Tensor
    a_RI: Tensor
    scale: float
    transposed: bool


Adapter = dict[str, Delta]
"""The updates by the name of their module."""


class Merging:
    """A model whose weights hold at most one adapter at a time."""

    def __init__(self, model: Any, largest_rank: int) -> None:
        self._modules = dict(model.named_modules())
        self._largest_rank = largest_rank
        self._base: dict[str, Tensor] = {}
        self._now: str | None = None
        self._adapters: dict[str, Adapter] = {}
        self.folders: dict[str, Path] = {}
        """Where each adapter was read from, by its name."""

    def add(self, name: str, folder: Path) -> None:
        """Read an adapter; it is merged when it is first used."""
        adapter = read_adapter(folder)
        for module, delta in adapter.items():
            target = getattr(self._modules.get(module), "weight", None)
            if target is None:
                raise UserError(f"{folder}: an adapter of another model: this one has no {module}")
            shape = (delta.b_OR.shape[0], delta.a_RI.shape[1])
            if tuple(target.shape) != (shape[::-1] if delta.transposed else shape):
                raise UserError(f"{folder}: an adapter of another model: {module} is {tuple(target.shape)} here")
            if len(delta.a_RI) > self._largest_rank:
                raise UserError(f"{folder}: rank {len(delta.a_RI)}, at most {self._largest_rank} is allowed here")
            if not (torch.isfinite(delta.a_RI).all() and torch.isfinite(delta.b_OR).all()):
                raise UserError(f"{folder}: {module} holds values that are not finite")
        self._adapters[name], self.folders[name] = adapter, folder

    def drop(self, name: str) -> None:
        """Forget an adapter; another may come under its name."""
        del self._adapters[name], self.folders[name]
        if self._now == name:
            self._now = UNCLEAR

    def use(self, name: str | None) -> bool:
        """Give the model this adapter, or none; whether that changed anything."""
        adapter = {} if name is None else self._adapters[name]
        if name == self._now:
            return False
        self._now = UNCLEAR
        with torch.no_grad():
            for module, weight in self._base.items():
                self._modules[module].weight.copy_(weight)
            for module, delta in adapter.items():
                weight = self._modules[module].weight  # not its .data: the sampler sees a change by the version
                base = self._base.setdefault(module, weight.clone()).float()
                b_OR, a_RI = delta.b_OR.to(base.device), delta.a_RI.to(base.device)
                merged = torch.addmm(base.T if delta.transposed else base, b_OR, a_RI, alpha=delta.scale)
                weight.copy_(merged.T if delta.transposed else merged)
        self._now = name
        return True


def read_adapter(folder: Path) -> Adapter:
    """Plain LoRA in PEFT's layout."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        settings = json.loads((folder / "adapter_config.json").read_text(encoding="utf-8"))
        tensors = load_file(folder / "adapter_model.safetensors")
        rank, alpha = int(settings["r"]), float(settings["lora_alpha"])
    except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
        raise UserError(f"No adapter found for {folder}: {type(error).__name__}: {error}") from None
    odd = [key for key in UNKNOWN if settings.get(key)]
    if settings.get("peft_type", "LORA") != "LORA" or odd or settings.get("bias", "none") != "none" or rank < 1:
        raise UserError(f"{folder}: only plain LoRA is served, this has {', '.join(odd) or 'another type'}")
    scale = alpha / (math.sqrt(rank) if settings.get("use_rslora") else rank)
    transposed = bool(settings.get("fan_in_fan_out"))
    names = sorted({name.rpartition(".lora_")[0] for name in tensors})
    try:
        return {
            name.removeprefix(PREFIX): Delta(
                tensors[f"{name}.lora_B.weight"].float(), tensors[f"{name}.lora_A.weight"].float(), scale, transposed
            )
            for name in names
        }
    except KeyError as error:
        raise UserError(f"{folder}: no {error.args[0]} in it; only plain LoRA is served") from None
