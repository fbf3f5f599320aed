"""Requests of one prompt under keys of their own, as an evaluation's pass@k asks: computed once, drawn the same."""

from __future__ import annotations

from typing import Any

import needs_torch  # noqa: F401
import pytest
from tiny_models import tiny

from rlvrlab.batch import batch_of
from rlvrlab.credit.base import Shape
from rlvrlab.engines.hf import Hf, sampler
from rlvrlab.recipe.schema import Optimizer
from rlvrlab.rollout.tree import grow
from rlvrlab.types import Request, Sampling


def test_equal_prompts_are_computed_once_and_answers_stay_what_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Hf(tiny(), device="cpu").build(Optimizer())
    prompts = [engine.tokenizer.encode(text) for text in ("1 + 2 =", "7 * 8 + 3 =", "1 + 2 =", "9 - 9 =")]
    asked = [
        Request(tokens, 1, ("eval", i, sample), Sampling(9 if sample < 3 else 5, 0.7))
        for sample in range(4)
        for i, tokens in enumerate(prompts)
    ]
    alone = [engine.sample([request])[0] for request in asked]
    seen: list[Any] = []
    inner = sampler.decode

    def watched(weights: Any, asked: Any, *more: Any) -> Any:
        seen.append(asked)
        return inner(weights, asked, *more)

    monkeypatch.setattr(sampler, "decode", watched)
    together = engine.sample(asked)
    for a, b in zip(alone, together, strict=True):
        assert a[0].tokens == b[0].tokens and b[0].logprobs == pytest.approx(a[0].logprobs, abs=1e-4)
    # Three different prompts, at two different lengths of answer.
    assert [len(one.prompts) for one in seen] == [6] and len(seen[0].group_R) == 16
    assert (seen[0].group_R[1:] >= seen[0].group_R[:-1]).all()


@pytest.mark.parametrize("shape", [Shape((3, 2), "tokens", 4), Shape((3, 2), "lines", 1)])
def test_answers_that_share_a_beginning_have_the_scores_of_whole_answers(shape: Shape) -> None:
    """What grew on a tree is trained on as whole answers to the prompt."""
    engine = Hf(tiny(), device="cpu").build(Optimizer())
    asked = [
        Request(engine.tokenizer.encode(text), 6, ("tree", text), Sampling(60)) for text in ("1 + 2 =", "7 * 8 + 3 =")
    ]
    grown = grow(engine, asked, shape)
    assert [len(group) for group in grown] == [6, 6] and any(len(one.branches) > 1 for group in grown for one in group)
    rows = [(request.tokens, one) for request, group in zip(asked, grown, strict=True) for one in group]
    batch = batch_of([prompt for prompt, _ in rows], [one.tokens for _, one in rows])
    logp_BT, _ = engine.logprobs(batch)
    for row, (_, one) in enumerate(rows):
        assert one.logprobs == pytest.approx(logp_BT[row, : len(one.tokens)].tolist(), abs=1e-4)
        assert engine.tokenizer.decode(one.tokens) == one.text
