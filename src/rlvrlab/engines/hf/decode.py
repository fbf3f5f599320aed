"""Decoding without graphs: the path of the CPU. Rows that wait begin when all of these have ended (decode_cuda.py lets
them take free places): a step costs as much as there are living rows, so a batch that thins out loses little.

The keys and values of a prompt are stored once per group; the n rows of the group attend to them together, and each row
to its own new tokens. In float32 one softmax goes over both (decode_plain.py); in half precision torch's kernel, which
rounds less, makes two, which are joined by their log-sums: lerp(o_prefix, o_own, sigmoid(lse_own − lse_prefix)).
Linear maps see only living rows. Suffixes: G groups, R rows, S slots of the rectangle (G, rows per group), H heads,
K key heads with E query heads each, D head size, I any width, L prompt positions, T new tokens, V vocabulary.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from rlvrlab.batch import Ints
from rlvrlab.engines.hf.asked import Asked, Drawn, Ended, Stopped
from rlvrlab.engines.hf.blocks import Cache, finish_block, heads, new_cache, prefill
from rlvrlab.engines.hf.decode_plain import PlainStep
from rlvrlab.engines.hf.decode_rows import Rows
from rlvrlab.engines.hf.draw import draw, scaled
from rlvrlab.engines.hf.weights import Weights

DEAD_SHARE = 1 / 16
"""Finished rows are removed when they are at least this share of the batch."""
STOP_EVERY = 8
"""Steps between two looks for stop strings."""


def attend(q_RHD: Tensor, i: int, cache: Cache, rows: Rows, used: int, scale: float) -> Tensor:
    """(R, H·D) in half precision: attention over the group's prompt and the row's own new tokens."""
    alive, kv_heads, size = len(q_RHD), cache.own_k[i].shape[1], q_RHD.shape[-1]
    groups, longest = len(rows.length_G), rows.longest
    q = q_RHD.contiguous().view(alive, kv_heads, -1, size)
    own_k, own_v = cache.own_k[i][:alive, :, :used], cache.own_v[i][:alive, :, :used]
    prefix_k, prefix_v = cache.prefix_k[i][:groups, :, :longest], cache.prefix_v[i][:groups, :, :longest]
    own, own_lse = _attention(q, own_k, own_v, None, scale)
    prefix, prefix_lse = _attention(rows.by_group(q), prefix_k, prefix_v, rows.bias, scale)
    share = torch.sigmoid(own_lse - rows.by_row(prefix_lse[..., None])[..., 0])[..., None]
    return torch.lerp(rows.by_row(prefix).float(), own.float(), share).to(q.dtype).reshape(alive, -1)


def _attention(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, scale: float) -> tuple[Tensor, Tensor]:
    """Attention and the log-sum of its weights, which the public function keeps to itself."""
    bias = None if bias is None else bias.to(q.dtype)
    return torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, attn_mask=bias, scale=scale)


def decode(weights: Weights, asked: Asked, stopped: Stopped | None, ended: Ended) -> None:
    """All rows together until each has ended."""
    rows = Rows(asked, weights.device)
    cache = new_cache(weights, len(asked.prompts), rows.longest, len(rows), asked.new_tokens, masked_own=False)
    uniform_RT = torch.from_numpy(asked.uniform_of(rows.id_R)).to(weights.device)
    token_RT = torch.zeros(len(rows), asked.new_tokens, dtype=torch.long, device=weights.device)
    logp_RT = torch.zeros(token_RT.shape, device=weights.device)
    logits_RV = prefill(weights, asked.prompts, asked.begun_G, cache)[rows.group]
    plain = PlainStep(weights, rows, cache) if weights.dtype == torch.float32 else None
    ends = np.array((asked.end, *asked.more_ends))

    def tell(row_R: Ints) -> None:
        ended(row_R, Drawn(token_RT[row_R].cpu().numpy(), logp_RT[row_R].double().cpu().numpy()))

    for t in range(asked.new_tokens):
        z_RV = scaled(logits_RV, rows.temperature, rows.top_p)
        token_R, logp_R = draw(z_RV, uniform_RT[rows.id, t], rows.temperature == 0 if rows.greedy else None)
        token_RT[rows.id, t], logp_RT[rows.id, t] = token_R, logp_R
        rows.dead_R |= np.isin(token_R.cpu().numpy(), ends)
        rows.dead_R |= asked.limit_R[rows.id_R] <= t + 1
        if stopped is not None and t % STOP_EVERY == STOP_EVERY - 1:
            rows.dead_R |= stopped(rows.id_R, token_RT[rows.id, : t + 1].cpu().numpy())
        if rows.dead_R.all():
            break
        if rows.dead_R.sum() >= DEAD_SHARE * len(rows):
            gone = rows.id_R[rows.dead_R]
            rows.remove_dead(cache, t)
            if plain is not None:
                plain.arrange()
            tell(gone)
        token_R = token_RT[rows.id, t]
        logits_RV = _step(weights, token_R, rows, cache, t) if plain is None else plain(token_R, t)
    tell(rows.id_R)


def _step(weights: Weights, token_R: Tensor, rows: Rows, cache: Cache, t: int) -> Tensor:
    """In half precision: scores of the next token (R, V); writes the keys and values of this one."""
    position_R = rows.length + t
    cos_RD, sin_RD = weights.cos_TD[position_R], weights.sin_TD[position_R]
    x_RI = weights.embedding[token_R]
    alive = len(rows)
    for i, layer in enumerate(weights.layers):
        q, k, v = heads(weights, layer, x_RI, cos_RD, sin_RD)
        cache.own_k[i][:alive, :, t], cache.own_v[i][:alive, :, t] = k, v
        x_RI = finish_block(weights, layer, x_RI, attend(q, i, cache, rows, t + 1, weights.shape.scale))
    return weights.logits(x_RI)
