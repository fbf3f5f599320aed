"""A decoding step in float32 on a CPU, with few and small operations beside its products.

The batch stays stored by features, as products want it; only attention turns it to rows. Sums go into the residual in
place, queries get the scale of scores with their rotation, and one softmax goes over the prompt and the new tokens.
Suffixes: G groups, R rows, H heads, K key heads with E query heads each, D head size, I and O any width, T new tokens.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import silu

from rlvrlab.engines.hf.blocks import Cache
from rlvrlab.engines.hf.decode_rows import Rows
from rlvrlab.engines.hf.weights import Layer, Weights


class PlainStep:
    """The steps of one wave."""

    def __init__(self, weights: Weights, rows: Rows, cache: Cache) -> None:
        self.weights, self.rows, self.cache, self.shape = weights, rows, cache, weights.shape
        # Every step multiplies by the prompts' keys, and it is faster by them in this order.
        cache.prefix_k = [k_GKLD.mT.contiguous().mT for k_GKLD in cache.prefix_k]
        self.rotated = self.shape.heads + self.shape.kv_heads
        self.scale = torch.ones(self.rotated, 1, 1, device=weights.device)
        self.scale[: self.shape.heads] = self.shape.scale
        self.eps = torch.tensor(self.shape.eps, device=weights.device)
        self.norms = [(layer.norm1[:, None], layer.norm2[:, None]) for layer in weights.layers]
        self.arrange()

    def arrange(self) -> None:
        """Look anew at the cache, after rows have left."""
        groups, longest, alive = len(self.rows.length_G), self.rows.longest, len(self.rows)
        cache = self.cache
        self.prefix_k, self.prefix_v = (
            [kv[:groups, :, :longest].flatten(0, 1) for kv in part] for part in (cache.prefix_k, cache.prefix_v)
        )
        self.own_k, self.own_v = ([kv[:alive].flatten(0, 1) for kv in part] for part in (cache.own_k, cache.own_v))
        self.own_kv = [kv[:, :alive] for kv in cache.own_kv]

    def __call__(self, token_R: Tensor, t: int) -> Tensor:
        """Scores of the next token (R, V); writes the keys and values of this one."""
        weights, position_R = self.weights, self.rows.length + t
        cos, sin = weights.cos_TD[position_R].t() * self.scale, weights.sin_TD[position_R].t() * self.scale
        x_IR = weights.embedding[token_R].t().contiguous()
        for i, (layer, (norm1, norm2)) in enumerate(zip(weights.layers, self.norms, strict=True)):
            qkv = self._heads(layer, self._normed(x_IR, norm1), cos, sin)
            x_IR.addmm_(layer.out, self._attend(i, qkv, t).t())
            x_norm = self._normed(_plus(x_IR, layer.out_bias), norm2)
            gate, up = _plus(torch.mm(layer.gate_up, x_norm), layer.gate_up_bias).chunk(2)
            x_IR.addmm_(layer.down, silu(gate, inplace=True).mul_(up))
            _plus(x_IR, layer.down_bias)
        return torch.mm(weights.head, self._normed(x_IR, weights.norm[:, None])).t()

    def _normed(self, x: Tensor, weight: Tensor) -> Tensor:
        """RMSNorm over the last dimension but one."""
        scale = torch.add(self.eps, x.square().sum(-2, keepdim=True), alpha=1 / x.shape[-2]).rsqrt_()
        return (x * scale).mul_(weight)

    def _heads(self, layer: Layer, x_IR: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """Rotated and scaled queries, rotated keys, and values (H + 2K, D, R)."""
        size = self.shape.head_dim
        qkv = _plus(torch.mm(layer.qkv, x_IR), layer.qkv_bias).view(-1, size, x_IR.shape[1])
        qk = qkv[: self.rotated]
        if layer.q_norm is not None and layer.k_norm is not None:
            q, k = qk[: self.shape.heads], qk[self.shape.heads :]
            q.copy_(self._normed(q, layer.q_norm[:, None]))
            k.copy_(self._normed(k, layer.k_norm[:, None]))
        turned = qk.roll(size // 2, 1).mul_(sin)
        qk.mul_(cos).add_(turned)
        return qkv

    def _attend(self, i: int, qkv: Tensor, t: int) -> Tensor:
        """(R, H·D): attention over the group's prompt and the row's own new tokens."""
        rows, heads, kv_heads = self.rows, self.shape.heads, self.shape.kv_heads
        size, alive = qkv.shape[1:]
        self.own_kv[i][:, :, :, t] = qkv[heads:].view(2, kv_heads, size, alive).permute(0, 3, 1, 2)
        q_RKED = qkv[:heads].permute(2, 0, 1).contiguous().view(alive, kv_heads, -1, size)
        asked = rows.by_group(q_RKED)
        seen = torch.bmm(asked.flatten(0, 1), self.prefix_k[i].mT).view(*asked.shape[:-1], -1)
        if rows.bias is not None:
            seen += rows.bias
        own = torch.bmm(q_RKED.flatten(0, 1), self.own_k[i][:, : t + 1].mT)
        share = rows.beside(seen, own.view(alive, kv_heads, -1, t + 1)).softmax(-1)
        of_prompt = rows.by_group(share[..., : rows.longest])
        out = torch.bmm(of_prompt.flatten(0, 1), self.prefix_v[i]).view(asked.shape)
        out = rows.by_row(out).flatten(0, 1)
        return out.baddbmm_(share.flatten(0, 1)[..., rows.longest :], self.own_v[i][:, : t + 1]).view(alive, -1)


def _plus(x_OR: Tensor, bias_O: Tensor | None) -> Tensor:
    """In place, where there is a bias."""
    return x_OR if bias_O is None else x_OR.add_(bias_O[:, None])
