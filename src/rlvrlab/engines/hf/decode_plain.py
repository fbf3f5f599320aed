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
from rlvrlab.engines.hf.decode_prompts import EqualGroups, Heads, RaggedGroups
from rlvrlab.engines.hf.decode_rows import Rows
from rlvrlab.engines.hf.weights import Layer, Weights


class PlainStep:
    """The steps of rows that are decoded together."""

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
        self.prefix_k = [k[:groups, :, :longest].flatten(0, 1).mT for k in cache.prefix_k]
        self.prefix_v = [v[:groups, :, :longest].flatten(0, 1) for v in cache.prefix_v]
        self.own_k, self.own_v = ([kv[:alive].flatten(0, 1) for kv in part] for part in (cache.own_k, cache.own_v))
        self.own_kv = [kv[:, :alive] for kv in cache.own_kv]
        self.heads = Heads(self.weights, alive)
        self.prompts = (EqualGroups if self.rows.dense else RaggedGroups)(self.rows, self.heads)
        self.gate_up = torch.empty(len(self.weights.layers[0].gate_up), alive, device=self.weights.device)
        self.gate, self.up = self.gate_up.chunk(2)

    def __call__(self, token_R: Tensor, t: int) -> Tensor:
        """Scores of the next token (R, V); writes the keys and values of this one."""
        weights, position_R = self.weights, self.rows.length + t
        cos, sin = weights.cos_TD[position_R].t() * self.scale, weights.sin_TD[position_R].t() * self.scale
        turns = cos, *sin.chunk(2, 1)
        x_IR = weights.embedding[token_R].t().contiguous()
        for i, (layer, (norm1, norm2)) in enumerate(zip(weights.layers, self.norms, strict=True)):
            self._project(layer, self._normed(x_IR, norm1), turns)
            x_IR.addmm_(layer.out, self._attend(i, t).t())
            x_norm = self._normed(_plus(x_IR, layer.out_bias), norm2)
            _plus(torch.mm(layer.gate_up, x_norm, out=self.gate_up), layer.gate_up_bias)
            x_IR.addmm_(layer.down, silu(self.gate, inplace=True).mul_(self.up))
            _plus(x_IR, layer.down_bias)
        return torch.mm(weights.head, self._normed(x_IR, weights.norm[:, None])).t()

    def _normed(self, x: Tensor, weight: Tensor) -> Tensor:
        """RMSNorm over the last dimension but one."""
        scale = torch.add(self.eps, x.square().sum(-2, keepdim=True), alpha=1 / x.shape[-2]).rsqrt_()
        return (x * scale).mul_(weight)

    def _project(self, layer: Layer, x_IR: Tensor, turns: tuple[Tensor, Tensor, Tensor]) -> None:
        """Rotated and scaled queries, rotated keys, and values of this token."""
        own, (cos, sin_first, sin_second) = self.heads, turns
        _plus(torch.mm(layer.qkv, x_IR, out=own.all), layer.qkv_bias)
        if layer.q_norm is not None and layer.k_norm is not None:
            q, k = own.qk[: self.shape.heads], own.qk[self.shape.heads :]
            q.copy_(self._normed(q, layer.q_norm[:, None]))
            k.copy_(self._normed(k, layer.k_norm[:, None]))
        torch.mul(own.second, sin_first, out=own.turned_first)
        torch.mul(own.first, sin_second, out=own.turned_second)
        torch.addcmul(own.turned, own.qk, cos, out=own.qk)

    def _attend(self, i: int, t: int) -> Tensor:
        """(R, H·D): attention over the group's prompt and the row's own new tokens."""
        self.own_kv[i].select(3, t).copy_(self.heads.kv_2RKD)
        own = torch.bmm(self.heads.by_rows(), self.own_k[i][:, : t + 1].mT)
        seen = self.prompts.seen(self.prefix_k[i])
        share = torch.cat((seen, own.view(*seen.shape[:-1], t + 1)), -1).softmax(-1)
        of_prompt, of_own = share.split((self.rows.longest, t + 1), -1)
        out = self.prompts.attended(of_prompt, self.prefix_v[i])
        return out.baddbmm_(of_own.flatten(0, -3), self.own_v[i][:, : t + 1]).view(len(self.rows), -1)


def _plus(x_OR: Tensor, bias_O: Tensor | None) -> Tensor:
    """In place, where there is a bias."""
    return x_OR if bias_O is None else x_OR.add_(bias_O[:, None])
