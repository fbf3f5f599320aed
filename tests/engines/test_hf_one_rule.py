"""Whoever draws, draws by one rule: the embedded sampler, the plain one, and what scores a server's answers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

torch: Any = pytest.importorskip("torch")

from rlvrlab.engines.hf.draw import draw, scaled  # noqa: E402
from rlvrlab.engines.hf.generate import PlainSampler, distribution  # noqa: E402
from rlvrlab.types import Request, Sampling  # noqa: E402


def test_the_nucleus_of_scores_is_the_one_that_is_drawn_from() -> None:
    """Of 4000 nearly equal tokens, sums in float32 cut the nucleus elsewhere than the sampler's sums do."""
    logits_NV = 0.01 * torch.randn(64, 4000, generator=torch.Generator().manual_seed(0))
    settings = Sampling(temperature=0.7, top_p=0.9)
    ones_N = torch.ones(len(logits_NV))
    drawn_NV = scaled(logits_NV, 0.7 * ones_N, 0.9 * ones_N)
    assert torch.equal(distribution(logits_NV, settings).isfinite(), drawn_NV.isfinite())


class Fixed:
    """A model whose first token has no chance, asked with a uniform of 0."""

    def __init__(self, logits: Any) -> None:
        self.logits, self.past_key_values = logits[None, None], self

    def __call__(self, **_: Any) -> Fixed:
        return self

    def batch_select_indices(self, _: Any) -> None:
        pass


def test_no_uniform_draws_what_has_no_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    zero = SimpleNamespace(random=lambda shape: np.zeros(shape))
    monkeypatch.setattr("rlvrlab.engines.hf.generate.generator", lambda *_: zero)
    logits = torch.tensor([-9.0, 1.0, 2.0])
    tokenizer = SimpleNamespace(ends=frozenset(), decode=lambda tokens: str(tokens))
    sampler = PlainSampler(Fixed(logits), tokenizer, torch.device("cpu"))
    settings = Sampling(max_tokens=1, top_p=0.9)
    [[answer]] = sampler.sample([Request((0,), 1, ("one",), settings)], 0)
    token, logp = draw(scaled(logits[None], torch.ones(1), torch.full((1,), 0.9)), torch.zeros(1), None)
    assert answer.tokens == (1,) == (int(token),) and answer.logprobs[0] == pytest.approx(float(logp), abs=1e-6)
