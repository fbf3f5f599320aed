"""Normalise each reward part within its group before adding them up (GDPO, arXiv 2601.05242).

Summing parts first and normalising the sum lets the part with the largest spread decide, and makes different
combinations of parts look alike: (correct, badly formed) and (wrong, well formed) may have the same sum. Here each
part is standardised on its own, the weighted sum is whitened over the batch, and no part drowns another.

B rollouts, K parts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from rlvrlab.types import Reward

EPSILON = 1e-6


def part_table(rewards: Sequence[Reward | None]) -> tuple[list[str], NDArray[np.float64], NDArray[np.bool_]]:
    """Names of the parts, their values for each rollout (0 where a rollout lacks one), and which are judged."""
    names = list(dict.fromkeys(name for reward in rewards if reward for name in reward.parts))
    part_BK = np.array(
        [[reward.parts.get(name, 0.0) if reward else 0.0 for name in names] for reward in rewards], float
    )
    return names, part_BK.reshape(len(rewards), len(names)), np.array([reward is not None for reward in rewards], bool)


def decoupled_advantages(
    names: Sequence[str],
    part_BK: NDArray[np.float64],
    group_B: NDArray[np.int64],
    judged_B: NDArray[np.bool_],
    weights: Mapping[str, float] | None = None,
) -> NDArray[np.float64]:
    """One advantage per rollout; 0 for those not judged. A part that is equal within a group says nothing there."""
    assert part_BK.shape == (len(group_B), len(names)) and judged_B.shape == group_B.shape
    standard_BK = np.zeros(part_BK.shape)
    for group in np.unique(group_B[judged_B]):
        rows = judged_B & (group_B == group)
        centred = part_BK[rows] - part_BK[rows].mean(axis=0)
        spread_K = centred.std(axis=0)
        standard_BK[rows] = np.where(spread_K > EPSILON, centred / (spread_K + EPSILON), 0.0)
    summed_B = standard_BK @ np.array([(weights or {}).get(name, 1.0) for name in names])
    if not judged_B.any():
        return summed_B
    centred_B = np.where(judged_B, summed_B - summed_B[judged_B].mean(), 0.0)
    return centred_B / (float(summed_B[judged_B].std()) + EPSILON)
