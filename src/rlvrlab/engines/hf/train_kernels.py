# mypy: disable-error-code="misc, no-untyped-def, untyped-decorator, no-untyped-call"
"""Operations of a training step as Triton kernels: one pass over memory each, where plain torch takes five to fifteen.

Imported only where Triton is. Each rounds where Transformers rounds. In kernels, names in capitals are compile-time
constants. Suffixes: N inputs, K places, E edges, V vocabulary (packing.py).
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

VOCAB_BLOCK = 4096


@triton.jit
def score_kernel(logits, lse, entropy, V, BLOCK: tl.constexpr):
    """Of each row: log Σ exp z, and the entropy of softmax(z), by a running softmax over blocks of the vocabulary."""
    row = tl.program_id(0).to(tl.int64)
    n = tl.arange(0, BLOCK)
    top = float("-inf")
    mass = 0.0
    moment = 0.0
    for start in range(0, V, BLOCK):
        inside = start + n < V
        z = tl.load(logits + row * V + start + n, mask=inside, other=-float("inf")).to(tl.float32)
        new_top = tl.maximum(top, tl.max(z, 0))
        keep = tl.exp(top - new_top)
        p = tl.exp(z - new_top)
        mass = mass * keep + tl.sum(p, 0)
        moment = moment * keep + tl.sum(tl.where(p > 0, p * z, 0.0), 0)
        top = new_top
    total = top + tl.log(mass)
    tl.store(lse + row, total)
    tl.store(entropy + row, total - moment / mass)


@triton.jit
def slope_kernel(
    logits, lse, entropy, c_logp, c_entropy, first_edge, token, c_edge, out, V, ENTROPY: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """out = Σ over the row's edges of c onehot − p c_logp − c_entropy p (log p + H)."""
    row = tl.program_id(0).to(tl.int64)
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    z = tl.load(logits + row * V + i, mask=i < V, other=-float("inf")).to(tl.float32)
    log_p = z - tl.load(lse + row)
    slope = tl.load(c_logp + row)
    p = tl.exp(log_p)
    if ENTROPY:
        whole = slope + tl.load(c_entropy + row) * (log_p + tl.load(entropy + row))
        dz = tl.where(p > 0, -p * whole, 0.0)
    else:
        dz = -p * slope
    for e in range(tl.load(first_edge + row), tl.load(first_edge + row + 1)):
        dz += tl.where(i == tl.load(token + e), tl.load(c_edge + e), 0.0)
    tl.store(out + row * V + i, dz.to(out.dtype.element_ty), mask=i < V)


@triton.jit
def norm_kernel(x, weight, out, root, eps, width, WIDTH: tl.constexpr):
    """out = weight · x / rms(x); keeps 1 / rms(x)."""
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, WIDTH)
    inside = i < width
    v = tl.load(x + row * width + i, mask=inside, other=0.0)
    f = v.to(tl.float32)
    scale = 1.0 / tl.sqrt(tl.sum(f * f, 0) / width + eps)
    w = tl.load(weight + i, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + row * width + i, ((f * scale).to(v.dtype).to(tl.float32) * w).to(v.dtype), mask=inside)
    tl.store(root + row, scale)


@triton.jit
def norm_slope_kernel(d_out, x, weight, root, d_x, width, WIDTH: tl.constexpr):
    """dx = (g − n mean(g n)) / rms(x), with g = weight · d_out and n = x / rms(x)."""
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, WIDTH)
    inside = i < width
    d = tl.load(d_out + row * width + i, mask=inside, other=0.0)
    w = tl.load(weight + i, mask=inside, other=0.0).to(tl.float32)
    g = (d.to(tl.float32) * w).to(d.dtype).to(tl.float32)
    scale = tl.load(root + row)
    n = tl.load(x + row * width + i, mask=inside, other=0.0).to(tl.float32) * scale
    dx = (g - n * (tl.sum(g * n, 0) / width)) * scale
    tl.store(d_x + row * width + i, dx.to(d.dtype), mask=inside)


@triton.jit
def gated_kernel(gate, up, out, count, BLOCK: tl.constexpr):
    """out = silu(gate) · up."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < count
    g = tl.load(gate + i, mask=inside, other=0.0)
    f = g.to(tl.float32)
    silu = (f / (1.0 + tl.exp(-f))).to(g.dtype).to(tl.float32)
    u = tl.load(up + i, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + i, (silu * u).to(g.dtype), mask=inside)


@triton.jit
def gated_slope_kernel(d_out, gate, up, d_gate, d_up, count, BLOCK: tl.constexpr):
    """d_up = d silu(gate); d_gate = d up σ(gate) (1 + gate (1 − σ(gate)))."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < count
    d = tl.load(d_out + i, mask=inside, other=0.0)
    g = tl.load(gate + i, mask=inside, other=0.0)
    u = tl.load(up + i, mask=inside, other=0.0).to(tl.float32)
    f = g.to(tl.float32)
    sigma = 1.0 / (1.0 + tl.exp(-f))
    silu = (f * sigma).to(g.dtype).to(tl.float32)
    tl.store(d_up + i, (d.to(tl.float32) * silu).to(g.dtype), mask=inside)
    d_silu = (d.to(tl.float32) * u).to(g.dtype).to(tl.float32)
    tl.store(d_gate + i, (d_silu * sigma * (1.0 + f * (1.0 - sigma))).to(g.dtype), mask=inside)


def scores(logits_KV: Tensor) -> tuple[Tensor, Tensor]:
    """log Σ exp and entropy of every row."""
    rows, vocabulary = logits_KV.shape
    lse, entropy = (torch.empty(rows, device=logits_KV.device, dtype=torch.float32) for _ in range(2))
    score_kernel[(rows,)](logits_KV.contiguous(), lse, entropy, vocabulary, BLOCK=VOCAB_BLOCK, num_warps=8)
    return lse, entropy


def slopes(
    logits_KV: Tensor, lse_K: Tensor, entropy_K: Tensor, place_E: Tensor, token_E: Tensor, c_logp_E: Tensor,
    c_logp_K: Tensor, c_entropy_K: Tensor | None,
) -> Tensor:  # fmt: skip
    """The derivative by the logits; edges are sorted by place, and places count from 0."""
    rows, vocabulary = logits_KV.shape
    logits_KV, out = logits_KV.contiguous(), torch.empty_like(logits_KV, memory_format=torch.contiguous_format)
    first = torch.searchsorted(place_E, torch.arange(rows + 1, device=out.device), out_int32=True)
    slope_kernel[(rows, triton.cdiv(vocabulary, VOCAB_BLOCK))](
        logits_KV, lse_K, entropy_K, c_logp_K, c_logp_K if c_entropy_K is None else c_entropy_K, first, token_E,
        c_logp_E, out, vocabulary, ENTROPY=c_entropy_K is not None, BLOCK=VOCAB_BLOCK, num_warps=8,
    )  # fmt: skip
    return out


class Normed(torch.autograd.Function):
    """RMSNorm with a frozen weight."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        """Rounded where Transformers rounds."""
        x, width = x.contiguous(), x.shape[-1]
        out, rows = torch.empty_like(x), x.numel() // width
        root = torch.empty(rows, device=x.device, dtype=torch.float32)
        padded = triton.next_power_of_2(width)
        norm_kernel[(rows,)](x, weight, out, root, eps, width, WIDTH=padded, num_warps=4 if padded <= 2048 else 8)
        ctx.save_for_backward(x, weight, root)
        return out

    @staticmethod
    def backward(ctx: Any, *given: Any) -> Any:
        """By x alone."""
        x, weight, root = ctx.saved_tensors
        d_out, width = given[0].contiguous(), x.shape[-1]
        d_x, padded = torch.empty_like(x), triton.next_power_of_2(width)
        norm_slope_kernel[(len(root),)](
            d_out, x, weight, root, d_x, width, WIDTH=padded, num_warps=4 if padded <= 2048 else 8
        )
        return d_x, None, None


class Gated(torch.autograd.Function):
    """silu(gate) · up."""

    @staticmethod
    def forward(ctx: Any, gate: Tensor, up: Tensor) -> Tensor:
        """One pass over both."""
        gate, up = gate.contiguous(), up.contiguous()
        out, count = torch.empty_like(gate), gate.numel()
        gated_kernel[(triton.cdiv(count, 2048),)](gate, up, out, count, BLOCK=2048, num_warps=4)
        ctx.save_for_backward(gate, up)
        return out

    @staticmethod
    def backward(ctx: Any, *given: Any) -> Any:
        """By both, in one pass."""
        gate, up = ctx.saved_tensors
        d_gate, d_up, count = torch.empty_like(gate), torch.empty_like(up), gate.numel()
        gated_slope_kernel[(triton.cdiv(count, 2048),)](
            given[0].contiguous(), gate, up, d_gate, d_up, count, BLOCK=2048, num_warps=4
        )
        return d_gate, d_up
