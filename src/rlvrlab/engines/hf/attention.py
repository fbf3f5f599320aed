"""Attention over a packed row: prompts see themselves, each answer sees its prompt and itself.

Registered with Transformers under NAME; every model that takes its attention from that registry can be packed. Only
attention is regrouped into padded tables; all other layers run on the packed row, which has no padding. Where flash
kernels take the model's heads, attention needs no tables either (flash.py).
Legend: N inputs of the packed row, G prompts of P positions, C answers of T positions, H heads, D their size.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from rlvrlab.engines.hf.flash import FlashIndices, flash_shared_prefix, ranges_of, suits
from rlvrlab.engines.hf.packing import Shared
from rlvrlab.engines.hf.slopes import along

NAME = "rlvrlab_shared_prefix"
MOST_ROUNDING = 0.02
"""How far two ways of one attention in bfloat16 may be apart, relative to its size."""


@dataclass(frozen=True)
class PackedIndices:
    """A packed row's indices on the device."""

    prompts: Tensor
    """G·P indices into N."""
    answers: Tensor
    """C·T indices into N."""
    group: Tensor
    """C: the prompt of each answer."""
    mask: Tensor
    """(C, 1, T, P+T): the prompt and answer positions that each answer token attends to."""
    back: Tensor
    """N indices into the G·P + C·T outputs."""
    groups: int
    rows: int

    @property
    def unpadded(self) -> bool:
        """The tables are the packed row as it lies: all prompts are of one length, and all answers."""
        return len(self.back) == len(self.prompts) + len(self.answers)

    @cached_property
    def prompt_bias(self) -> Tensor:
        """(1, 1, P, P) to add to scores: −∞ on later positions."""
        length = len(self.prompts) // max(1, self.groups)
        return torch.full((length, length), -torch.inf, device=self.mask.device).triu_(1)[None, None]

    @cached_property
    def answer_bias(self) -> Tensor:
        """The mask, to add to scores."""
        return torch.zeros(self.mask.shape, device=self.mask.device).masked_fill_(~self.mask, -torch.inf)

    @cached_property
    def members(self) -> Tensor:
        """(G, C): 1 where the answer belongs to the prompt."""
        return (torch.arange(self.groups, device=self.group.device)[:, None] == self.group).float()


@contextmanager
def without_cudnn() -> Iterator[None]:
    """Inside the block torch's attention does not take cuDNN's kernels, which it prefers on newer cards.

    Their backward pass with a mask is NaN for some widths (of 64 beyond a multiple of 128, pytorch issue 196678), they
    plan anew for every shape, of which packed rows have many, and they fail without a reason on a full card.
    """
    before = torch.backends.cuda.cudnn_sdp_enabled()
    torch.backends.cuda.enable_cudnn_sdp(False)
    try:
        yield
    finally:
        torch.backends.cuda.enable_cudnn_sdp(before)


_active: PackedIndices | FlashIndices | None = None
"""Those of the pass under way; not thread-local, because autograd recomputes checkpoints on a thread of its own."""


def active() -> PackedIndices | FlashIndices | None:
    """Those of the pass under way; None outside of one, and in a padded one."""
    return _active


def indices_of(shared: Shared, device: Any) -> PackedIndices:
    """Indices and mask of a layout, once per forward pass."""
    rows, width = shared.answer_CT.shape
    sees_CP = np.arange(shared.prompt_GP.shape[1]) < shared.prompt_length_G[shared.group_C][:, None]
    prompt_CTP = np.broadcast_to(sees_CP[:, None], (rows, width, sees_CP.shape[1]))
    own_CTT = np.broadcast_to(np.tri(width, dtype=bool), (rows, width, width))
    mask = np.concatenate([prompt_CTP, own_CTT], axis=2)

    def moved(array: Any) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(device, non_blocking=True)

    return PackedIndices(
        prompts=moved(shared.prompt_GP.ravel()),
        answers=moved(shared.answer_CT.ravel()),
        group=moved(shared.group_C),
        mask=moved(mask[:, None]),
        back=moved(shared.back_N),
        groups=len(shared.prompt_GP),
        rows=rows,
    )


@contextmanager
def packed_attention(config: Any, indices: PackedIndices | FlashIndices | None) -> Iterator[None]:
    """Inside the block the model attends by these indices; with None it attends as usual."""
    global _active
    if indices is None:
        yield
        return
    if "transformers" in sys.modules:  # without it the model is our own, whose attention asks `active`
        register()
    before, _active = config._attn_implementation, indices
    config._attn_implementation = NAME
    try:
        yield
    finally:
        config._attn_implementation, _active = before, None


def register() -> None:
    """Make the name known to Transformers."""
    from transformers import AttentionInterface

    AttentionInterface.register(NAME, shared_prefix_attention)


def shared_prefix_attention(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Any,
    scaling: float | None = None,
    **_: Any,
) -> tuple[Tensor, None]:
    """(1, H, N, D) in, (1, N, H, D) out."""
    assert _active is not None and query.shape[0] == 1, "packed attention without indices"
    return attend(query, key, value, _active, scaling), None


def attend(query: Tensor, key: Tensor, value: Tensor, indices: PackedIndices | FlashIndices, scaling: Any) -> Tensor:
    """The same by given indices."""
    if isinstance(indices, FlashIndices):
        return flash_shared_prefix(query, key, value, indices, scaling)
    q, k, v = query[0], key[0], value[0]
    shared_heads = {"enable_gqa": True} if q.shape[0] != k.shape[0] else {}

    def table(x: Tensor, index: Tensor, rows: int) -> Tensor:
        return x.index_select(1, index).view(x.shape[0], rows, -1, x.shape[2]).transpose(0, 1)

    own = [table(x, indices.prompts, indices.groups) for x in (q, k, v)]
    out = [scaled_dot_product_attention(*own, is_causal=True, scale=scaling, **shared_heads)]
    if indices.answers.numel():
        asked = table(q, indices.answers, indices.rows)
        # Indexing by group, unlike index_select, adds up gradients in a fixed order on a GPU too.
        keys, values = (
            torch.cat([x[indices.group], table(y, indices.answers, indices.rows)], 2)
            for x, y in zip(own[1:], (k, v), strict=True)
        )
        out.append(masked_attention(asked, keys, values, indices.mask, scaling, repeat=asked.device.type == "cuda"))
    flat = torch.cat([x.transpose(1, 2).reshape(-1, q.shape[0], v.shape[2]) for x in out])
    return flat.index_select(0, indices.back)[None]


def flash_finds_what_tables_find(config: Any, dtype: torch.dtype, shared: Shared, device: Any) -> bool:
    """Do flash kernels take a model's heads, and agree with tables forwards and backwards?

    One attention is compared and not the model: rounding grows with its depth, whichever of the two is taken.
    """
    heads = config.num_attention_heads
    of_keys = getattr(config, "num_key_value_heads", None) or heads
    size = getattr(config, "head_dim", None) or config.hidden_size // heads
    drawn = torch.Generator(device).manual_seed(0)

    def tensor(*shape: int) -> Tensor:
        return torch.randn(shape, generator=drawn, device=device, dtype=dtype)

    count = len(shared.back_N)
    query, key, value = (tensor(1, many, count, size).requires_grad_() for many in (heads, of_keys, of_keys))
    if not suits(query):
        return False
    slope, found = tensor(1, count, heads, size), []
    with torch.enable_grad(), without_cudnn():
        for indices in (indices_of(shared, device), ranges_of(shared, device)):
            out = attend(query, key, value, indices, None)
            found.append((out, *torch.autograd.grad(along(out, slope), (query, key, value))))
    return all(bool((b - a).norm() <= MOST_ROUNDING * a.norm()) for a, b in zip(*found, strict=True))


def masked_attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor, scaling: float | None, *, repeat: bool
) -> Tensor:
    """Attention where a mask says who sees whom; (C, H, T, D), and fewer heads of keys and values.

    `repeat` gives every query head its own: beside cuDNN's, no kernel of a GPU takes both a mask and shared heads, and
    torch would make all scores at once.
    """
    share = query.shape[1] // key.shape[1]
    if share == 1:
        return scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=scaling)
    if repeat:
        key, value = (x.repeat_interleave(share, 1) for x in (key, value))
    return scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=scaling, enable_gqa=not repeat)
