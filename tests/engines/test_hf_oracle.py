"""Losses and gradients of the hf engine against TRL's GRPO trainer, on the same model and batch."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from engine_factories import hf
from needs_torch import torch
from tiny_models import tiny

from rlvrlab.batch import batch_of
from rlvrlab.objectives.ppo_clip import PpoClip
from rlvrlab.objectives.regularise import Regularised

pytestmark = [pytest.mark.slow, pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]
AGGREGATION = {"grpo": "seq-mean-token-mean", "dapo": "token-mean", "dr_grpo": "seq-mean-token-sum-norm"}
NEW = 7


@pytest.fixture(scope="module")
def trainer(tmp_path_factory):
    trl = pytest.importorskip("trl", reason="TRL is the oracle")
    from datasets import Dataset
    from transformers import AutoModelForCausalLM, AutoTokenizer

    args = trl.GRPOConfig(
        output_dir=str(tmp_path_factory.mktemp("trl")), use_cpu=True, bf16=False, gradient_checkpointing=False,
        report_to="none", num_generations=2, per_device_train_batch_size=8, max_completion_length=NEW,
        beta=0.04, use_bias_correction_kl=False, epsilon=0.2, epsilon_high=0.2, dataloader_pin_memory=False,
    )  # fmt: skip
    return trl.GRPOTrainer(
        AutoModelForCausalLM.from_pretrained(tiny("llama")),
        reward_funcs=lambda completions, **_: [0.0] * len(completions),
        args=args,
        train_dataset=Dataset.from_dict({"prompt": ["1"] * 8}),
        processing_class=AutoTokenizer.from_pretrained(tiny("llama"), padding_side="left"),
    )


def rows(engine):
    rng = np.random.default_rng(3)
    prompts = [tuple(rng.integers(3, 40, n).tolist()) for n in (3, 6, 4, 5) for _ in range(2)]
    batch = batch_of(prompts, [tuple(rng.integers(3, 40, n).tolist()) for n in (7, 4, 2, 7, 5, 1, 6, 3)], horizon=NEW)
    logp_BT = engine.logprobs(batch)[0]

    def near(size: float):
        return np.where(batch.seen_BT, logp_BT + rng.normal(0, size, logp_BT.shape), 0.0)

    advantage_BT = np.where(batch.seen_BT, rng.normal(0, 1, (8, 1)), 0.0)
    return replace(batch, old_BT=near(0.3), reference_BT=near(0.3), advantage_BT=advantage_BT)


def as_trl(batch):
    width = max(map(len, batch.prompts))
    prompt_ids = torch.zeros(len(batch), width, dtype=torch.long)
    prompt_mask = torch.zeros_like(prompt_ids)
    for i, prompt in enumerate(batch.prompts):
        prompt_ids[i, width - len(prompt) :] = torch.tensor(prompt)
        prompt_mask[i, width - len(prompt) :] = 1
    return {
        "prompt_ids": prompt_ids,
        "prompt_mask": prompt_mask,
        "completion_ids": torch.tensor(batch.tokens_BT),
        "completion_mask": torch.tensor(batch.seen_BT).long(),
        "advantages": torch.tensor(batch.advantage_BT[:, 0], dtype=torch.float32),
        "old_per_token_logps": torch.tensor(batch.old_BT, dtype=torch.float32),
        "ref_per_token_logps": torch.tensor(batch.reference_BT, dtype=torch.float32),
        "num_items_in_batch": torch.tensor(batch.seen_BT.sum()),
    }


@pytest.mark.parametrize("beta", [0.0, 0.04])
@pytest.mark.parametrize("loss_type", AGGREGATION)
def test_grpo_losses_and_gradients_are_trls(trainer, loss_type: str, beta: float) -> None:
    engine = hf("llama", 0)(2)
    batch = rows(engine)
    trainer.loss_type, trainer.beta, model = loss_type, beta, trainer.model
    trainer.current_gradient_accumulation_steps = 1
    model.train()
    model.zero_grad()
    loss = trainer._compute_loss(model, as_trl(batch))
    loss.backward()
    objective = Regularised(PpoClip(aggregation=AGGREGATION[loss_type]), kl_coef=beta)
    vector, value, _ = engine.gradient(batch, objective)
    theirs = dict(model.named_parameters())
    expected = torch.cat([theirs[name].grad.flatten() for name in engine.weights.names])
    assert value == pytest.approx(loss.item(), abs=1e-5)
    assert (vector - expected).norm() < 1e-5 * max(1.0, float(expected.norm())) and expected.norm() > 1e-2
