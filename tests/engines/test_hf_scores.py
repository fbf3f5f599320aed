"""Log-probs, entropies and gradients of the hf engine against plain autograd on the same model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from engine_factories import hf
from needs_torch import torch
from torch.nn.functional import logsigmoid

from rlvrlab.batch import batch_of
from rlvrlab.engines.hf.body import Body
from rlvrlab.objectives.dpo import Dpo
from rlvrlab.objectives.ppo_clip import PpoClip
from rlvrlab.objectives.regularise import Regularised
from rlvrlab.objectives.sft import Sft


def moved(engine):
    """Away from B = 0, where half of LoRA has no gradient."""
    rng = np.random.default_rng(0)
    direction = torch.tensor(rng.normal(0, 0.05, engine.weights.size), dtype=torch.float32)
    engine.shift([direction], [1.0])
    return engine


def case(engine):
    """Ten rows: shared prompts, ragged answers, one row twice, one token masked, one row without loss."""
    rng, encode = np.random.default_rng(1), engine.tokenizer.encode
    texts = ["3*7", "7+3", "21", "3-7*2", "5", "7*3", "3+7+1", "9", "3*7", "1"]
    answers = [(*encode(text), engine.tokenizer.end) for text in texts]
    prompts = [encode(f"{3 + i // 2 % 4} 7 = 2{i // 2 % 4}\n" + "x" * (i // 2 % 4)) for i in range(10)]
    batch = batch_of(prompts, answers, pair_B=np.arange(10) // 2, chosen_B=np.arange(10) % 2 == 0)
    loss_BT = batch.loss_BT.copy()
    loss_BT[3, 1] = False
    noise = [np.where(batch.seen_BT, rng.normal(0, s, batch.tokens_BT.shape), 0.0) for s in (0.2, 0.3)]
    logp_BT = engine.logprobs(batch)[0]
    advantage_BT = np.where(loss_BT, rng.normal(0, 1, (10, 1)), 0.0)
    advantage_BT[4:6] = 0.0
    arrays = {"old_BT": logp_BT + noise[0], "reference_BT": logp_BT + noise[1], "advantage_BT": advantage_BT}
    return replace(batch, loss_BT=loss_BT, **arrays).rescaled()


def plain_scores(engine, batch):
    """Row by row through the model's own forward pass, with its graph."""
    logp_BT, entropy_BT = torch.zeros(batch.tokens_BT.shape), torch.zeros(batch.tokens_BT.shape)
    for i, prompt in enumerate(batch.prompts):
        length = int(batch.seen_BT[i].sum())
        ids = torch.tensor([[*prompt, *batch.tokens_BT[i, :length].tolist()]])
        logp = engine.model(input_ids=ids).logits[0, len(prompt) - 1 : -1].log_softmax(-1)
        logp_BT[i, :length] = logp.gather(1, ids[0, len(prompt) :, None])[:, 0]
        entropy_BT[i, :length] = -(logp.exp() * logp).sum(-1)
    return logp_BT, entropy_BT


def torch_losses(logp, entropy, batch):
    """The textbook's losses."""
    mask = torch.tensor(batch.loss_BT)
    old, ref, adv = (
        torch.tensor(x, dtype=torch.float32) for x in (batch.old_BT, batch.reference_BT, batch.advantage_BT)
    )
    count = mask.sum()
    ratio = torch.exp(logp - old)
    ppo = (torch.maximum(-adv * ratio, -adv * ratio.clamp(0.8, 1.2)) * mask).sum() / count
    kl = ((torch.exp(ref - logp) - (ref - logp) - 1) * mask).sum() / count
    score = ((logp - ref) * mask).sum(1)
    return {
        "sft": -(logp * mask).sum() / count,
        "ppo_clip": ppo,
        "dpo": -logsigmoid(0.1 * (score[0::2] - score[1::2])).mean(),
        "entropy and KL": ppo + 0.1 * kl - 0.05 * (entropy * mask).sum() / count,
    }


OBJECTIVES = {
    "sft": Sft(),
    "ppo_clip": PpoClip(),
    "dpo": Dpo(),
    "entropy and KL": Regularised(PpoClip(), kl_coef=0.1, entropy_coef=0.05),
}


@pytest.mark.parametrize(
    ("kind", "rank", "packing"),
    [
        ("llama", 4, True),
        *(
            pytest.param(kind, rank, packing, marks=pytest.mark.slow)
            for kind, rank in (("llama", 4), ("llama", 0), ("qwen2", 0), ("gpt2", 4))
            for packing in (True, False)
        ),
    ],
)
def test_scores_and_gradients_are_autograds(kind: str, rank: int, packing: bool) -> None:
    engine = moved(hf(kind, rank, packing=packing)(3))
    assert engine.body.packs is packing and engine.body.split
    batch = case(engine)
    scores = plain_scores(engine, batch)
    for mine, theirs in zip(engine.logprobs(batch), scores, strict=True):
        assert np.abs(mine - theirs.detach().numpy()).max() < 1e-5
    for name, loss in torch_losses(*scores, batch).items():
        grads = torch.autograd.grad(loss, engine.weights.params, retain_graph=True)
        expected = torch.cat([g.flatten() for g in grads])
        vector, value, _ = engine.gradient(batch, OBJECTIVES[name])
        assert value == pytest.approx(loss.item(), abs=1e-5)
        assert (vector - expected).norm() < 1e-5 * max(1.0, expected.norm()), name
        assert expected.norm() > 1e-3


@pytest.mark.slow
def test_chunks_of_the_head_and_checkpointed_activations_change_nothing() -> None:
    whole = moved(hf("llama", 0)(0))
    batch = case(whole)
    expected = whole.gradient(batch, OBJECTIVES["entropy and KL"])
    for keys, chunk, kept in (({}, 3, 0), ({}, 1, 1 << 20), ({"gradient_checkpointing": True}, 5, 0)):
        engine = moved(hf("llama", 0, **keys)(0))
        engine.body.head.chunk, engine.body.head.kept = chunk, kept
        vector, value, metrics = engine.gradient(batch, OBJECTIVES["entropy and KL"])
        assert (vector - expected[0]).norm() < 1e-5 * expected[0].norm()
        assert value == pytest.approx(expected[1], abs=1e-6)
        assert metrics == pytest.approx(expected[2], abs=1e-5)
        assert not engine.model.training


@pytest.mark.slow
def test_a_model_that_changes_its_logits_after_the_head_takes_the_general_way() -> None:
    """Granite divides its logits; applying the output layer alone would be wrong."""
    engine = moved(hf("granite", 0)(0))
    assert not engine.body.split and engine.body.packs
    batch = case(engine)
    scores = plain_scores(engine, batch)
    assert np.abs(engine.logprobs(batch)[0] - scores[0].detach().numpy()).max() < 1e-5
    loss = torch_losses(*scores, batch)["sft"]
    expected = torch.cat([g.flatten() for g in torch.autograd.grad(loss, engine.weights.params)])
    assert (engine.gradient(batch, Sft())[0] - expected).norm() < 1e-5 * expected.norm()
    assert engine.values(batch).shape == batch.tokens_BT.shape


@pytest.mark.parametrize("attention", ["eager", "sliding"])
def test_where_packing_is_not_exact_rows_are_padded(attention: str) -> None:
    engine = hf("llama", 0)(0)
    if attention == "eager":
        engine.model.config._attn_implementation = "eager"
        body = Body(engine.model, packing=True)
        assert not body.packs
    else:
        engine.model.config.sliding_window = 8
        body = Body(engine.model, packing=True)
        assert body.packs
    assert body.layout(case(engine)).shared is None


def test_rows_without_coefficients_cost_no_backward_pass(monkeypatch) -> None:
    engine = moved(hf("llama", 4)(1))
    batch = case(engine)
    trained = []
    hidden = Body.hidden
    monkeypatch.setattr(
        Body, "hidden", lambda self, layout, **k: trained.append(torch.is_grad_enabled()) or hidden(self, layout, **k)
    )
    engine.gradient(batch, PpoClip())
    assert trained.count(False) == 2 and trained.count(True) == 8, "rows 4 and 5 have no advantage"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*bfloat16|.*bf16")  # a CPU without it is slow, not wrong
def test_bfloat16_keeps_small_updates_in_float32() -> None:
    engine = hf("llama", 0, dtype="bfloat16")(0)
    batch = case(engine)
    gradient = engine.gradient(batch, Sft())[0]
    start = engine.snapshot()
    for _ in range(64):
        engine.step([gradient], [1.0], 1e-6)
    assert engine.precision == "bfloat16" and gradient.dtype == torch.float32
    assert engine.pull(start).abs().max() == pytest.approx(64e-6, rel=0.05)
    assert (engine.weights.copy.float() - engine.weights.theta).abs().max() < 1e-2
    for _ in range(30):
        engine.step([engine.gradient(batch, Sft())[0]], [1.0], 1e-2)
    assert engine.gradient(batch, Sft())[1] < 0.5 * -np.log(1 / engine.tokenizer.vocab_size)


def test_nan_parameters_show_as_values_that_are_not_finite() -> None:
    engine = hf("llama", 0)(0)
    batch = case(engine)
    engine.shift([torch.full_like(engine.weights.theta, float("nan"))], [1.0])
    vector, value, _ = engine.gradient(batch, Sft())
    assert not np.isfinite(value) and not np.isfinite(engine.gramian([vector])["global"]).all()
