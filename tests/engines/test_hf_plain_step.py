"""A decoding step in float32 on a CPU starts few kernels; what they find is tested in test_hf_sampling.py."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from needs_torch import torch
from torch.utils._python_dispatch import TorchDispatchMode

from rlvrlab.engines.hf.asked import Asked
from rlvrlab.engines.hf.decode import decode
from rlvrlab.engines.hf.weights import Weights

MOST = 32
"""Kernels of a block: products, norms, rotation, gate, softmax, and copies into another order."""
VIEWS = {
    "view", "_unsafe_view", "t", "transpose", "permute", "slice", "select", "unsqueeze", "as_strided", "split",
    "split_with_sizes", "expand", "alias", "detach", "empty", "empty_like", "empty_strided", "lift_fresh",
}  # fmt: skip


class Count(TorchDispatchMode):
    """Counts what is not a mere view."""

    def __init__(self) -> None:
        super().__init__()
        self.kernels = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.kernels += func.overloadpacket.__name__ not in VIEWS
        return func(*args, **(kwargs or {}))


def kernels(layers: int, new_tokens: int) -> int:
    from transformers import LlamaConfig, LlamaForCausalLM

    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_attention_heads": 4, "num_key_value_heads": 2}
    torch.manual_seed(0)
    model = LlamaForCausalLM(LlamaConfig(vocab_size=20, num_hidden_layers=layers, **sizes))
    weights, rows, ones = Weights(model, "cpu"), 6, np.ones(6)
    uniform_RT = np.full((rows, new_tokens), 0.5)
    limit_R = np.full(rows, new_tokens)
    asked = Asked(((1, 2, 3), (4, 5, 6)), (0, 0), np.repeat([0, 1], 3), limit_R, ones, ones, uniform_RT, -1)
    with torch.no_grad(), Count() as count:
        decode(weights, asked, None, lambda row_R, drawn: None)
    return count.kernels


@pytest.mark.slow
def test_a_block_starts_few_kernels() -> None:
    per_token = [kernels(layers, 4) - kernels(layers, 3) for layers in (1, 3)]
    assert (per_token[1] - per_token[0]) / 2 <= MOST
