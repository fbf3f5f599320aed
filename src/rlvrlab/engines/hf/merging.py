"""LoRA adapters in PEFT's layout, merged into a plain model one at a time: what the model server switches between.

Only safetensors and JSON are read. W + s·B·A is summed in float32 and rounded once, as the embedded sampler does it, so
both draw the same answers. Anything that is more than plain LoRA is refused.
"""

from __future__ import annotations

import json
import math
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from rlvrlab.errors import UserError

PREFIX = "base_model.model."
UNCLEAR = object()
"""In place of an adapter: the weights are neither the base nor a known adapter, and must be merged anew before use."""
LARGEST_CONFIG = 1 << 20
UNKNOWN = ("use_dora", "modules_to_save", "rank_pattern", "alpha_pattern", "lora_bias", "layer_replication")
"""Settings that make an adapter more than B·A on some layers."""


class Delta(NamedTuple):
    """The low-rank update of one layer: scale · B·A, added to its weight."""

    b_OR: Tensor
    a_RI: Tensor
    scale: float
    transposed: bool

    def reach(self) -> float:
        """What no entry of the update exceeds; nan where there is one in it."""
        return abs(self.scale) * float(self.b_OR.abs().max()) * float(self.a_RI.abs().max()) * len(self.a_RI)


Deltas = dict[str, Delta]
"""The updates by the name of their module."""


@dataclass(frozen=True, eq=False)
class Adapter:
    """One that was loaded. Two of them are never equal: a name may be given to another, and is no proof of weights."""

    name: str
    folder: Path
    deltas: Deltas


class Merging:
    """A model whose weights hold at most one adapter at a time.

    One thread merges (`use`), and it alone knows what the weights hold now; another may add and drop meanwhile.
    """

    def __init__(self, model: Any, largest_rank: int) -> None:
        self._modules = dict(model.named_modules())
        self._largest_rank = largest_rank
        self._shared = _sharers(self._modules)
        self._base: dict[Tensor, Tensor] = {}
        """By the weight itself, not by the name of a module that has it."""
        self._now: object = None
        """The adapter that is merged, None for the base."""
        self.adapters: dict[str, Adapter] = {}

    def read(self, folder: Path) -> Deltas:
        """The adapter of a folder, if it is one of this model and can be merged."""
        deltas = read_adapter(folder)
        for module, delta in deltas.items():
            target = getattr(self._modules.get(module), "weight", None)
            if target is None:
                raise UserError(f"{folder}: an adapter of another model: this one has no {module}")
            if module in self._shared:
                other = self._shared[module]
                raise UserError(f"{folder}: {module} shares its weight with {other} in this model; leave it out")
            shape = (delta.b_OR.shape[0], delta.a_RI.shape[1])
            if tuple(target.shape) != (shape[::-1] if delta.transposed else shape):
                raise UserError(f"{folder}: an adapter of another model: {module} is {tuple(target.shape)} here")
            if len(delta.a_RI) > self._largest_rank:
                raise UserError(f"{folder}: rank {len(delta.a_RI)}, at most {self._largest_rank} is allowed here")
            if not delta.reach() < torch.finfo(target.dtype).max:
                raise UserError(f"{folder}: {module} holds values that are not finite, or not once they are merged")
        return deltas

    def add(self, name: str, folder: Path, deltas: Deltas) -> Adapter:
        """Take an adapter that was read; it is merged when it is first used."""
        self.adapters[name] = adapter = Adapter(name, folder, deltas)
        return adapter

    def drop(self, name: str) -> None:
        """Forget an adapter; another may come under its name."""
        del self.adapters[name]

    def use(self, adapter: Adapter | None) -> bool:
        """Give the model this adapter, or none; whether that changed anything."""
        if adapter is self._now:
            return False
        self._now = UNCLEAR
        with torch.no_grad():
            for weight, base in self._base.items():
                weight.copy_(base)
            for module, delta in adapter.deltas.items() if adapter else ():
                self._merge(self._modules[module].weight, delta)
        self._now = adapter
        return True

    def _merge(self, weight: Tensor, delta: Delta) -> None:
        """`weight` is the parameter, not its .data: the sampler sees a change by the version."""
        if weight not in self._base:
            self._base[weight] = weight.clone()
        base = self._base[weight].float()
        b_OR, a_RI = delta.b_OR.to(base.device), delta.a_RI.to(base.device)
        merged = torch.addmm(base.T if delta.transposed else base, b_OR, a_RI, alpha=delta.scale)
        weight.copy_(merged.T if delta.transposed else merged)


def _sharers(modules: Mapping[str, Any]) -> dict[str, str]:
    """Modules whose weight another one has too, e.g. a head that is the embedding; each with one of the others."""
    having: dict[int, list[str]] = {}
    for name, module in modules.items():
        weight = getattr(module, "weight", None)
        if isinstance(weight, Tensor):
            having.setdefault(weight.data_ptr(), []).append(name)
    return {names[i]: names[i - 1] for names in having.values() if len(names) > 1 for i in range(len(names))}


def read_adapter(folder: Path) -> Deltas:
    """Plain LoRA in PEFT's layout."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        settings = json.loads(_plain_file(folder / "adapter_config.json", LARGEST_CONFIG).read_text(encoding="utf-8"))
        tensors = load_file(_plain_file(folder / "adapter_model.safetensors"))
        rank, alpha = int(settings["r"]), float(settings["lora_alpha"])
        scale = alpha / (math.sqrt(rank) if settings.get("use_rslora") else rank) if rank > 0 else math.nan
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError, SafetensorError) as error:
        raise UserError(f"No adapter found for {folder}: {type(error).__name__}: {error}") from None
    odd = [key for key in UNKNOWN if settings.get(key)]
    if settings.get("peft_type", "LORA") != "LORA" or odd or settings.get("bias", "none") != "none" or rank < 1:
        raise UserError(f"{folder}: only plain LoRA is served, this has {', '.join(odd) or 'another type'}")
    if not (tensors and math.isfinite(scale)):
        raise UserError(f"{folder}: {'no finite scale' if tensors else 'no tensors'} in it")
    return _deltas(folder, tensors, rank, scale, bool(settings.get("fan_in_fan_out")))


def _deltas(folder: Path, tensors: dict[str, Tensor], rank: int, scale: float, transposed: bool) -> Deltas:
    """The updates by module, each of the rank that the settings say."""
    adapter: Deltas = {}
    for name in sorted({name.rpartition(".lora_")[0] for name in tensors}):
        pair = [tensors.get(f"{name}.lora_{letter}.weight") for letter in "BA"]
        if pair[0] is None or pair[1] is None:
            missing = f"{name}.lora_{'B' if pair[0] is None else 'A'}.weight"
            raise UserError(f"{folder}: no {missing} in it; only plain LoRA is served")
        b_OR, a_RI = pair[0].float(), pair[1].float()
        if b_OR.dim() != 2 or a_RI.dim() != 2 or b_OR.shape[1] != rank or a_RI.shape[0] != rank:
            shapes = f"{tuple(b_OR.shape)} and {tuple(a_RI.shape)}"
            raise UserError(f"{folder}: {name} is no update of rank {rank}: {shapes}")
        adapter[name.removeprefix(PREFIX)] = Delta(b_OR, a_RI, scale, transposed)
    return adapter


def _plain_file(path: Path, most: int | None = None) -> Path:
    """A path that can be read to its end: a pipe or a device would hold its reader up for ever."""
    state = path.stat()
    if not stat.S_ISREG(state.st_mode) or (most is not None and state.st_size > most):
        raise ValueError(f"{path.name} is no plain file" + (f" of at most {most} bytes" if most else ""))
    return path
