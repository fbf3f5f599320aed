"""Kernels of a CPU that write into room made before: nobody reads what was there, and they find the formula."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from needs_torch import torch

from rlvrlab.batch import Ints
from rlvrlab.engines.hf.asked import Asked, Drawn
from rlvrlab.engines.hf.cpu_blocks import Block, Heads
from rlvrlab.engines.hf.decode import decode
from rlvrlab.engines.hf.stacked import Part
from rlvrlab.engines.hf.weights import Weights


@pytest.fixture
def poisoned() -> Iterator[None]:
    """Room that nobody has written to holds NaN."""
    torch.use_deterministic_algorithms(True, warn_only=True)
    yield
    torch.use_deterministic_algorithms(False)


def weights_of() -> Weights:
    from transformers import LlamaConfig, LlamaForCausalLM

    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_attention_heads": 4, "num_key_value_heads": 2}
    torch.manual_seed(0)
    return Weights(LlamaForCausalLM(LlamaConfig(vocab_size=20, num_hidden_layers=2, **sizes)), "cpu")


@pytest.mark.parametrize("limit_R", [[9] * 6, [2, 9, 9, 4, 9, 9]])
def test_a_decoder_reads_no_room_that_it_has_not_written(limit_R: list[int], poisoned: None) -> None:
    uniform_RT = np.random.default_rng(0).random((6, 9))
    ones, group_R, told = np.ones(6), np.repeat([0, 1], 3), list[int]()

    def ended(row_R: Ints, drawn: Drawn) -> None:
        assert np.isfinite(drawn.logp_RT).all()
        told.extend(row_R.tolist())

    asked = Asked(((1, 2, 3), (4, 5)), (0, 0), group_R, np.array(limit_R), ones, ones, uniform_RT, -1)
    with torch.no_grad():
        assert torch.isnan(torch.empty(3)).all()
        decode(weights_of(), asked, None, ended)
    assert sorted(told) == list(range(6))


def block_of(size: int) -> Block:
    """Two heads of queries, one of keys and one of values, with adapters; the rest is not asked for."""
    torch.manual_seed(1)
    widths = (2 * size, size, size)
    qkv = [Part(torch.randn(n, 12), None, torch.randn(3, 12), torch.randn(n, 3), 0.5) for n in widths]
    return Block(torch.rand(12), torch.rand(12), 1e-6, 1e-6, size, 3, qkv, [], [], [])


def plain_heads(x_NI: Any, cos: Any, sin: Any, block: Block, *adapters: Any) -> Any:
    """The formula by torch's own functions."""
    x = torch.nn.functional.rms_norm(x_NI, (12,), block.norm1, block.eps1)
    pairs = zip(block.qkv, adapters[::2], adapters[1::2], strict=True)
    found = [x @ (part.weight + part.scale * up @ down).T for part, down, up in pairs]
    qkv = torch.cat(found, 1).view(len(x), -1, block.head_dim)
    qk, v = qkv[:, : block.rotated], qkv[:, block.rotated :]
    return torch.cat((qk * cos + qk.roll(block.head_dim // 2, -1) * sin, v), 1)


def test_heads_and_their_gradient_are_the_formula(poisoned: None) -> None:
    block = block_of(4)
    angle_ND = torch.rand(7, 1, 2).repeat(1, 1, 2)
    cos, sin = angle_ND.cos(), angle_ND.sin() * torch.tensor([-1.0, -1.0, 1.0, 1.0])
    x_NI = torch.randn(7, 12, requires_grad=True)
    adapters = [x.requires_grad_() for part in block.qkv for x in (part.down, part.up) if x is not None]
    here, there = (f(x_NI, cos, sin, block, *adapters) for f in (Heads.apply, plain_heads))
    torch.testing.assert_close(here, there)
    slope = torch.randn(here.shape)
    ways = [torch.autograd.grad(y, [x_NI, *adapters], slope) for y in (here, there)]
    for own, other in zip(*ways, strict=True):
        torch.testing.assert_close(own, other, rtol=1e-4, atol=1e-4)
