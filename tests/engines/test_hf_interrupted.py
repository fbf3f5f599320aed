"""A pass that runs out of memory half-way leaves nothing behind: the update is the one of a pass never interrupted."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from engine_factories import hf
from needs_torch import torch

from rlvrlab.batch import TokenBatch, batch_of
from rlvrlab.engines.hf.head import Head
from rlvrlab.objectives.dpo import Dpo
from rlvrlab.objectives.gspo import Gspo
from rlvrlab.objectives.ppo_clip import PpoClip
from rlvrlab.objectives.sft import Sft
from rlvrlab.train.update import Applied, descend

OBJECTIVES = {"sft": Sft(), "grpo": PpoClip(), "dpo": Dpo(), "gspo": Gspo(clip_low=0.2, clip_high=0.2)}
MICRO = 36
"""Tokens of a micro-batch: three or four of them make the batch."""


class Fails:
    """Calls through, but for the k-th call, which runs out of memory before or after its work."""

    def __init__(self, inner, k: int, *, after: bool) -> None:
        self.inner, self.left, self.after = inner, k, after

    def __call__(self, *args, **keys):
        self.left -= 1
        if self.left == 0 and not self.after:
            raise torch.OutOfMemoryError("CUDA out of memory")
        out = self.inner(*args, **keys)
        if self.left == 0:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return out


def trained(engine) -> TokenBatch:
    """Ten rows in pairs, with every array that one of the objectives asks for."""
    rng = np.random.default_rng(0)
    prompts = [tuple(rng.integers(3, 20, 6).tolist()) for _ in range(5) for _ in range(2)]
    answers = [tuple(rng.integers(3, 20, rng.integers(3, 9)).tolist()) for _ in prompts]
    batch = batch_of(prompts, answers, pair_B=np.arange(10) // 2, chosen_B=np.arange(10) % 2 == 0)
    logp_BT = engine.logprobs(batch)[0]
    return replace(
        batch,
        old_BT=logp_BT,
        reference_BT=logp_BT - 0.1 * batch.seen_BT,
        advantage_BT=np.where(batch.seen_BT, rng.normal(0, 1, (10, 1)), 0.0),
        group_B=np.arange(10) // 2,
    )


def updated(objective: str, micro_tokens: int, **fails):
    """The engine after one update, and what the update told; `fails` names what runs out of memory and how."""
    engine = hf("llama", 4)(0)
    batch = trained(engine)
    engine.micro_tokens = micro_tokens
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, (k, after) in fails.items():
            owner = {"hidden": engine.body, "backward": engine.body.head, "collect": engine.weights}[name]
            patch.setattr(owner, name, Fails(getattr(owner, name), k, after=after))
        told = descend(engine, batch, OBJECTIVES[objective], 1e-2, 1.0)
    return engine, told


@cache
def undisturbed(objective: str, micro_tokens: int) -> tuple[torch.Tensor, Applied]:
    """The parameters after an update in which nothing fails, and what it told."""
    engine, told = updated(objective, micro_tokens)
    return engine.weights.theta, told


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("where", ["hidden", "backward", "collect"])
@pytest.mark.parametrize(("k", "after"), [(1, True), (2, False), (3, True)])
def test_an_interrupted_update_is_the_one_never_interrupted(objective: str, where: str, k: int, after: bool) -> None:
    interrupted, told = updated(objective, MICRO, **{where: (k, after)})
    assert interrupted.micro_tokens == MICRO // 2, "nothing failed: the test tests nothing"
    theta, expected = undisturbed(objective, MICRO // 2)
    assert torch.equal(interrupted.weights.theta, theta) and told == expected
    large, _ = undisturbed(objective, MICRO)
    moved = (large - hf("llama", 4)(0).weights.theta).norm()
    assert (interrupted.weights.theta - large).norm() < 1e-4 * moved
    assert all(p.grad is None for p in interrupted.weights.params)


def test_a_gradient_that_is_not_finite_moves_nothing_and_is_told(monkeypatch) -> None:
    engine = hf("llama", 4)(0)
    batch, before, plain = trained(engine), engine.snapshot(), Head.backward
    monkeypatch.setattr(Head, "backward", lambda *args: plain(*args) * torch.nan)
    told = descend(engine, batch, Sft(), 1e-2, 1.0)
    assert told.skipped and torch.equal(engine.weights.theta, before)
    assert engine.optimizer.count == 0 and not engine.optimizer.first.any()
