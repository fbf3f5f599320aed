"""Attention of short sequences over a packed row on a CPU, by plain products with a backward pass of its own.

Torch's kernel for a CPU takes twice as long on sequences of about a hundred tokens. Here all scores are kept for the
backward pass, so it is for sequences whose scores take little more memory than their queries.
Legend: N inputs of the packed row, B sequences (prompts or answers) of T positions, W positions that each sees,
H heads of queries, K of keys and values with E = H / K heads of queries each, D their size.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import Function

from rlvrlab.engines.hf.attention import PackedIndices

SHORT = 2
"""Positions seen, over the size of a head: up to here scores are kept."""


def is_short(indices: PackedIndices, head_dim: int) -> bool:
    """May all scores be kept?"""
    return max(indices.mask.shape[-1], len(indices.prompts) // max(1, indices.groups)) <= SHORT * head_dim


class Sizes(NamedTuple):
    """Of heads."""

    heads: int
    kv_heads: int
    head_dim: int

    def asked(self, x_BTHD: Tensor) -> Tensor:
        """(B, K, E·T, D) of (B, T, H, D): heads that share keys ask together."""
        x = x_BTHD.unflatten(2, (self.kv_heads, -1)).permute(0, 2, 3, 1, 4)
        return x.reshape(len(x_BTHD), self.kv_heads, -1, self.head_dim)

    def told(self, x_BKQD: Tensor) -> Tensor:
        """The same the other way, a view."""
        x = x_BKQD.unflatten(2, (self.heads // self.kv_heads, -1)).permute(0, 3, 1, 2, 4)
        return x.flatten(2, 3) if self.heads == self.kv_heads else x.reshape(*x.shape[:2], -1, self.head_dim)


class Seen(NamedTuple):
    """Queries (B, K, E·T, D), keys and values (B, K, W, D), and the weights of those (B·K, E·T, W)."""

    q: Tensor
    k: Tensor
    v: Tensor
    weights: Tensor


def _look(q: Tensor, k: Tensor, v: Tensor, bias_B1TW: Tensor, scale: float) -> tuple[Tensor, Seen]:
    batch, kv_heads, asked, _ = q.shape
    each, seen = asked // bias_B1TW.shape[-2], k.shape[2]
    scores = q.new_empty(batch, kv_heads, each, asked // each, seen).copy_(bias_B1TW[:, :, None])
    scores = scores.view(-1, asked, seen).baddbmm_(q.flatten(0, 1), k.flatten(0, 1).mT, alpha=scale)
    weights = torch.softmax(scores, -1)
    return torch.bmm(weights, v.flatten(0, 1)).view(q.shape), Seen(q, k, v, weights)


def _slopes(d_out: Tensor, seen: Seen) -> tuple[Tensor, Tensor, Tensor]:
    """Derivatives by queries and keys, both still to be multiplied by the scale, and by values."""
    q, k, v = (x.flatten(0, 1) for x in seen[:3])
    d = d_out.flatten(0, 1)
    d_v = torch.bmm(seen.weights.mT, d)
    d_scores = torch._softmax_backward_data(torch.bmm(d, v.mT), seen.weights, -1, d.dtype)
    d_q, d_k = torch.bmm(d_scores, k), torch.bmm(d_scores.mT, q)
    return d_q.view(seen.q.shape), d_k.view(seen.k.shape), d_v.view(seen.v.shape)


class PlainAttention(Function):  # type: ignore[misc]
    """Queries, keys and values (N, H + 2K, D) to what was attended (N, H·D)."""

    @staticmethod
    def forward(ctx: Any, qkv: Tensor, indices: PackedIndices, sizes: Sizes, scale: float) -> Tensor:
        """Prompts among themselves, then answers on their prompt and themselves."""

        def table(index: Tensor, first: int, rows: int) -> tuple[Tensor, Tensor, Tensor]:
            found = qkv[first : first + len(index)] if indices.unpadded else qkv.index_select(0, index)
            q, k, v = found.unflatten(0, (rows, -1)).split([sizes.heads, sizes.kv_heads, sizes.kv_heads], 2)
            return sizes.asked(q), k.transpose(1, 2), v.transpose(1, 2)

        q, k, v = table(indices.prompts, 0, indices.groups)
        k, v = k.contiguous(), v.contiguous()
        out, seen = _look(q, k, v, indices.prompt_bias, scale)
        outs, kept = [sizes.told(out)], [*seen]
        if indices.answers.numel():
            q, own_k, own_v = table(indices.answers, len(indices.prompts), indices.rows)
            whole_k, whole_v = (
                torch.cat((prompt.index_select(0, indices.group), own), 2) for prompt, own in ((k, own_k), (v, own_v))
            )
            out, seen = _look(q, whole_k, whole_v, indices.answer_bias, scale)
            outs.append(sizes.told(out))
            kept += seen
        ctx.save_for_backward(*kept)
        ctx.indices, ctx.sizes, ctx.scale = indices, sizes, scale
        flat = torch.cat([x.reshape(-1, sizes.heads * sizes.head_dim) for x in outs])
        return flat if indices.unpadded else flat.index_select(0, indices.back)

    @staticmethod
    def backward(ctx: Any, *given: Any) -> Any:
        """A prompt's keys and values hear from all its answers."""
        indices, sizes = ctx.indices, ctx.sizes
        prompts, answers = len(indices.prompts), len(indices.answers)
        d_flat = given[0]
        if not indices.unpadded:
            d_flat = d_flat.new_zeros(prompts + answers, d_flat.shape[1]).index_copy_(0, indices.back, d_flat)
        d_prompts, d_answers = d_flat.view(prompts + answers, sizes.heads, -1).split([prompts, answers])
        kept = ctx.saved_tensors  # asked for once: a checkpoint gives them only once
        first, second = Seen(*kept[:4]), kept[4:]
        d_q, d_k, d_v = _slopes(sizes.asked(d_prompts.unflatten(0, (indices.groups, -1))), first)
        d_qkv = d_flat.new_empty(prompts + answers, sizes.heads + 2 * sizes.kv_heads, sizes.head_dim)
        if second:
            d_asked, d_both_k, d_both_v = _slopes(
                sizes.asked(d_answers.unflatten(0, (indices.rows, -1))), Seen(*second)
            )
            length = first.k.shape[2]
            for d_prompt, d_both in ((d_k, d_both_k), (d_v, d_both_v)):
                heard = indices.members @ d_both[:, :, :length].flatten(1)
                d_prompt.add_(heard.view(d_prompt.shape))
            target = d_qkv[prompts:].unflatten(0, (indices.rows, -1))
            _put(target, sizes, d_asked, d_both_k[:, :, length:], d_both_v[:, :, length:], ctx.scale)
        _put(d_qkv[:prompts].unflatten(0, (indices.groups, -1)), sizes, d_q, d_k, d_v, ctx.scale)
        return d_qkv if indices.unpadded else d_qkv.index_select(0, indices.back), None, None, None


def _put(target_BTHD: Tensor, sizes: Sizes, d_q: Tensor, d_k: Tensor, d_v: Tensor, scale: float) -> None:
    """Derivatives side by side, as queries, keys and values lie."""
    q, k, v = target_BTHD.split([sizes.heads, sizes.kv_heads, sizes.kv_heads], 2)
    torch.mul(sizes.told(d_q), scale, out=q)
    torch.mul(d_k.transpose(1, 2), scale, out=k)
    v.copy_(d_v.transpose(1, 2))
