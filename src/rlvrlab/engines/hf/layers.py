"""Norms and gated layers of a model on a GPU in one pass over memory each, forwards and backwards.

A module is taken over when it gives what the kernel gives on numbers of the model's own precision; all others, and
those whose weights are trained, stay as Transformers has them.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

PARTS = {"gate_proj", "up_proj", "down_proj"}


class _Norm:
    def __init__(self, module: Any) -> None:
        self.module = module

    def __call__(self, x: Tensor) -> Tensor:
        from rlvrlab.engines.hf.train_kernels import Normed

        return Normed.apply(x, self.module.weight, self.module.variance_epsilon)


class _GatedLayer:
    def __init__(self, module: Any) -> None:
        self.module = module

    def __call__(self, x: Tensor) -> Tensor:
        from rlvrlab.engines.hf.train_kernels import Gated

        mlp = self.module
        return mlp.down_proj(Gated.apply(mlp.gate_proj(x), mlp.up_proj(x)))


def take_over(model: Any) -> int:
    """Give a model's norms and gated layers these kernels, where they compute the same; how many."""
    device = next(model.parameters()).device
    if device.type != "cuda":
        return 0
    agreed: dict[tuple[type, int], bool] = {}
    count = 0
    for module in model.modules():
        faster = _faster(module)
        if faster is None:
            continue
        width = module.weight.shape[0] if isinstance(faster, _Norm) else int(module.gate_proj.in_features)
        kind = type(module), width
        if kind not in agreed:
            agreed[kind] = _agrees(module, faster, width, model.dtype, device)
        if agreed[kind]:
            module.forward = faster
            count += 1
    return count


def give_back(model: Any) -> None:
    """As Transformers has them."""
    for module in model.modules():
        if isinstance(module.__dict__.get("forward"), _Norm | _GatedLayer):
            del module.forward


def _faster(module: Any) -> _Norm | _GatedLayer | None:
    """What could replace this module's forward pass."""
    own = dict(module.named_children())
    if type(module).__name__.endswith("RMSNorm") and "variance_epsilon" in module.__dict__:
        return None if module.weight.requires_grad else _Norm(module)
    if own.keys() >= PARTS and own.keys() <= PARTS | {"act_fn"}:
        return _GatedLayer(module)
    return None


def _agrees(module: Any, faster: Any, width: int, dtype: torch.dtype, device: Any) -> bool:
    """Forwards and backwards, on a few rows that differ in size."""
    ramp = torch.arange(5 * width, device=device).float().sin().view(1, 5, width)
    x = (ramp * torch.tensor([0.01, 0.3, 1.0, 4.0, 30.0], device=device)[:, None]).to(dtype)
    found = []
    try:
        for way in (module.forward, faster):
            given = x.clone().requires_grad_()
            with torch.enable_grad():
                out = way(given)
                (slope,) = torch.autograd.grad((out.float() * ramp.cos()[..., : out.shape[-1]]).sum(), given)
            found.append((out.detach().float(), slope.float()))
    except Exception:  # Triton raises kinds of its own; what does not run here is not taken
        return False
    pairs = zip(*found, strict=True)
    return all(bool((a - b).norm() <= 0.02 * b.norm() + 1e-12) and bool(torch.isfinite(a).all()) for a, b in pairs)
