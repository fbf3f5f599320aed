"""Our objectives as policy losses of verl, in coefficient form: NumPy says what each log-probability's derivative is,
and loss = Σ c · log p has exactly that gradient.

verl cuts an update into micro-batches and averages gradients over its data-parallel ranks. Our coefficients carry the
normaliser of the whole update, so micro-batches add up; times the number of ranks they survive the average.
Suffixes: B rows, T completion positions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rlvrlab.batch import Floats, Scale, TokenBatch
from rlvrlab.registry import find
from rlvrlab.scale.verl.job import current, has_job
from rlvrlab.types import Objective

ROWS = "rlvr_rows"
"""Where the actor's update leaves the number of rows with loss in the whole update."""


def policy_loss(name: str) -> Callable[..., tuple[Any, dict[str, Any]]]:
    """A function as verl registers it; its settings are the job's where that has the same objective."""

    def compute(
        old_log_prob: Any,
        log_prob: Any,
        advantages: Any,
        response_mask: Any,
        loss_agg_mode: str = "token-mean",
        config: Any = None,
        rollout_is_weights: Any = None,
    ) -> tuple[Any, dict[str, Any]]:
        import torch

        facts = dict(getattr(config, "global_batch_info", None) or {})
        batch = token_batch(old_log_prob, advantages, response_mask, rollout_is_weights, facts)
        logp_BT = _array(log_prob)
        objective: Objective = current().plugin("objective", name) if has_job() else find("objective", name)()
        found = objective(logp_BT, np.zeros_like(logp_BT), batch)
        ranks = int(facts.get("dp_size") or 1)
        exact = torch.promote_types(log_prob.dtype, torch.float32)
        coefficient = torch.as_tensor(found.c_logp_BT * ranks, dtype=exact, device=log_prob.device)
        moving = torch.where(response_mask.bool(), log_prob.to(exact) - log_prob.detach().to(exact), 0.0)
        metrics = objective.metrics(logp_BT, np.zeros_like(logp_BT), batch)
        metrics.pop("actor/entropy", None)  # without the entropies it would be 0; verl reports its own
        return (coefficient * moving).sum() + found.value * ranks, tally.noted(metrics)

    return compute


class Tally:
    """Sums of metrics over micro-batches: ours are parts of a whole, and verl would average them."""

    def __init__(self) -> None:
        self.sums: dict[str, float] | None = None

    def begin(self) -> None:
        """From now on metrics are summed here."""
        self.sums = {}

    def noted(self, metrics: dict[str, float]) -> dict[str, float]:
        """Add metrics to the sums and return none for verl; before `begin` they are returned as they are."""
        if self.sums is None:
            return metrics
        for name, value in metrics.items():
            self.sums[name] = self.sums.get(name, 0.0) + value
        return {}

    def end(self) -> dict[str, float]:
        """What was summed."""
        sums, self.sums = self.sums or {}, None
        return sums


tally = Tally()


def token_batch(
    old_log_prob: Any, advantages: Any, response_mask: Any, weights: Any, facts: dict[str, Any]
) -> TokenBatch:
    """A micro-batch with the scale of the whole update."""
    mask_BT = response_mask.detach().cpu().numpy().astype(bool)
    rows, width = mask_BT.shape
    live = int(mask_BT.any(axis=1).sum())
    scale = Scale(
        tokens=int(facts.get("batch_num_tokens") or mask_BT.sum()),
        rows=int(facts.get(ROWS) or facts.get("global_batch_size") or live),
        pairs=0,
        horizon=int(facts.get("loss_scale_factor") or width),
    )
    return TokenBatch(
        prompts=((),) * rows,
        tokens_BT=np.zeros((rows, width), dtype=np.int64),
        seen_BT=mask_BT,
        loss_BT=mask_BT,
        scale=scale,
        old_BT=_array(old_log_prob),
        advantage_BT=_array(advantages),
        weight_BT=None if weights is None else _array(weights),
    )


def _array(tensor: Any) -> Floats:
    return tensor.detach().cpu().double().numpy()
