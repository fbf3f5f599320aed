# mypy: disable-error-code="misc, no-untyped-def, untyped-decorator, no-untyped-call"
"""The step's operations as Triton kernels: what plain torch does in some twenty launches per layer takes four.

Imported only where Triton is. Each kernel rounds where Transformers rounds, so that sampler and trainer agree.
In kernels, names in capitals are compile-time constants: D head size, REPEAT query heads per key head, BLOCK positions.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from rlvrlab.engines.hf.blocks import Cache
from rlvrlab.engines.hf.draw import scaled
from rlvrlab.engines.hf.operations import State, TorchOperations
from rlvrlab.engines.hf.weights import Layer, Weights

VOCAB_BLOCK = 4096
KEY_BLOCK = 16
"""Keys per round, with one warp and three stages: on an H200 many small programs wait for memory better than few large
ones (26 instead of 33 µs at 1,024 rows, the same at 256)."""


@triton.jit
def add_norm_kernel(x, y, weight, total, out, eps, width, ADD: tl.constexpr, WIDTH: tl.constexpr):
    """total = x + y; out = weight · total / rms(total)."""
    row = tl.program_id(0)
    i = tl.arange(0, WIDTH)
    inside = i < width
    at = row * width + i
    v = tl.load(x + at, mask=inside, other=0.0)
    if ADD:
        v = (v.to(tl.float32) + tl.load(y + at, mask=inside, other=0.0).to(tl.float32)).to(v.dtype)
        tl.store(total + at, v, mask=inside)
    f = v.to(tl.float32)
    scale = 1.0 / tl.sqrt(tl.sum(f * f) / width + eps)
    w = tl.load(weight + i, mask=inside, other=0.0)
    normed = (f * scale).to(v.dtype).to(tl.float32) * w.to(tl.float32)
    tl.store(out + at, normed.to(v.dtype), mask=inside)


@triton.jit
def gate_kernel(gate_up, out, width, WIDTH: tl.constexpr):
    """out = silu(gate) · up."""
    row = tl.program_id(0).to(tl.int64)
    i = tl.program_id(1) * WIDTH + tl.arange(0, WIDTH)
    inside = i < width
    g = tl.load(gate_up + row * 2 * width + i, mask=inside, other=0.0)
    u = tl.load(gate_up + row * 2 * width + width + i, mask=inside, other=0.0).to(tl.float32)
    f = g.to(tl.float32)
    silu = (f / (1.0 + tl.exp(-f))).to(g.dtype).to(tl.float32)
    tl.store(out + row * width + i, (silu * u).to(g.dtype), mask=inside)


@triton.jit
def _rotated(head, norm, cos, sin, eps, NORM: tl.constexpr, D: tl.constexpr, inside):
    """Heads (rows of pointers) after their norm and rotation; the sine carries its signs."""
    d = tl.arange(0, D)
    other = (d + D // 2) % D
    x = tl.load(head + d[None, :], mask=inside, other=0.0)
    half = tl.load(head + other[None, :], mask=inside, other=0.0)
    kind = x.dtype
    if NORM:
        f = x.to(tl.float32)
        scale = 1.0 / tl.sqrt(tl.sum(f * f, 1) / D + eps)
        x = ((f * scale[:, None]).to(kind).to(tl.float32) * tl.load(norm + d)[None, :].to(tl.float32)).to(kind)
        half = (half.to(tl.float32) * scale[:, None]).to(kind).to(tl.float32)
        half = (half * tl.load(norm + other)[None, :].to(tl.float32)).to(kind)
    c = tl.load(cos + d)[None, :].to(tl.float32)
    s = tl.load(sin + d)[None, :].to(tl.float32)
    first = (x.to(tl.float32) * c).to(kind).to(tl.float32)
    second = (half.to(tl.float32) * s).to(kind).to(tl.float32)
    return (first + second).to(kind)


@triton.jit
def _absorb(q, keys, values, inside, top, mass, total, scale):
    """One block of keys and values into a running softmax."""
    k = tl.load(keys, mask=inside[:, None], other=0.0)
    v = tl.load(values, mask=inside[:, None], other=0.0)
    # float32 is not to be rounded to tf32; half precision has no other way.
    score = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
    score = tl.where(inside[None, :], score, -float("inf"))
    new_top = tl.maximum(top, tl.max(score, 1))
    p = tl.exp(score - new_top[:, None])
    keep = tl.exp(top - new_top)
    mass = mass * keep + tl.sum(p, 1)
    total = total * keep[:, None] + tl.dot(p.to(v.dtype), v, input_precision="ieee")
    return new_top, mass, total


@triton.jit
def attend_kernel(
    qkv, out, own_k, own_v, prefix_k, prefix_v, group, length_of, step, cos, sin, q_norm, k_norm,
    scale, eps, room_own, room_prefix,
    KEYS: tl.constexpr, REPEAT: tl.constexpr, D: tl.constexpr, QUERIES: tl.constexpr, BLOCK: tl.constexpr,
    NORM: tl.constexpr,
):  # fmt: skip
    """One program per row and key head: rotate, write this token's key and value, attend to prompt and own tokens."""
    row = tl.program_id(0).to(tl.int64)
    key_head = tl.program_id(1)
    t = tl.load(step + row)
    g = tl.load(group + row).to(tl.int64)
    length = tl.load(length_of + row)
    place = (length + t) * D
    d = tl.arange(0, D)
    r = tl.arange(0, QUERIES)
    base = qkv + row * (KEYS * (REPEAT + 2) * D)
    q_heads = base + (key_head * REPEAT + r)[:, None] * D
    q = _rotated(q_heads, q_norm, cos + place, sin + place, eps, NORM, D, (r < REPEAT)[:, None])
    one = tl.arange(0, 1)
    k_head = base + (KEYS * REPEAT + key_head + one)[:, None] * D
    k = _rotated(k_head, k_norm, cos + place, sin + place, eps, NORM, D, (one < 1)[:, None])
    v = tl.load(base + (KEYS * (REPEAT + 1) + key_head) * D + d)[None, :]
    own = (row * KEYS + key_head) * room_own * D
    tl.store(own_k + own + t * D + d[None, :], k)
    tl.store(own_v + own + t * D + d[None, :], v)
    # The new token opens the running softmax: it is in registers, and nothing has to wait for the store above.
    top = tl.sum(q.to(tl.float32) * k.to(tl.float32), 1) * scale
    mass = tl.full([QUERIES], 1.0, tl.float32)
    total = tl.zeros([QUERIES, D], tl.float32) + v.to(tl.float32)
    n = tl.arange(0, BLOCK)
    prefix = (g * KEYS + key_head) * room_prefix * D
    for start in range(0, length, BLOCK):
        at = (start + n)[:, None] * D + d[None, :]
        top, mass, total = _absorb(
            q, prefix_k + prefix + at, prefix_v + prefix + at, start + n < length, top, mass, total, scale
        )
    for start in range(0, t, BLOCK):
        at = (start + n)[:, None] * D + d[None, :]
        top, mass, total = _absorb(q, own_k + own + at, own_v + own + at, start + n < t, top, mass, total, scale)
    head = out + row * (KEYS * REPEAT * D) + (key_head * REPEAT + r)[:, None] * D + d[None, :]
    tl.store(head, (total / mass[:, None]).to(out.dtype.element_ty), mask=(r < REPEAT)[:, None])


@triton.jit
def _tempered(logits, temperature, row, i, V):
    heat = tl.load(temperature + row)
    heat = tl.where(heat > 0, heat, 1.0)
    z = tl.load(logits + row.to(tl.int64) * V + i, mask=i < V, other=-float("inf"))
    return z.to(tl.float32) / heat


@triton.jit
def block_mass_kernel(logits, temperature, top, mass, best, V, BLOCKS, BLOCK: tl.constexpr):
    """Of each block of the vocabulary: its largest score, where that is, and its mass relative to it."""
    row = tl.program_id(0)
    block = tl.program_id(1)
    i = block * BLOCK + tl.arange(0, BLOCK)
    z = _tempered(logits, temperature, row, i, V)
    z_top = tl.max(z, 0)
    reference = tl.where(z_top == -float("inf"), 0.0, z_top)
    at = row * BLOCKS + block
    tl.store(top + at, z_top)
    tl.store(mass + at, tl.sum(tl.exp(z - reference), 0))
    tl.store(best + at, tl.min(tl.where(z == z_top, i, V - 1), 0))


@triton.jit
def choose_kernel(
    logits, temperature, top, mass, best, uniform, step, limit, end, living, token, out_token, out_logp,
    V, BLOCKS, room, BLOCK: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Find the block by its mass, the token inside it, and write both down unless the row had ended."""
    row = tl.program_id(0)
    b = tl.arange(0, WIDTH)
    tops = tl.load(top + row * BLOCKS + b, mask=b < BLOCKS, other=-float("inf"))
    z_top = tl.max(tops, 0)
    weight = tl.load(mass + row * BLOCKS + b, mask=b < BLOCKS, other=0.0) * tl.exp(tops - z_top)
    weight = weight.to(tl.float64)
    upto = tl.cumsum(weight, 0)
    whole = tl.sum(weight, 0)
    t = tl.load(step + row)
    line = row.to(tl.int64) * room + t
    u = tl.load(uniform + line)
    target = tl.where(u < 1 - 1e-12, u, 1 - 1e-12) * whole
    block = tl.minimum(tl.sum((upto <= target).to(tl.int32), 0), BLOCKS - 1)
    left = target - tl.sum(tl.where(b < block, weight, 0.0), 0)
    n = tl.arange(0, BLOCK)
    i = block * BLOCK + n
    p = tl.exp(_tempered(logits, temperature, row, i, V) - z_top)
    inside = tl.sum((tl.cumsum(p, 0) <= left.to(tl.float32)).to(tl.int32), 0)
    last = tl.max(tl.where(p > 0, n, 0), 0)
    drawn = block * BLOCK + tl.minimum(inside, last)
    first = tl.min(tl.where(tops == z_top, b, WIDTH - 1), 0)
    likeliest = tl.load(best + row * BLOCKS + first)
    chosen = tl.where(tl.load(temperature + row) > 0, drawn, likeliest)
    logp = _tempered(logits, temperature, row, chosen, V) - z_top - tl.log(whole.to(tl.float32))
    tl.store(token + row, chosen.to(tl.int64))
    alive = tl.load(living + row) != 0
    tl.store(out_token + line, chosen.to(tl.int64), mask=alive)
    tl.store(out_logp + line, logp, mask=alive)
    going = (chosen != tl.load(end)) & (t + 1 < tl.load(limit + row))
    tl.store(living + row, going.to(tl.int32), mask=alive)


class TritonOperations(TorchOperations):
    """The same operations, fused; lengths are read on the device."""

    length_bucket = None

    def __init__(self, weights: Weights) -> None:
        super().__init__(weights)
        self._queries = max(16, triton.next_power_of_2(weights.shape.repeat))

    @staticmethod
    def fits(weights: Weights) -> bool:
        """Kernels index heads by powers of two."""
        size = weights.shape.head_dim
        return 16 <= size <= 256 and size & (size - 1) == 0

    def add_norm(self, x_RI: Tensor, y_RI: Tensor | None, weight: Tensor) -> tuple[Tensor, Tensor]:
        """The residual sum and its norm."""
        rows, width = x_RI.shape
        out = torch.empty_like(x_RI)
        total = x_RI if y_RI is None else torch.empty_like(x_RI)
        padded = triton.next_power_of_2(width)
        add_norm_kernel[(rows,)](
            x_RI, x_RI if y_RI is None else y_RI, weight, total, out, self.weights.shape.eps, width,
            ADD=y_RI is not None, WIDTH=padded, num_warps=4 if padded <= 2048 else 8,
        )  # fmt: skip
        return total, out

    def gate(self, gate_up_RI: Tensor) -> Tensor:
        """silu(gate) · up."""
        rows, width = gate_up_RI.shape[0], gate_up_RI.shape[1] // 2
        out = gate_up_RI.new_empty(rows, width)
        gate_kernel[(rows, triton.cdiv(width, 1024))](gate_up_RI, out, width, WIDTH=1024, num_warps=4)
        return out

    def attend(self, i: int, layer: Layer, qkv_RI: Tensor, state: State, cache: Cache, used: int) -> Tensor:
        """Rotate, write this token's key and value, attend to the prompt and the own tokens so far."""
        weights, shape = self.weights, self.weights.shape
        out = qkv_RI.new_empty(len(qkv_RI), shape.heads * shape.head_dim)
        norm = layer.q_norm is not None
        attend_kernel[(len(qkv_RI), shape.kv_heads)](
            qkv_RI, out, cache.own_k[i], cache.own_v[i], cache.prefix_k[i], cache.prefix_v[i],
            state.group, state.length, state.step, weights.cos_TD, weights.sin_TD,
            layer.q_norm if norm else out, layer.k_norm if norm else out,
            shape.scale, shape.eps, cache.own_k[i].shape[2], cache.prefix_k[i].shape[2],
            KEYS=shape.kv_heads, REPEAT=shape.repeat, D=shape.head_dim, QUERIES=self._queries, BLOCK=KEY_BLOCK,
            NORM=norm, num_warps=1 if weights.dtype.itemsize == 2 else 4, num_stages=3,
        )  # fmt: skip
        return out

    def choose(self, logits_RV: Tensor, state: State, nucleus: bool) -> None:
        """Draw each row's token number `state.step` and write it down; rows that had ended stay as they are."""
        rows, vocab = logits_RV.shape
        temperature = state.temperature[:rows]
        if nucleus:
            logits_RV = scaled(logits_RV, temperature, state.top_p[:rows])
            temperature = (temperature > 0).float()
        blocks = triton.cdiv(vocab, VOCAB_BLOCK)
        top, mass = (torch.empty(rows, blocks, device=logits_RV.device) for _ in range(2))
        best = torch.empty(rows, blocks, device=logits_RV.device, dtype=torch.int32)
        logits_RV = logits_RV.contiguous()
        block_mass_kernel[(rows, blocks)](
            logits_RV, temperature, top, mass, best, vocab, blocks, BLOCK=VOCAB_BLOCK, num_warps=4
        )
        choose_kernel[(rows,)](
            logits_RV, temperature, top, mass, best, state.uniform, state.step, state.limit, state.end,
            state.living, state.token, state.out_token, state.out_logp, vocab, blocks, state.out_token.shape[1],
            BLOCK=VOCAB_BLOCK, WIDTH=triton.next_power_of_2(blocks), num_warps=4,
        )  # fmt: skip
