"""Which kernels attention may take, and that heads given to each query are the shared ones. No GPU is needed."""

from __future__ import annotations

import pytest
from engine_factories import hf
from needs_torch import torch

from rlvrlab.batch import batch_of
from rlvrlab.engines.hf.attention import masked_attention, without_cudnn
from rlvrlab.objectives.sft import Sft
from rlvrlab.types import Request, Sampling

ROWS = ([(3, 4, 5)] * 2, [(4, 5, 6), (6, 5)])
VERBS = {
    "scores": lambda engine: engine.logprobs(batch_of(*ROWS)),
    "gradient": lambda engine: engine.gradient(batch_of(*ROWS), Sft()),
    "anchor": lambda engine: engine.anchor_kl(batch_of(*ROWS), engine.snapshot()),
    "values": lambda engine: engine.values(batch_of(*ROWS)),
    "answers": lambda engine: engine.sample([Request((3, 4, 5), 2, ("kernels",), Sampling(max_tokens=3))]),
}


@pytest.fixture
def seen(monkeypatch) -> list[bool]:
    """Whether cuDNN's kernels were allowed, at each attention."""
    found, attention = [], torch.nn.functional.scaled_dot_product_attention

    def watched(*args, **keys):
        found.append(torch.backends.cuda.cudnn_sdp_enabled())
        return attention(*args, **keys)

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", watched)
    for module in ("attention", "blocks", "own_model"):
        monkeypatch.setattr(f"rlvrlab.engines.hf.{module}.scaled_dot_product_attention", watched)
    return found


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
@pytest.mark.parametrize("packing", [True, False])
@pytest.mark.parametrize("verb", VERBS)
def test_no_verb_takes_the_kernels_whose_gradients_are_not_finite(kind, packing, verb, seen) -> None:
    engine = hf(kind, 4, packing=packing)(0)
    seen.clear()
    before = torch.backends.cuda.cudnn_sdp_enabled()
    VERBS[verb](engine)
    assert seen and not any(seen)
    assert torch.backends.cuda.cudnn_sdp_enabled() == before


def test_what_the_caller_allowed_is_allowed_again_after_an_error() -> None:
    before = torch.backends.cuda.cudnn_sdp_enabled()
    with pytest.raises(KeyError), without_cudnn():
        raise KeyError
    assert torch.backends.cuda.cudnn_sdp_enabled() == before


@pytest.mark.parametrize("key_heads", [1, 2, 6])
def test_repeated_heads_are_the_shared_ones_with_their_gradients(key_heads) -> None:
    made = torch.Generator().manual_seed(0)
    mask = torch.rand(3, 1, 4, 9, generator=made) < 0.5
    mask[..., 0] = True
    found = []
    for repeat in (False, True):
        made.manual_seed(1)
        inputs = [
            torch.randn(3, heads, length, 8, generator=made, dtype=torch.float64).requires_grad_()
            for heads, length in ((6, 4), (key_heads, 9), (key_heads, 9))
        ]
        out = masked_attention(*inputs, mask, None, repeat=repeat)
        found.append([out, *torch.autograd.grad(out.square().sum(), inputs)])
    for one, other in zip(*found, strict=True):
        assert torch.allclose(one, other, rtol=1e-12, atol=1e-12)
