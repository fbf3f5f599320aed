"""The smallest stand-ins with which TRL's and verl's own loss code runs.

Array suffixes: B rows, T completion positions. Everything is double precision.
"""

from __future__ import annotations

from collections import defaultdict
from types import SimpleNamespace

import pytest
from oracle_cases import HORIZON


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


@pytest.fixture
def verl():
    """verl's algorithms; they need neither a GPU nor a cluster."""
    return pytest.importorskip("verl.trainer.ppo.core_algos", exc_type=ImportError)


@pytest.fixture
def actor():
    """verl's actor settings with what the policy losses read."""
    config = pytest.importorskip("verl.workers.config", exc_type=ImportError)

    def make(low=0.2, high=0.28, dual=3.0):
        settings = config.ActorConfig(
            strategy="fsdp",
            rollout_n=1,
            ppo_micro_batch_size_per_gpu=1,
            clip_ratio_low=low,
            clip_ratio_high=high,
            clip_ratio_c=dual,
        )
        settings.global_batch_info["loss_scale_factor"] = HORIZON
        return settings

    return make


@pytest.fixture
def gradient(torch):
    """Value and gradient of a torch loss by the log-probs, as numpy."""

    def of(loss, logp_BT):
        leaf = torch.tensor(logp_BT, requires_grad=True)
        value = loss(leaf)
        value.backward()
        return value.item(), leaf.grad.numpy()

    return of


ACCELERATOR = SimpleNamespace(
    num_processes=1,
    sync_gradients=False,
    is_main_process=True,
    device="cpu",
    gather=lambda x: x,
    gather_for_metrics=lambda x: x,
    reduce=lambda x, reduction="sum": x,
)


@pytest.fixture
def trl_policy_loss(torch):
    """TRL's own GRPOTrainer._compute_loss on given log-probs, as a function of them."""
    trainer = pytest.importorskip("trl").GRPOTrainer

    def make(batch, loss_type, *, level="token", beta=0.0, high=0.28, delta=None, entropy_coef=0.0, weights=None):
        def loss(leaf, entropies=None):
            stub = SimpleNamespace(
                loss_type=loss_type,
                importance_sampling_level=level,
                beta=beta,
                epsilon_low=0.2,
                epsilon_high=high,
                top_entropy_quantile=1.0,
                off_policy_mask_threshold=None,
                use_vllm=weights is not None,
                vllm_importance_sampling_correction=weights is not None,
                aux_loss_enabled=False,
                args=SimpleNamespace(delta=delta, use_bias_correction_kl=False, steps_per_generation=1),
                max_completion_length=batch.scale.horizon,
                accelerator=ACCELERATOR,
                model=SimpleNamespace(training=True),
                current_gradient_accumulation_steps=1,
                _entropy_bonus_enabled=entropies is not None,
                use_adaptive_entropy=False,
                entropy_coef=entropy_coef,
                _metrics={"train": defaultdict(list)},
                _get_per_token_logps_and_entropies=lambda *a, **k: (
                    leaf,
                    torch.zeros_like(leaf) if entropies is None else entropies,
                    None,
                ),
            )
            rows, width = batch.loss_BT.shape
            inputs = {
                "prompt_ids": torch.zeros(rows, 1, dtype=torch.long),
                "prompt_mask": torch.ones(rows, 1),
                "completion_ids": torch.zeros(rows, width, dtype=torch.long),
                "completion_mask": torch.tensor(batch.loss_BT).double(),
                "advantages": torch.tensor(batch.advantage_BT),
                "old_per_token_logps": torch.tensor(batch.old_BT),
                "ref_per_token_logps": torch.tensor(batch.reference_BT),
                "num_items_in_batch": torch.tensor(float(batch.scale.tokens)),
                "importance_sampling_ratio": None if weights is None else torch.tensor(weights),
            }
            return trainer._compute_loss(stub, None, inputs)

        return loss

    return make


@pytest.fixture
def trl_preference_loss(torch):
    """TRL's own DPOTrainer._compute_loss; rows are all chosen answers, then all rejected ones."""
    trainer = pytest.importorskip("trl.trainer.dpo_trainer", exc_type=ImportError).DPOTrainer

    def make(batch, losses, weights, beta, smoothing):
        mask = torch.tensor(batch.loss_BT)
        reference = (torch.tensor(batch.reference_BT) * mask).sum(1)

        def loss(leaf):
            stub = SimpleNamespace(
                model=SimpleNamespace(training=True),
                accelerator=ACCELERATOR,
                aux_loss_enabled=False,
                ld_alpha=None,
                precompute_ref_logps=True,
                f_divergence_type="reverse_kl",
                loss_types=losses,
                loss_weights=weights,
                beta=beta,
                label_smoothing=smoothing,
                use_weighting=False,
                _metrics={"train": defaultdict(list)},
                _total_train_tokens=0,
                _tp_size=1,
            )
            nothing = torch.zeros_like(leaf)
            outputs = SimpleNamespace(
                log_probs=leaf * mask, entropy=nothing, mean_logits=nothing, is_top1=nothing.bool()
            )
            prompt = torch.zeros(len(mask), 1, dtype=mask.dtype)
            inputs = {
                "input_ids": torch.zeros(len(mask), mask.shape[1] + 1, dtype=torch.long),
                "attention_mask": torch.ones(len(mask), mask.shape[1] + 1),
                "completion_mask": torch.cat([prompt, mask], dim=1).long(),
                "ref_chosen_logps": reference.chunk(2)[0],
                "ref_rejected_logps": reference.chunk(2)[1],
            }
            return trainer._compute_loss(stub, lambda **kwargs: outputs, inputs, return_outputs=False)

        return loss

    return make
