"""LoRA as PEFT computes it, in fewer passes over memory: small products are added to the large ones at once.

    y = x Wᵀ + b + s (x Aᵀ) Bᵀ        dx = dy W + s (dy B) A        dA = s (dy B)ᵀ x        dB = s dyᵀ (x Aᵀ)

PEFT makes s (x Aᵀ) Bᵀ, multiplies it by s and adds it, each a pass over an output as large as the layer's; torch adds
two derivatives by x. Only layers that are nothing but this formula are taken over; all others stay as they are.
"""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn.functional import linear

from rlvrlab.engines.hf.own_lora import AdaptedLinear


class Adapted(Function):  # type: ignore[misc]
    """A frozen linear layer with an adapter."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, down: Tensor, up: Tensor, scale: float
    ) -> Tensor:
        """The formula above; `down` is A, `up` is B."""
        flat = x.reshape(-1, x.shape[-1])
        low = flat @ down.T
        out = linear(flat, weight, bias).addmm_(low, up.T, alpha=scale)
        ctx.save_for_backward(flat, weight, down, up, low)
        ctx.scale, ctx.shape = scale, x.shape
        return out.view(*x.shape[:-1], out.shape[-1])

    @staticmethod
    def backward(ctx: Any, *given: Any) -> Any:
        """Derivatives by x, A and B; the layer's own weights are frozen."""
        flat, weight, down, up, low = ctx.saved_tensors
        d_out = given[0].reshape(-1, given[0].shape[-1])
        d_low = (d_out @ up).mul_(ctx.scale)
        d_x = None
        if ctx.needs_input_grad[0]:
            d_x = (d_out @ weight).addmm_(d_low, down).view(ctx.shape)
        return d_x, None, None, d_low.T @ flat, (d_out.T @ low).mul_(ctx.scale), None


def take_over(model: Any) -> int:
    """Give every plain LoRA layer of a model this arithmetic; how many there are."""
    count = 0
    for module in model.modules():
        if is_adapted(module) and is_plain(module):
            module.forward = _Forward(module)
            count += 1
    return count


def give_back(model: Any) -> None:
    """PEFT's own arithmetic again."""
    for module in model.modules():
        if isinstance(module.__dict__.get("forward"), _Forward):
            del module.forward


class _Forward:
    """The forward pass of one layer; what is not the formula goes its class's own way."""

    def __init__(self, module: Any) -> None:
        self.module, (self.name,) = module, module.lora_A.keys()

    def __call__(self, x: Tensor, *args: Any, **named: Any) -> Tensor:
        """The formula, unless the adapter is off, merged or of another precision than its input."""
        module, name = self.module, self.name
        down, up, base = module.lora_A[name].weight, module.lora_B[name].weight, module.base_layer
        asked = not (args or named or module.disable_adapters or module.merged or module.active_adapters != [name])
        if not asked or not x.dtype == base.weight.dtype == down.dtype == up.dtype:
            return type(module).forward(module, x, *args, **named)
        return Adapted.apply(x, base.weight, base.bias, down, up, module.scaling[name])


def is_adapted(module: Any) -> bool:
    """Is this a linear layer with adapters, ours or PEFT's? Where PEFT was never imported it is none of its."""
    theirs = getattr(sys.modules.get("peft.tuners.lora.layer"), "Linear", None)
    return type(module) in (AdaptedLinear, theirs)


def is_plain(module: Any) -> bool:
    """One adapter, no dropout, no bias of its own, no variant, on a linear layer that is frozen."""
    base = module.base_layer
    if type(base) is not torch.nn.Linear or len(module.lora_A) != 1 or len(module.lora_variant):
        return False
    (name,) = module.lora_A.keys()
    dropped = [one for one in module.lora_dropout[name].modules() if isinstance(one, torch.nn.Dropout) and one.p]
    own = [*base.parameters()]
    biased = module.lora_A[name].bias is not None or module.lora_B[name].bias is not None
    return not (dropped or biased or module.fan_in_fan_out or any(p.requires_grad for p in own))
