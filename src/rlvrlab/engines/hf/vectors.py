"""Trainable parameters as one flat float32 vector, and the optimiser on it.

A model computing in float32 has its parameters inside that vector; one computing in bfloat16, whose resolution would
swallow small updates, has a bfloat16 copy that is refreshed after each move.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from rlvrlab.batch import Floats
from rlvrlab.recipe.schema import Optimizer

BLOCK = 1 << 18
"""Elements of a vector turned to double precision at a time."""


class Trainable:
    """All trainable parameters of a model."""

    def __init__(self, model: Any) -> None:
        named = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
        self.names, self.params = [name for name, _ in named], [p for _, p in named]
        self.shapes = [tuple(p.shape) for p in self.params]
        sizes = [p.numel() for p in self.params]
        ends = np.cumsum(sizes).tolist()
        self.slices = [slice(end - size, end) for size, end in zip(sizes, ends, strict=True)]
        self.dtype, self.device = self.params[0].dtype, self.params[0].device
        assert all(p.dtype == self.dtype for p in self.params), "trainable parameters of mixed precision"
        self.theta = torch.cat([p.detach().float().flatten() for p in self.params])
        self.copy = self.theta if self.dtype == torch.float32 else self.theta.to(self.dtype)
        self._grads: Tensor | None = None
        self._show(self.copy)

    @property
    def size(self) -> int:
        """How many numbers are trained."""
        return self.theta.numel()

    def modules(self) -> dict[str, list[slice]]:
        """The vector's parts by layer and block: `layers.3.self_attn`, `embed_tokens`, …"""
        slices: dict[str, list[slice]] = {}
        for name, part in zip(self.names, self.slices, strict=True):
            # base.layers.3.self_attn.q_proj.lora_A.default.weight -> layers.3.self_attn
            words = name.split(".")
            number = next((i for i, word in enumerate(words) if word.isdigit()), None)
            chosen = words[-2:][:1] if number is None else words[max(0, number - 1) : number + 2]
            slices.setdefault(".".join(chosen), []).append(part)
        return slices

    def add(self, move: Tensor) -> None:
        """θ += move."""
        self.theta.add_(move)
        self._refresh()

    def set(self, theta: Tensor) -> None:
        """θ = theta."""
        self.theta.copy_(theta)
        self._refresh()

    @contextmanager
    def swapped(self, other: Tensor | None) -> Iterator[None]:
        """Within, the model computes with these values instead; None changes nothing."""
        if other is None:
            yield
            return
        self._show(other.to(self.dtype))
        try:
            yield
        finally:
            self._show(self.copy)

    @contextmanager
    def collecting(self, total: Tensor) -> Iterator[None]:
        """Within, every backward pass adds to `total`: at once in float32, at `collect` otherwise."""
        grads = total if self.dtype == torch.float32 else torch.zeros_like(self.copy)
        for p, part, shape in zip(self.params, self.slices, self.shapes, strict=True):
            p.grad = grads[part].view(shape)
        self._grads = grads
        try:
            yield
        finally:
            self._grads = None
            for p in self.params:
                p.grad = None

    def collect(self, total: Tensor) -> None:
        """After a backward pass: bfloat16 gradients are summed in float32."""
        assert self._grads is not None
        if self._grads is not total:
            total.add_(self._grads)
            self._grads.zero_()

    def _refresh(self) -> None:
        if self.copy is not self.theta:
            self.copy.copy_(self.theta)
        for p in self.params:  # they look into `copy`, so torch does not know that they changed; the sampler asks
            torch.autograd.graph.increment_version(p)

    def _show(self, flat: Tensor) -> None:
        for p, part, shape in zip(self.params, self.slices, self.shapes, strict=True):
            p.data = flat[part].view(shape)


class FlatOptimizer:
    """AdamW and SGD with momentum on a flat vector; the arithmetic of the toy engine's, in float32.

    The moments take twice the memory of the weights in float32, and an evaluation has no use for them, so they are made
    when something asks for them.
    """

    def __init__(self, settings: Optimizer, like: Tensor) -> None:
        self.settings, self.count, self._like = settings, 0, like

    @cached_property
    def first(self) -> Tensor:
        """The running mean of the gradients."""
        return torch.zeros_like(self._like)

    @cached_property
    def second(self) -> Tensor:
        """The running mean of their squares; empty for SGD."""
        return torch.zeros_like(self._like) if self.settings.type == "adam" else self._like.new_zeros(0)

    def ready(self) -> Self:
        """The same with its moments made."""
        self.state()
        return self

    def displacement(self, theta: Tensor, gradient: Tensor, learning_rate: float) -> Tensor:
        """What to add to the parameters; updates the moments."""
        s = self.settings
        self.count += 1
        if s.type == "sgd":
            move = self.first.mul_(s.beta1).add_(gradient).mul(-learning_rate)
        else:
            self.first.lerp_(gradient, 1 - s.beta1)
            self.second.mul_(s.beta2).addcmul_(gradient, gradient, value=1 - s.beta2)
            root = self.second.sqrt().div_((1 - s.beta2**self.count) ** 0.5).add_(s.epsilon)
            move = (self.first / root).mul_(-learning_rate / (1 - s.beta1**self.count))
        return move.sub_(theta, alpha=learning_rate * s.weight_decay) if s.weight_decay else move

    def state(self) -> dict[str, Tensor]:
        """Tensors to save."""
        return {"count": torch.tensor(self.count), "first": self.first, "second": self.second}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Continue from saved tensors."""
        self.count = int(state["count"])
        self.first.copy_(state["first"])
        self.second.copy_(state["second"])


def combine(vectors: Sequence[Tensor], weights: Sequence[float]) -> Tensor:
    """Σ wᵢvᵢ."""
    total = vectors[0] * float(weights[0])
    for vector, weight in zip(vectors[1:], weights[1:], strict=True):
        total.add_(vector, alpha=float(weight))
    return total


def gramian(vectors: Sequence[Tensor], parts: Sequence[slice]) -> Floats:
    """Dot products of all pairs over some parts, summed in double precision.

    Row by row against the rows from it on: for few, long vectors that is faster than a product of matrices.
    """
    count, device = len(vectors), vectors[0].device
    total = torch.zeros(count, count, dtype=torch.float64, device=device)
    buffer = torch.empty(count, BLOCK, dtype=torch.float64, device=device)
    for part in parts:
        start, stop, _ = part.indices(vectors[0].numel())
        for at in range(start, stop, BLOCK):
            block = buffer[:, : min(BLOCK, stop - at)]
            for i, vector in enumerate(vectors):
                block[i].copy_(vector[at : at + block.shape[1]])
            for i in range(count):
                total[i, i:] += torch.mv(block[i:], block[i])
    return np.asarray((total + total.triu(1).T).cpu().numpy())
