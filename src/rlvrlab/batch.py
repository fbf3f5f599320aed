"""Token arrays: what objectives, advantages and engines read.

Array suffixes: B rows (one completion each), T completion positions (padded right), e.g. `advantage_BT`.
A row `P0 P1 | A0 A1 E A2 #` (prompt | answer, tool output E, answer, padding) has
    tokens_BT = A0 A1 E A2 0      seen_BT = 1 1 1 1 0      loss_BT = 1 1 0 1 0
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class Scale(NamedTuple):
    """Counts over the whole update, kept by every slice, so that a micro-batch knows the global normaliser."""

    tokens: int
    """Tokens with loss."""
    rows: int
    """Rows with at least one such token."""
    pairs: int
    """Distinct preference pairs."""
    horizon: int
    """Longest completion the recipe allows: Dr.GRPO's constant length."""


@dataclass(frozen=True, slots=True)
class TokenBatch:
    """Completions with everything an objective needs; None means "not asked for"."""

    prompts: tuple[tuple[int, ...], ...]
    """Prompt tokens of each row, ragged."""
    tokens_BT: Ints
    """Completion tokens, padded with 0."""
    seen_BT: Bools
    """Real tokens: attended to."""
    loss_BT: Bools
    """Tokens that are trained on; a subset of seen_BT."""
    scale: Scale
    """Global normalisers."""
    behaviour_BT: Floats | None = None
    """The sampler's log-probs."""
    old_BT: Floats | None = None
    """The trainer's log-probs when the batch was collected: PPO's denominator."""
    reference_BT: Floats | None = None
    """The frozen reference policy's log-probs."""
    advantage_BT: Floats | None = None
    """Credit of each token."""
    value_BT: Floats | None = None
    """The critic's values at collection."""
    return_BT: Floats | None = None
    """What the critic should have said."""
    weight_BT: Floats | None = None
    """Importance correction of sampler against trainer, a constant factor on the policy loss."""
    group_B: Ints | None = None
    """Which answers belong to one problem."""
    pair_B: Ints | None = None
    """Which rows form a preference pair; two rows each."""
    chosen_B: Bools | None = None
    """Whether the row is the preferred one of its pair."""
    skill: str = ""
    """The skill all rows belong to, or empty."""

    def __len__(self) -> int:
        return len(self.prompts)

    def rows(self, index: Ints | slice | Sequence[int]) -> TokenBatch:
        """Some rows, with the scale of the whole."""
        order = np.arange(len(self))[index]
        changes: dict[str, Any] = {"prompts": tuple(self.prompts[i] for i in order)}
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(value, np.ndarray):
                changes[item.name] = value[order]
        return replace(self, **changes)

    def rescaled(self) -> TokenBatch:
        """The same rows as an update of their own."""
        return replace(self, scale=scale_of(self.loss_BT, self.pair_B, self.scale.horizon))


class RewardBatch(NamedTuple):
    """What an advantage estimator sees; rows as in TokenBatch."""

    reward_BT: Floats
    """Reward on the token that earned it: the outcome on the last token, minus KL where the recipe wants it."""
    mask_BT: Bools
    """Tokens with loss."""
    group_B: Ints
    """Problem of each row."""
    judged_B: Bools
    """False where the verdict is None: the row takes no part in any statistic and gets advantage 0."""
    value_BT: Floats | None = None
    """Critic, for GAE."""
    parts: Mapping[str, Floats] = MappingProxyType({})
    """The reward's named parts, one number per row, for estimators that normalise them apart."""


class Advantages(NamedTuple):
    """Credit of each token, and what had to be left out."""

    advantage_BT: Floats
    """0 outside the mask."""
    return_BT: Floats | None
    """Targets for the critic, where there is one."""
    counts: dict[str, int]
    """unjudged, singleton, zero_variance, … : rows or groups that carry no signal, by reason."""


def scale_of(loss_BT: Bools, pair_B: Ints | None, horizon: int) -> Scale:
    """Count what normalisers divide by."""
    return Scale(
        tokens=int(loss_BT.sum()),
        rows=int(loss_BT.any(axis=1).sum()),
        pairs=len(np.unique(pair_B)) if pair_B is not None else 0,
        horizon=horizon,
    )


def pad(rows: Sequence[Sequence[float]], dtype: Any = np.float64) -> NDArray[Any]:
    """Ragged rows to a right-padded matrix of zeros; never narrower than one column."""
    width = max((len(row) for row in rows), default=0) or 1
    out = np.zeros((len(rows), width), dtype=dtype)
    for i, row in enumerate(rows):
        out[i, : len(row)] = row
    return out


def without(mask_BT: Bools, spans_B: Sequence[Sequence[tuple[int, int]]]) -> Bools:
    """The mask with some spans of each row taken out of it."""
    left_BT = mask_BT.copy()
    for row, spans in enumerate(spans_B):
        for start, end in spans:
            left_BT[row, start:end] = False
    return left_BT


def batch_of(
    prompts: Sequence[Sequence[int]],
    completions: Sequence[Sequence[int]],
    *,
    horizon: int | None = None,
    pair_B: Ints | None = None,
    **arrays: Any,
) -> TokenBatch:
    """A batch in which every completion token is trained on."""
    tokens_BT = pad(completions, np.int64)
    lengths = np.array([len(c) for c in completions])
    seen_BT = np.arange(tokens_BT.shape[1])[None, :] < lengths[:, None]
    return TokenBatch(
        prompts=tuple(tuple(p) for p in prompts),
        tokens_BT=tokens_BT,
        seen_BT=seen_BT,
        loss_BT=seen_BT,
        scale=scale_of(seen_BT, pair_B, horizon or tokens_BT.shape[1]),
        pair_B=pair_B,
        **arrays,
    )


def micro_batches(batch: TokenBatch, couples: Literal["row", "pair", "batch"], rows: int) -> Iterator[Ints]:
    """Row indices in chunks of about `rows`; coupled rows stay together."""
    if couples == "batch" or rows <= 0 or len(batch) <= rows:
        yield np.arange(len(batch))
        return
    if couples == "row" or batch.pair_B is None:
        yield from np.split(np.arange(len(batch)), range(rows, len(batch), rows))
        return
    chunk: list[int] = []
    for pair in np.unique(batch.pair_B):
        chunk.extend(np.flatnonzero(batch.pair_B == pair))
        if len(chunk) >= rows:
            yield np.array(chunk)
            chunk = []
    if chunk:
        yield np.array(chunk)


def add_metrics(total: dict[str, float], part: dict[str, float], share: float = 1.0) -> None:
    """Sum metrics over micro-batches, which carry the global normaliser, or over groups by their share of the batch.

    Extremes stay extremes.
    """
    for key, value in part.items():
        if key.endswith("/min"):
            total[key] = min(total.get(key, value), value)
        elif key.endswith("/max"):
            total[key] = max(total.get(key, value), value)
        else:
            total[key] = total.get(key, 0.0) + share * value
