"""Do the groups' gradients disagree, and by more than noise? Read from Gramians.

    cos_ij = G_ij / √(G_ii G_jj)        conflict: cos_ij < threshold
    imbalance = mean over pairs of 2 |g_i||g_j| / (|g_i|² + |g_j|²)      1 equal sizes, 0 utterly unequal
    effective rank = exp(entropy of the normalised eigenvalues)

A cosine between two groups means little next to the cosine of a group with itself: each group's batch is split in two,
`self_cosine` is the cosine of the halves. The permutation control deals the halves to the groups anew: how often do
random groups disagree as much, and how large are their cosines by chance alone (the noise floor)? Suffixes: S groups,
A = 2 S halves, neighbours belong together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rlvrlab.batch import Bools, Floats
from rlvrlab.randomness import generator

PERMUTATIONS = 200
CHANCE = 0.95
"""Share of random groups' cosines that lie within the noise floor."""
MOST_PAIRED = 10
"""With more groups than this the cosines of single pairs are too many to record; their mean and minimum are."""


class Conflict(NamedTuple):
    """Agreement of several gradients."""

    cosine_SS: Floats
    rate: float
    """Share of pairs below the threshold."""
    mean_cosine: float
    lowest: float
    imbalance: float
    norm_ratio: float
    """Largest norm over smallest."""
    effective_rank: float

    def metrics(self, prefix: str = "surgery") -> dict[str, float]:
        """Under one prefix, for the record."""
        named = {"conflict_rate": self.rate, "cosine/mean": self.mean_cosine, "cosine/min": self.lowest}
        named |= {"norm_balance": self.imbalance, "norm_ratio": self.norm_ratio, "effective_rank": self.effective_rank}
        return {f"{prefix}/{name}": value for name, value in named.items()}


class Noise(NamedTuple):
    """What a cosine is worth."""

    self_cosine_S: Floats
    """Halves of one group against each other; near 0 the group's gradient is noise."""
    z: float
    """Mean cosine between groups against random groups, in their standard deviations; negative = real conflict."""
    p_lower: float
    """Share of random groupings that disagree at least as much."""
    floor: float
    """A cosine no larger than this, of either sign, is what random groups have too."""


def cosines(gramian_SS: Floats) -> Floats:
    """Pairwise; 0 where a gradient vanishes."""
    norm_S = np.sqrt(np.maximum(np.diag(gramian_SS), 0.0))
    size_SS = np.outer(norm_S, norm_S)
    safe_SS = np.where(size_SS > 0, size_SS, 1.0)
    return np.clip(np.where(size_SS > 0, gramian_SS / safe_SS, 0.0), -1.0, 1.0)


def conflicting(gramian_SS: Floats, threshold: float) -> Bools:
    """The pairs of different groups that are in conflict: their cosine is below the threshold."""
    return (cosines(gramian_SS) < threshold) & ~np.eye(len(gramian_SS), dtype=bool)


def pair_metrics(gramian_SS: Floats, names: Sequence[str]) -> dict[str, float]:
    """The cosine of every pair of groups that have a gradient, as `surgery/cosine/A/B`, A before B in `names`."""
    if len(names) > MOST_PAIRED:
        return {}
    cosine_SS, live = cosines(gramian_SS), np.flatnonzero(np.diag(gramian_SS) > 0)
    plain = [name.replace("/", "_") for name in names]
    pairs = [(i, j) for i in live for j in live if i < j]
    return {f"surgery/cosine/{plain[i]}/{plain[j]}": float(cosine_SS[i, j]) for i, j in pairs}


def conflict(gramian_SS: Floats, threshold: float = 0.0) -> Conflict | None:
    """Dead groups (no gradient) take no part; None where fewer than two are left, for then there is no pair."""
    live = np.flatnonzero(np.diag(gramian_SS) > 0)
    if len(live) < 2:
        return None
    gramian = gramian_SS[np.ix_(live, live)]
    cosine_SS = cosines(gramian)
    pair = np.triu_indices(len(live), 1)
    norm_S = np.sqrt(np.diag(gramian))
    left, right = norm_S[pair[0]], norm_S[pair[1]]
    return Conflict(
        cosine_SS,
        rate=float(conflicting(gramian, threshold)[pair].mean()),
        mean_cosine=float(cosine_SS[pair].mean()),
        lowest=float(cosine_SS[pair].min()),
        imbalance=float((2 * left * right / (left**2 + right**2)).mean()),
        norm_ratio=float(norm_S.max() / norm_S.min()),
        effective_rank=effective_rank(cosine_SS),
    )


def effective_rank(gramian_SS: Floats) -> float:
    """exp of the entropy of the eigenvalues' shares (Roy and Vetterli 2007)."""
    value_S = np.maximum(np.linalg.eigvalsh(gramian_SS), 0.0)
    share_S = value_S[value_S > 0] / max(value_S.sum(), 1e-300)
    return float(np.exp(-(share_S * np.log(share_S)).sum()))


def noise(halves_AA: Floats, *key: object) -> Noise:
    """From the Gramian of every group's two halves, in the order a₁ b₁ a₂ b₂ …"""
    count = len(halves_AA) // 2
    cosine_AA = cosines(halves_AA)
    self_cosine_S = cosine_AA[np.arange(0, 2 * count, 2), np.arange(1, 2 * count, 2)]
    rng = generator(*key, "permutation control")
    seen = float(_pair_cosines(halves_AA).mean())
    orders = [rng.permutation(2 * count) for _ in range(PERMUTATIONS)]
    drawn = np.array([_pair_cosines(halves_AA[np.ix_(order, order)]) for order in orders])
    random = drawn.mean(axis=1)
    spread = float(random.std())
    z = (seen - float(random.mean())) / spread if spread > 0 else 0.0
    p_lower = float((1 + (random <= seen + 1e-12).sum()) / (1 + len(random)))
    return Noise(self_cosine_S, z, p_lower, float(np.quantile(np.abs(drawn), CHANCE)))


def _pair_cosines(halves_AA: Floats) -> Floats:
    """Between groups, each the sum of its two neighbours; a single group has one pair of cosine 0."""
    count = len(halves_AA) // 2
    gramian_SS = halves_AA.reshape(count, 2, count, 2).sum(axis=(1, 3))
    cosine_SS = cosines(gramian_SS)
    return cosine_SS[np.triu_indices(count, 1)] if count > 1 else np.zeros(1)
