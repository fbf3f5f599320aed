"""One token per row from one keyed uniform per row: the inverse of the cumulative distribution.

What is drawn depends on the row's scores and its uniform alone, never on its place in the batch. The reported log-prob
is that of the distribution drawn from: at the temperature, within the nucleus; for a greedy row at temperature 1.
Suffixes: R rows, V vocabulary, B blocks of the vocabulary.
"""

from __future__ import annotations

import torch
from torch import Tensor

BLOCK = 256
"""Tokens per block: a block is found by its mass first, so that float32 sums stay short and exact enough."""


def scaled(logits_RV: Tensor, temperature_R: Tensor, top_p_R: Tensor | None) -> Tensor:
    """Scores in float32 at each row's temperature (0 means 1 here), -inf outside its nucleus."""
    divisor_R1 = torch.where(temperature_R > 0, temperature_R, 1.0)[:, None]
    z_RV = logits_RV.float() / divisor_R1
    if top_p_R is None:
        return z_RV
    # The nucleus: the likeliest tokens whose predecessors hold less than top_p; the first always stays.
    p_RV, order_RV = z_RV.softmax(-1).sort(dim=-1, descending=True, stable=True)
    before_RV = p_RV.double().cumsum(-1) - p_RV
    outside_RV = (before_RV >= top_p_R[:, None]) & (top_p_R < 1)[:, None]
    outside_RV[:, 0] = False
    return z_RV.masked_fill(torch.zeros_like(outside_RV).scatter_(1, order_RV, outside_RV), -torch.inf)


def draw(z_RV: Tensor, uniform_R: Tensor, greedy_R: Tensor | None) -> tuple[Tensor, Tensor]:
    """Token and log-prob of each row; `greedy_R` None means that no row is greedy."""
    top_R1 = z_RV.amax(-1, keepdim=True)
    blocks = -(-z_RV.shape[1] // BLOCK)
    weight_RV = (z_RV - top_R1).exp_()
    if blocks * BLOCK != z_RV.shape[1]:
        weight_RV = torch.nn.functional.pad(weight_RV, (0, blocks * BLOCK - z_RV.shape[1]))
    weight_RBb = weight_RV.view(-1, blocks, BLOCK)
    mass_RB = weight_RBb.sum(-1).double()
    upto_RB = mass_RB.cumsum(-1)
    # The first token whose cumulative mass exceeds uniform times all mass; it always has mass itself.
    target_R1 = uniform_R.double().clamp(max=1 - 1e-12)[:, None] * upto_RB[:, -1:]
    block_R1 = (upto_RB <= target_R1).sum(-1, keepdim=True).clamp_(max=mass_RB.shape[1] - 1)
    left_R1 = target_R1 - (upto_RB.gather(1, block_R1) - mass_RB.gather(1, block_R1))
    place_b = torch.arange(BLOCK, device=block_R1.device)
    inside_Rb = weight_RBb[torch.arange(len(block_R1), device=block_R1.device), block_R1[:, 0]].double()
    place_R = (inside_Rb.cumsum(-1) <= left_R1).sum(-1)
    token_R = block_R1[:, 0] * BLOCK + torch.minimum(place_R, ((inside_Rb > 0) * place_b).amax(-1))
    if greedy_R is not None:
        token_R = torch.where(greedy_R, z_RV.argmax(-1), token_R)
    logp_R = (z_RV.gather(1, token_R[:, None]) - top_R1)[:, 0] - upto_RB[:, -1].log().float()
    return token_R, logp_R
