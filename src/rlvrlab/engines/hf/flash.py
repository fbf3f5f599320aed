"""Attention over a packed row by flash kernels: ranges of the row as they lie, no padding, no mask, no copies of keys.

    own      every prompt and every answer attends to itself, causally; one call
    prompts  all answers of a group, as one range, attend to their prompt; one call

An answer token's two outputs are joined by the log-sum-exp of their scores. Given the joined output and log-sum-exp,
the backward pass of either call gives exactly its share of the gradients: P = exp(s − lse), dS = P (dP − Σ dO·O).
Legend: N inputs of the packed row, all prompts first, then the answers, group by group; H heads, D their size.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from rlvrlab.batch import Ints
from rlvrlab.engines.hf.packing import Shared

DTYPES = (torch.bfloat16, torch.float16)
LARGEST_HEAD = 256


class Ranges(NamedTuple):
    """Consecutive ranges of a tensor: where each begins and the last ends, on the device, and the longest."""

    ends: Tensor
    longest: int


class FlashIndices(NamedTuple):
    """A packed row's ranges."""

    prompts: int
    """Inputs of all prompts: the first of the row."""
    own: Ranges
    prompt: Ranges
    asked: Ranges | None
    """The answers of each prompt; None where there is no answer input at all."""


def ranges_of(shared: Shared, device: Any) -> FlashIndices:
    """The ranges of a layout."""
    prompt_G, answer_C = shared.prompt_length_G, shared.answer_length_C
    asked_G = np.bincount(shared.group_C, answer_C, minlength=len(prompt_G)).astype(np.int64)
    own = _ranges(np.concatenate([prompt_G, answer_C[answer_C > 0]]), device)
    asked = _ranges(asked_G, device) if asked_G.any() else None
    return FlashIndices(int(prompt_G.sum()), own, _ranges(prompt_G, device), asked)


def _ranges(length: Ints, device: Any) -> Ranges:
    ends = np.concatenate([[0], np.cumsum(length)]).astype(np.int32)
    return Ranges(torch.from_numpy(ends).to(device, non_blocking=True), int(length.max(initial=0)))


def suits(query: Tensor) -> bool:
    """Do flash kernels take these heads?"""
    return query.is_cuda and query.dtype in DTYPES and query.shape[-1] % 8 == 0 and query.shape[-1] <= LARGEST_HEAD


class Call(NamedTuple):
    """What the forward pass of one call found, for its backward pass."""

    out: Tensor
    lse: Tensor
    """(H, N)"""
    seeds: tuple[Tensor, Tensor]


class FlashKernels:
    """Torch's own, on a GPU."""

    @staticmethod
    def forward(q: Tensor, k: Tensor, v: Tensor, asking: Ranges, seen: Ranges, causal: bool, scale: float) -> Call:
        """Each range of queries attends to the range of keys with the same number."""
        found = torch.ops.aten._flash_attention_forward(
            q, k, v, asking.ends, seen.ends, asking.longest, seen.longest, 0.0, causal, False, scale=scale
        )
        if found[1].shape != (q.shape[1], q.shape[0]):
            raise NotImplementedError("this torch keeps the log-sum-exp of ranges in another shape")
        return Call(found[0], found[1], (found[2], found[3]))

    @staticmethod
    def backward(
        d_out: Tensor, q: Tensor, k: Tensor, v: Tensor, call: Call, asking: Ranges, seen: Ranges, causal: bool,
        scale: float,
    ) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
        """Derivatives by queries, keys and values, added up in a fixed order."""
        with _fixed_order():
            dq, dk, dv = torch.ops.aten._flash_attention_backward(
                d_out, q, k, v, call.out, call.lse, asking.ends, seen.ends, asking.longest, seen.longest, 0.0, causal,
                *call.seeds, scale=scale,
            )  # fmt: skip
        return dq, dk, dv


@contextmanager
def _fixed_order() -> Iterator[None]:
    """The kernel asks this global setting, and adds up in any order otherwise."""
    inner: Any = torch._C  # the public function also imports a compiler
    before, fill = inner._get_deterministic_algorithms(), inner._get_deterministic_fill_uninitialized_memory()
    warn = inner._get_deterministic_algorithms_warn_only()
    inner._set_deterministic_algorithms(True, warn_only=False)
    inner._set_deterministic_fill_uninitialized_memory(False)
    try:
        yield
    finally:
        inner._set_deterministic_algorithms(before, warn_only=warn)
        inner._set_deterministic_fill_uninitialized_memory(fill)


class SharedPrefix(torch.autograd.Function):  # type: ignore[misc]
    """(N, H, D) queries, and keys and values of as many or fewer heads, to (N, H, D)."""

    kernels: Any = FlashKernels

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, at: FlashIndices, scale: float) -> Tensor:
        """Both calls, joined."""
        kernels, first = SharedPrefix.kernels, at.prompts
        own = kernels.forward(q, k, v, at.own, at.own, True, scale)
        seeds = own.seeds
        if at.asked is not None:
            other = kernels.forward(q[first:], k[:first], v[:first], at.asked, at.prompt, False, scale)
            _join(own.out[first:], own.lse[:, first:], other.out, other.lse)
            seeds = other.seeds
        ctx.save_for_backward(q, k, v, own.out, own.lse, *own.seeds, *seeds)
        ctx.at, ctx.scale = at, scale
        return own.out

    @staticmethod
    def backward(ctx: Any, *given: Any) -> Any:
        """Either call's share."""
        q, k, v, out, lse, *seeds = ctx.saved_tensors
        (d_out,), at, scale, kernels = given, ctx.at, ctx.scale, SharedPrefix.kernels
        d_out, first = d_out.contiguous(), at.prompts
        call = Call(out, lse, (seeds[0], seeds[1]))
        dq, dk, dv = kernels.backward(d_out, q, k, v, call, at.own, at.own, True, scale)
        if at.asked is not None:
            call = Call(out[first:], lse[:, first:].contiguous(), (seeds[2], seeds[3]))
            more = kernels.backward(
                d_out[first:], q[first:], k[:first], v[:first], call, at.asked, at.prompt, False, scale
            )
            dq[first:] += more[0]
            dk[:first] += more[1]
            dv[:first] += more[2]
        return dq, dk, dv, None, None


def _join(out: Tensor, lse: Tensor, more: Tensor, more_lse: Tensor) -> None:
    """Two softmaxes over different keys become one, in place."""
    both = torch.logaddexp(lse, more_lse)
    share = torch.exp(lse - both).T[:, :, None]
    out.copy_(torch.lerp(more.float(), out.float(), share))
    lse.copy_(both)


def flash_shared_prefix(query: Tensor, key: Tensor, value: Tensor, at: FlashIndices, scaling: float | None) -> Tensor:
    """(1, H, N, D) in, (1, N, H, D) out."""
    q, k, v = (x[0].transpose(0, 1).contiguous() for x in (query, key, value))
    scale = q.shape[2] ** -0.5 if scaling is None else scaling
    return SharedPrefix.apply(q, k, v, at, scale)[None]
