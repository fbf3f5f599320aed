"""LoRA adapters in PEFT's layout, merged into a plain model one at a time: what the model server switches between.

W + s·B·A is summed in float32 and rounded once, as the embedded sampler does it, so both draw the same answers. An
adapter is compared with the model before any of its numbers is read (engines/hf/lora_files.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from rlvrlab.engines.hf.lora_files import Delta, Shape, opened, read_delta, read_settings, read_shapes
from rlvrlab.errors import UserError, cut
from rlvrlab.models.tensors import ADAPTER_CONFIG, ADAPTER_TENSORS

UNCLEAR = object()
"""In place of an adapter: the weights are neither the base nor a known adapter, and must be merged anew before use."""
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
        settings = read_settings(folder)
        if settings.rank > self._largest_rank:
            raise UserError(f"{folder}: rank {settings.rank}, at most {self._largest_rank} is allowed here")
        shapes = read_shapes(folder, settings.rank)
        for module, shape in shapes.items():
            self._refuse_other(folder, module, shape)
            if not settings.reaches(module):
                words = f"{ADAPTER_CONFIG} leaves {cut(module, 200)} out, but {ADAPTER_TENSORS} holds an update of it"
                raise UserError(f"{folder}: {words}; take it out of the file or name it in target_modules")
        deltas: Deltas = {}
        with opened(folder) as file:
            for module, shape in shapes.items():
                deltas[module] = delta = read_delta(
                    file, folder, shape, settings, transposed=self._is_transposed(module)
                )
                if not delta.reach() < torch.finfo(self._modules[module].weight.dtype).max:
                    words = f"{module} holds values that are not finite, or not once they are merged"
                    raise UserError(f"{folder}: {words}")
        return deltas

    def _is_transposed(self, module: str) -> bool:
        """GPT-2's layers hold their weights the other way round; fan_in_fan_out says so, and PEFT corrects it there."""
        return type(self._modules.get(module)).__name__ == "Conv1D"

    def _refuse_other(self, folder: Path, module: str, shape: Shape) -> None:
        """An update of a layer that this model does not have, or has otherwise."""
        target = getattr(self._modules.get(module), "weight", None)
        if target is None:
            raise UserError(f"{folder}: an adapter of another model: this one has no {cut(module, 200)}")
        if module in self._shared:
            other = self._shared[module]
            raise UserError(f"{folder}: {module} shares its weight with {other} in this model; leave it out")
        if tuple(target.shape) != shape.of_weight(transposed=self._is_transposed(module)):
            raise UserError(f"{folder}: an adapter of another model: {module} is {tuple(target.shape)} here")

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
