"""From judged rollouts to a batch: which groups have something to teach, and the arrays the objective asks for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rlvrlab.advantages.base import AdvantageEstimator
from rlvrlab.batch import RewardBatch, TokenBatch, batch_of, pad, without
from rlvrlab.engines.base import Engine
from rlvrlab.randomness import generator
from rlvrlab.recipe import Recipe
from rlvrlab.train.state import Memory
from rlvrlab.types import Rollout

if TYPE_CHECKING:
    from rlvrlab.objectives.correction import Correction

KINDS = LIVE, ALL_RIGHT, ALL_WRONG, SAME_REWARD, UNJUDGED, SINGLETON = (
    "live", "all_right", "all_wrong", "same_reward", "unjudged", "singleton",
)  # fmt: skip
SAID = {
    LIVE: "with signal",
    ALL_RIGHT: "all right",
    ALL_WRONG: "all wrong",
    SAME_REWARD: "of one partial reward",
    UNJUDGED: "unjudged",
    SINGLETON: "with a single judged answer",
}
"""How a message tells the kind of a group."""


class Sorted(NamedTuple):
    """Rollouts by whether their group has signal."""

    live: list[Rollout]
    dead: list[Rollout]
    reasons: Counter[str]
    """Groups by kind."""

    @property
    def groups(self) -> int:
        """How many groups there were."""
        return sum(self.reasons.values())

    def why_silent(self, after_sft: bool = False, refills: bool = False) -> str:
        """Why there is nothing to learn from, and what to do about it; what ran already is not recommended."""
        kinds = [kind for kind in KINDS if self.reasons[kind]]
        if kinds == [UNJUDGED]:
            return "no signal: not one answer could be judged; look at `detail` in the rollouts, then mend the judge"
        counts = ", ".join(f"{self.reasons[kind]} {SAID[kind]}" for kind in kinds)
        why = SAID[kinds[0]] if len(kinds) == 1 else f"groups: {counts}"
        same = f"every group's answers earned the same reward ({why}), so there is no gradient to follow"
        return f"no signal: {same}; {self._remedy(after_sft, refills)}"

    def _remedy(self, after_sft: bool, refills: bool) -> str:
        """Fits the one kind of the groups that were judged, or else a mix of kinds."""
        judged = [kind for kind in KINDS if self.reasons[kind] and kind != UNJUDGED]
        if judged == [ALL_WRONG]:
            first = "give SFT more steps or references" if after_sft else "do SFT first"
            return f"{first}, take easier problems, a larger model or a partial reward"
        if judged == [ALL_RIGHT]:
            return "take harder problems; these have nothing left to teach"
        if judged == [SAME_REWARD]:
            return "take a reward that tells these answers apart; `rlvr check reward` shows what it pays for"
        more = "draw more answers per problem (rollout.n) or more varied ones (rollout.temperature)"
        return more if refills else f"{more}, or other problems in place of these (filter.dead_groups=refill)"


class Collected(NamedTuple):
    """A batch of judged answers."""

    rollouts: list[Rollout]
    kinds: Sorted
    memory: Memory
    metrics: dict[str, float]


def sort_groups(rollouts: Sequence[Rollout], *, by_parts: bool = False) -> Sorted:
    """Split by signal; rollouts of a group are neighbours. `by_parts`: equal totals of different parts are signal."""
    live: list[Rollout] = []
    dead: list[Rollout] = []
    reasons: Counter[str] = Counter()
    for _, members in groupby(rollouts, key=lambda rollout: rollout.group_id):
        group = list(members)
        kind = _kind(group, by_parts)
        reasons[kind] += 1
        (live if kind == LIVE else dead).extend(group)
    return Sorted(live, dead, reasons)


def _kind(group: Sequence[Rollout], by_parts: bool) -> str:
    judged = [r for r in group if r.reward is not None]
    if not judged:
        return UNJUDGED
    values = {(r.reward.value, *(r.reward.parts.items() if by_parts else ())) for r in judged if r.reward is not None}
    if len(values) > 1:
        return LIVE
    if len(judged) == 1:
        return SINGLETON
    right = {r.verdict.correct for r in judged}
    return ALL_RIGHT if right == {True} else ALL_WRONG if right == {False} else SAME_REWARD


def metrics_of(rollouts: Sequence[Rollout], kinds: Sorted, whole: int | None = None) -> dict[str, float]:
    """Rewards, lengths and groups of a collection, under the field's names.

    `whole` is the length that every right answer has: one that ends there was not cut off, also without an end token.
    """
    judged = [r for r in rollouts if r.reward is not None]
    rewards = [r.reward.value for r in judged if r.reward is not None]
    lengths = [len(r.completion.tokens) for r in rollouts]
    cut = [r.completion.finish == "length" and length != whole for r, length in zip(rollouts, lengths, strict=True)]
    out = {
        "critic/rewards/mean": sum(rewards) / max(1, len(rewards)),
        "train/acc": sum(r.verdict.correct is True for r in judged) / max(1, len(judged)),
        "response_length/mean": sum(lengths) / max(1, len(lengths)),
        "response_length/max": float(max(lengths, default=0)),
        "response_length/clip_ratio": sum(cut) / max(1, len(cut)),
        "groups/collected": float(kinds.groups),
        "groups/zero_variance": 1 - kinds.reasons[LIVE] / max(1, kinds.groups),
        "groups/unjudged_rows": float(len(rollouts) - len(judged)),
    }
    out |= {f"groups/{kind}": float(kinds.reasons[kind]) for kind in KINDS}
    names = dict.fromkeys(name for r in judged if r.reward is not None for name in r.reward.parts)
    for name in names:
        values = [r.reward.parts.get(name, 0.0) for r in judged if r.reward is not None]
        out[f"reward/{name}"] = sum(values) / len(values)
    episodes = [r.completion for r in rollouts if r.completion.turns]
    if not episodes:
        return out
    from rlvrlab.rollout.episodes import metrics_of_turns

    return out | metrics_of_turns(episodes)


def assemble(rollouts: Sequence[Rollout], horizon: int) -> TokenBatch:
    """Tokens, masks, sampler log-probs and groups; an unjudged row and a tool's result are seen but not trained on."""
    ids = {group: i for i, group in enumerate(dict.fromkeys(r.group_id for r in rollouts))}
    batch = batch_of(
        [r.prompt_tokens for r in rollouts],
        [r.completion.tokens for r in rollouts],
        horizon=horizon,
        behaviour_BT=pad([r.completion.logprobs for r in rollouts]),
        group_B=np.array([ids[r.group_id] for r in rollouts]),
    )
    judged_B = np.array([r.reward is not None for r in rollouts])
    own_BT = batch.loss_BT & judged_B[:, None]
    if any(r.completion.turns for r in rollouts):
        own_BT = without(own_BT, [r.completion.given for r in rollouts])
    return replace(batch, loss_BT=own_BT).rescaled()


def score(
    batch: TokenBatch, engine: Engine, recipe: Recipe, *, reused: bool, critic: bool, weighed: bool = True
) -> TokenBatch:
    """Add the log-probs and values that the recipe needs; `reused` and `weighed` as in `training_batch`."""
    if reused or (weighed and recipe.correction.level != "none") or penalises_reward(recipe):
        batch = replace(batch, old_BT=engine.logprobs(batch)[0])
    if recipe.kl.coef > 0:
        batch = replace(batch, reference_BT=engine.logprobs(batch, "reference")[0])
    if critic:
        batch = replace(batch, value_BT=engine.values(batch))
    return batch


def penalises_reward(recipe: Recipe) -> bool:
    """Is the KL to the reference taken off the reward?"""
    return recipe.kl.coef > 0 and recipe.kl.place == "reward"


def correction_of(recipe: Recipe) -> Correction | None:
    """The recipe's importance weights, if it asks for any."""
    if recipe.correction.level == "none":
        return None
    from rlvrlab.objectives.correction import Correction

    return Correction(level=recipe.correction.level, high=recipe.correction.cap)


def with_advantages(
    batch: TokenBatch,
    rollouts: Sequence[Rollout],
    advantage: AdvantageEstimator,
    recipe: Recipe,
    *,
    weighed: bool = True,
) -> tuple[TokenBatch, dict[str, float]]:
    """Outcome on the last token, KL in the reward where wanted, then the estimator; and the sampler's correction."""
    assert batch.group_B is not None
    reward_BT = np.zeros(batch.tokens_BT.shape)
    for i, rollout in enumerate(rollouts):
        if rollout.reward is not None and batch.loss_BT[i].any():
            reward_BT[i, np.flatnonzero(batch.loss_BT[i])[-1]] = rollout.reward.value
    if penalises_reward(recipe):
        from rlvrlab.objectives.kl import penalised_reward_BT

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
    correction = correction_of(recipe) if weighed else None
    if correction:
        weight_BT, facts = correction(batch)
        batch, metrics = replace(batch, weight_BT=weight_BT), metrics | facts
    return batch, metrics


def training_batch(
    rollouts: Sequence[Rollout],
    engine: Engine,
    recipe: Recipe,
    advantage: AdvantageEstimator,
    *,
    reused: bool = False,
    critic: bool = False,
    weighed: bool = True,
) -> tuple[TokenBatch, dict[str, float]]:
    """Judged rollouts with all that an objective asks for; `reused` batches are updated on more than once.

    Without `weighed` the importance weights are left to the update (`CorrectedInUpdate`).
    """
    batch = assemble(rollouts, recipe.rollout.max_tokens)
    batch = score(batch, engine, recipe, reused=reused, critic=critic, weighed=weighed)
    return with_advantages(batch, rollouts, advantage, recipe, weighed=weighed)


def minibatches(batch: TokenBatch, count: int, epochs: int, *key: object) -> Iterator[TokenBatch]:
    """`epochs` passes, each in `count` parts of whole groups; every part is an update of its own."""
    assert batch.group_B is not None
    groups = np.unique(batch.group_B)
    for epoch in range(epochs):
        order = generator(*key, "minibatch", epoch).permutation(groups) if count > 1 else groups
        for part in np.array_split(order, min(count, len(groups))):
            yield batch.rows(np.flatnonzero(np.isin(batch.group_B, part))).rescaled()
