"""Which groups have something to teach: dynamic filtering, with a counter for every reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from rlvrlab.types import Rollout

KINDS = LIVE, ALL_RIGHT, ALL_WRONG, SAME_REWARD, UNJUDGED, SINGLETON = (
    "live",
    "all_right",
    "all_wrong",
    "same_reward",
    "unjudged",
    "singleton",
)


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

    def why_silent(self, after_sft: bool = False) -> str:
        """Why there is nothing to learn from, and what to do about it; what ran already is not recommended."""
        if self.reasons[UNJUDGED] == self.groups:
            return "no signal: not one answer could be judged; look at `detail` in the rollouts, then mend the judge"
        if self.reasons[ALL_WRONG] >= self.reasons[ALL_RIGHT]:
            why, first = "all wrong", "give SFT more steps or references" if after_sft else "do SFT first"
            remedy = f"{first}, take easier problems, a larger model or a partial reward"
        else:
            why, remedy = "all right", "take harder problems; this set has nothing left to teach"
        same = f"every group's answers earned the same reward ({why}), so there is no gradient to follow"
        return f"no signal: {same}; {remedy}"


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


def metrics_of(rollouts: Sequence[Rollout], kinds: Sorted) -> dict[str, float]:
    """Rewards, lengths and groups of a collection, under the field's names."""
    judged = [r for r in rollouts if r.reward is not None]
    rewards = [r.reward.value for r in judged if r.reward is not None]
    lengths = [len(r.completion.tokens) for r in rollouts]
    out = {
        "critic/rewards/mean": sum(rewards) / max(1, len(rewards)),
        "train/acc": sum(r.verdict.correct is True for r in judged) / max(1, len(judged)),
        "response_length/mean": sum(lengths) / max(1, len(lengths)),
        "response_length/max": float(max(lengths, default=0)),
        "response_length/clip_ratio": sum(r.completion.finish == "length" for r in rollouts) / max(1, len(rollouts)),
        "groups/collected": float(kinds.groups),
        "groups/zero_variance": 1 - kinds.reasons[LIVE] / max(1, kinds.groups),
        "groups/unjudged_rows": float(len(rollouts) - len(judged)),
    }
    out |= {f"groups/{kind}": float(kinds.reasons[kind]) for kind in KINDS}
    names = dict.fromkeys(name for r in judged if r.reward is not None for name in r.reward.parts)
    for name in names:
        values = [r.reward.parts.get(name, 0.0) for r in judged if r.reward is not None]
        out[f"reward/{name}"] = sum(values) / len(values)
    return out
