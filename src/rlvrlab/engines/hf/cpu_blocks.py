"""A block of the Llama family in a training step on a CPU: functions with backward passes of their own.

    Heads           norm, queries, keys and values in one product, rotation
    attention       plain_attention.py where sequences are short, else as everywhere (attention.py)
    Finish          output projection, residual, norm, gate and up in one product, down, residual

Torch's own way visits memory more often, and makes three products where one does.
Legend: N inputs of the packed row, I its width, H heads of queries, K of keys and of values, D their size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import Function

from rlvrlab.engines.hf.stacked import Part, Stack


class Block(NamedTuple):
    """The frozen things of a block."""

    norm1: Tensor
    norm2: Tensor
    eps1: float
    eps2: float
    head_dim: int
    rotated: int
    """Heads that are rotated: of queries and keys."""
    qkv: list[Part]
    out: list[Part]
    gate_up: list[Part]
    down: list[Part]

    def stacks(self, adapters: Sequence[Tensor | None]) -> tuple[Stack, Stack, Stack]:
        """Those of `Finish`, with the adapters that autograd handed out."""
        return Stack(self.out, adapters[:2]), Stack(self.gate_up, adapters[2:6]), Stack(self.down, adapters[6:])


def normed(x_NI: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """r x w with r = (mean x² + ε)^−½, and r."""
    norm_N1 = torch.linalg.vector_norm(x_NI, dim=-1, keepdim=True)
    r_N1 = norm_N1.square_().div_(x_NI.shape[-1]).add_(eps).rsqrt_()
    return torch.mul(x_NI, r_N1).mul_(weight), r_N1


def norm_slope(d_NI: Tensor, x_NI: Tensor, r_N1: Tensor, weight: Tensor) -> Tensor:
    """dx = r (d w − r² x mean(x d w)); overwrites `d_NI`."""
    d_NI.mul_(weight)
    common_N1 = (d_NI * x_NI).sum(-1, keepdim=True).mul_(r_N1.pow(3)).div_(-x_NI.shape[-1])
    return d_NI.mul_(r_N1).addcmul_(x_NI, common_N1)


def turned(x_NHD: Tensor, sin: Tensor, out: Tensor) -> Tensor:
    """roll(x, D/2) sin into `out`, half by half."""
    half = x_NHD.shape[-1] // 2
    torch.mul(x_NHD[..., half:], sin[..., :half], out=out[..., :half])
    torch.mul(x_NHD[..., :half], sin[..., half:], out=out[..., half:])
    return out


class Heads(Function):  # type: ignore[misc]
    """(N, I) to rotated queries and keys and plain values (N, H + 2K, D)."""

    @staticmethod
    def forward(ctx: Any, x_NI: Tensor, cos: Tensor, sin: Tensor, block: Block, *adapters: Tensor | None) -> Tensor:
        """`sin` carries the signs of a rotation: x cos + roll(x, D/2) sin."""
        stack = Stack(block.qkv, adapters)
        x_norm, r_N1 = normed(x_NI, block.norm1, block.eps1)
        qkv = stack.add_biases(x_norm @ stack.merged().T).view(len(x_NI), -1, block.head_dim)
        qk = qkv[:, : block.rotated]
        torch.addcmul(turned(qk, sin, torch.empty(qk.shape)), qk, cos, out=qk)
        ctx.save_for_backward(x_NI, r_N1, x_norm, cos, sin, *adapters)
        ctx.block = block
        return qkv

    @staticmethod
    def backward(ctx: Any, *given: Any) -> Any:
        """Through the rotation, the product and the norm."""
        x_NI, r_N1, x_norm, cos, sin, *adapters = ctx.saved_tensors
        block, d_qkv = ctx.block, given[0]
        d_qk, d_v = d_qkv[:, : block.rotated], d_qkv[:, block.rotated :]
        d_out = torch.empty(d_qkv.shape)
        back = turned(d_qk, sin.neg(), d_out[:, : block.rotated])  # a rotation by the negative angle
        back.addcmul_(d_qk, cos)
        d_out[:, block.rotated :] = d_v
        d_out = d_out.view(len(x_NI), -1)
        stack = Stack(block.qkv, adapters)
        d_adapters = stack.slopes(x_norm, d_out)
        d_x = None
        if ctx.needs_input_grad[0]:
            d_x = norm_slope(d_out @ stack.merged(), x_NI, r_N1, block.norm1)
        return d_x, None, None, None, *d_adapters


class Finish(Function):  # type: ignore[misc]
    """The residual (N, I) and what was attended (N, H·D) to the block's output."""

    @staticmethod
    def forward(ctx: Any, x_NI: Tensor, attended: Tensor, block: Block, *adapters: Tensor | None) -> Tensor:
        """x₁ = x + attended Woᵀ; y = x₁ + (silu(gate) · up) Wdᵀ."""
        out, gate_up, down = block.stacks(adapters)
        x1 = out.add_biases(torch.addmm(x_NI, attended, out.merged().T))
        x_norm, r_N1 = normed(x1, block.norm2, block.eps2)
        gu = gate_up.add_biases(x_norm @ gate_up.merged().T)
        gate, up = gu.chunk(2, -1)
        h = torch.empty_like(up, memory_format=torch.contiguous_format)
        torch.ops.aten.silu.out(gate, out=h).mul_(up)
        y = down.add_biases(torch.addmm(x1, h, down.merged().T))
        ctx.save_for_backward(attended, x1, r_N1, x_norm, gu, h, *adapters)
        ctx.block = block
        return y

    @staticmethod
    def backward(ctx: Any, *given: Any) -> Any:
        """Through the gated layer, then the output projection."""
        attended, x1, r_N1, x_norm, gu, h, *adapters = ctx.saved_tensors
        block, d_y = ctx.block, given[0].contiguous()
        out, gate_up, down = block.stacks(adapters)
        d_down = down.slopes(h, d_y)
        d_h = d_y @ down.merged()
        gate, up = gu.chunk(2, -1)
        d_gu = torch.empty_like(gu)
        d_gate, d_up = d_gu.chunk(2, -1)
        torch.ops.aten.silu.out(gate, out=d_up).mul_(d_h)
        torch.ops.aten.silu_backward.grad_input(d_h.mul_(up), gate, grad_input=d_gate)
        d_gate_up = gate_up.slopes(x_norm, d_gu)
        d_x = norm_slope(d_gu @ gate_up.merged(), x1, r_N1, block.norm2).add_(d_y)
        d_out = out.slopes(attended, d_x)
        return d_x, d_x @ out.merged(), None, *d_out, *d_gate_up, *d_down
