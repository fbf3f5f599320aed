"""Attention without tables: joined ranges are the attention of the tables, with its gradients. No GPU is needed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from engine_factories import hf
from needs_torch import torch

from rlvrlab.batch import batch_of
from rlvrlab.engines.hf import attention
from rlvrlab.engines.hf.flash import Call, SharedPrefix
from rlvrlab.engines.hf.packing import layout_of
from rlvrlab.objectives.sft import Sft

ROWS = (
    [(3, 4, 5), (6, 7), (3, 4, 5), (6, 7), (3, 4, 5), (8,), (6, 7)],
    [(4, 5, 6, 9), (6, 5), (4, 5, 6, 9), (6, 5, 4, 3, 2), (7, 7, 2), (5,), (9,)],
)
"""Groups in turn, a row that is there twice, and answers of one token, which are no input."""


class PlainKernels:
    """What the GPU's kernels promise, written out: every range by itself, and gradients from output and log-sum-exp."""

    @staticmethod
    def pairs(asking: Any, seen: Any) -> Any:
        """Ranges of queries and keys with the same number."""
        ends = zip(asking.ends[:-1], asking.ends[1:], seen.ends[:-1], seen.ends[1:], strict=True)
        return [(slice(int(a), int(b)), slice(int(c), int(d))) for a, b, c, d in ends]

    @staticmethod
    def score(q: Any, k: Any, causal: bool, scale: float) -> Any:
        """(H, queries, keys)"""
        s = torch.einsum("nhd,mhd->hnm", q, k.repeat_interleave(q.shape[1] // k.shape[1], 1)) * scale
        unseen = torch.ones(s.shape[1:], dtype=torch.bool).triu(s.shape[2] - s.shape[1] + 1)
        return s.masked_fill(unseen, -torch.inf) if causal else s

    @classmethod
    def forward(cls, q: Any, k: Any, v: Any, asking: Any, seen: Any, causal: bool, scale: float) -> Call:
        out, lse = torch.zeros_like(q), torch.full((q.shape[1], q.shape[0]), torch.nan)
        for a, b in cls.pairs(asking, seen):
            s = cls.score(q[a], k[b], causal, scale)
            lse[:, a] = s.logsumexp(-1)
            values = v[b].repeat_interleave(q.shape[1] // v.shape[1], 1)
            out[a] = torch.einsum("hnm,mhd->nhd", s.softmax(-1), values)
        return Call(out, lse, (torch.zeros(1), torch.zeros(1)))

    @classmethod
    def backward(
        cls, d_out: Any, q: Any, k: Any, v: Any, call: Call, asking: Any, seen: Any, causal: bool, scale: float
    ) -> Any:
        dq, dk, dv = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
        share = q.shape[1] // k.shape[1]

        def of_keys(x: Any) -> Any:
            return x.unflatten(1, (k.shape[1], share)).sum(2)

        for a, b in cls.pairs(asking, seen):
            p = torch.exp(cls.score(q[a], k[b], causal, scale) - call.lse[:, a, None])
            dp = torch.einsum("nhd,mhd->hnm", d_out[a], v[b].repeat_interleave(share, 1))
            ds = p * (dp - (d_out[a] * call.out[a]).sum(-1).T[:, :, None]) * scale
            dq[a] += torch.einsum("hnm,mhd->nhd", ds, k[b].repeat_interleave(share, 1))
            dk[b] += of_keys(torch.einsum("hnm,nhd->mhd", ds, q[a]))
            dv[b] += of_keys(torch.einsum("hnm,nhd->mhd", p, d_out[a]))
        return dq, dk, dv


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SharedPrefix, "kernels", PlainKernels)


@pytest.mark.parametrize("kind", ["llama", "qwen2"])
@pytest.mark.parametrize("rows", [slice(None), slice(5, 6), slice(0, 1)])
def test_scores_and_gradients_are_those_of_tables(kind: str, rows: slice) -> None:
    engine = hf(kind, 4)(0)
    engine.weights.add(torch.randn(engine.weights.size, generator=torch.Generator().manual_seed(1)) * 0.1)
    batch = batch_of(ROWS[0][rows], ROWS[1][rows])
    found = []
    for flash in (False, True):
        engine.logprobs(batch)
        engine.body.flash = flash
        found.append((engine.logprobs(batch)[0], *engine.gradient(batch, Sft())[:2]))
    (tables, slope, value), (ranges, flash_slope, flash_value) = found
    np.testing.assert_allclose(ranges, tables, atol=1e-5)
    assert flash_value == pytest.approx(value, rel=1e-5)
    assert slope.norm() > 0
    torch.testing.assert_close(flash_slope, slope, atol=1e-5 * float(slope.norm()), rtol=1e-4)


def test_a_cpu_keeps_its_tables() -> None:
    engine = hf("llama", 4)(0)
    engine.gradient(batch_of(*ROWS), Sft())
    assert engine.ways is not None
    assert not engine.ways.flash and engine.ways.adapters and not engine.ways.head and not engine.ways.layers


@pytest.mark.parametrize("config", [(8, 8, 16), (8, 2, 16), (6, 3, 8)])
def test_flash_is_taken_where_it_finds_what_tables_find(
    config: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    heads, of_keys, size = config
    model = SimpleNamespace(num_attention_heads=heads, num_key_value_heads=of_keys, hidden_size=heads * size)
    shared = layout_of(batch_of(*ROWS), 64, packed=True).shared
    assert shared is not None
    monkeypatch.setattr(attention, "suits", lambda query: True)  # these kernels run on a CPU
    assert attention.flash_finds_what_tables_find(model, torch.float32, shared, "cpu")

    def too_much(*given: Any) -> Any:
        return tuple(1.1 * slope for slope in PlainKernels.backward(*given))

    wrong = SimpleNamespace(forward=PlainKernels.forward, backward=too_much)
    monkeypatch.setattr(SharedPrefix, "kernels", wrong)
    assert not attention.flash_finds_what_tables_find(model, torch.float32, shared, "cpu")


def test_flash_is_not_taken_for_heads_that_its_kernels_do_not_take() -> None:
    model = SimpleNamespace(num_attention_heads=2, num_key_value_heads=2, hidden_size=16)
    shared = layout_of(batch_of(*ROWS), 64, packed=True).shared
    assert shared is not None and not attention.flash_finds_what_tables_find(model, torch.float32, shared, "cpu")
