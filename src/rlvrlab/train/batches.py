"""From judged rollouts to a TokenBatch with everything the objective asks for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from rlvrlab.advantages.base import AdvantageEstimator
from rlvrlab.batch import RewardBatch, TokenBatch, batch_of, pad
from rlvrlab.engines.base import Engine
from rlvrlab.objectives.correction import Correction
from rlvrlab.objectives.kl import penalised_reward_BT
from rlvrlab.randomness import generator
from rlvrlab.recipe import Recipe
from rlvrlab.types import Rollout


def assemble(rollouts: Sequence[Rollout], horizon: int) -> TokenBatch:
    """Tokens, masks, sampler log-probs and groups; an unjudged row is seen but not trained on."""
    ids = {group: i for i, group in enumerate(dict.fromkeys(r.group_id for r in rollouts))}
    batch = batch_of(
        [r.prompt_tokens for r in rollouts],
        [r.completion.tokens for r in rollouts],
        horizon=horizon,
        behaviour_BT=pad([r.completion.logprobs for r in rollouts]),
        group_B=np.array([ids[r.group_id] for r in rollouts]),
    )
    judged_B = np.array([r.reward is not None for r in rollouts])
    return replace(batch, loss_BT=batch.loss_BT & judged_B[:, None]).rescaled()


def score(batch: TokenBatch, engine: Engine, recipe: Recipe, *, reused: bool, critic: bool) -> TokenBatch:
    """Add the log-probs and values that the recipe needs; `reused` batches are updated on more than once."""
    wants_old = reused or recipe.correction.level != "none" or (recipe.kl.coef > 0 and recipe.kl.place == "reward")
    if wants_old:
        batch = replace(batch, old_BT=engine.logprobs(batch)[0])
    if recipe.kl.coef > 0:
        batch = replace(batch, reference_BT=engine.logprobs(batch, "reference")[0])
    if critic:
        batch = replace(batch, value_BT=engine.values(batch))
    return batch


def with_advantages(
    batch: TokenBatch, rollouts: Sequence[Rollout], advantage: AdvantageEstimator, recipe: Recipe
) -> tuple[TokenBatch, dict[str, float]]:
    """Outcome on the last token, KL in the reward where wanted, then the estimator; and the sampler's correction."""
    assert batch.group_B is not None
    reward_BT = np.zeros(batch.tokens_BT.shape)
    for i, rollout in enumerate(rollouts):
        if rollout.reward is not None and batch.loss_BT[i].any():
            reward_BT[i, np.flatnonzero(batch.loss_BT[i])[-1]] = rollout.reward.value
    if recipe.kl.coef > 0 and recipe.kl.place == "reward":
        assert batch.old_BT is not None and batch.reference_BT is not None
        reward_BT = penalised_reward_BT(
            reward_BT, batch.old_BT, batch.reference_BT, batch.loss_BT, recipe.kl.coef, recipe.kl.estimator
        )
    judged_B = np.array([r.reward is not None for r in rollouts])
    names = dict.fromkeys(name for r in rollouts if r.reward is not None for name in r.reward.parts)
    parts = {name: np.array([r.reward.parts.get(name, 0.0) if r.reward else 0.0 for r in rollouts]) for name in names}
    given = advantage(RewardBatch(reward_BT, batch.loss_BT, batch.group_B, judged_B, batch.value_BT, parts))
    batch = replace(batch, advantage_BT=given.advantage_BT, return_BT=given.return_BT)
    metrics = {f"advantage/{name}": float(count) for name, count in given.counts.items()}
    if recipe.correction.level != "none":
        weight_BT, facts = Correction(level=recipe.correction.level, high=recipe.correction.cap)(batch)
        batch, metrics = replace(batch, weight_BT=weight_BT), metrics | facts
    return batch, metrics


def minibatches(batch: TokenBatch, count: int, epochs: int, *key: object) -> Iterator[TokenBatch]:
    """`epochs` passes, each in `count` parts of whole groups; every part is an update of its own."""
    assert batch.group_B is not None
    groups = np.unique(batch.group_B)
    for epoch in range(epochs):
        order = generator(*key, "minibatch", epoch).permutation(groups) if count > 1 else groups
        for part in np.array_split(order, min(count, len(groups))):
            yield batch.rows(np.flatnonzero(np.isin(batch.group_B, part))).rescaled()
