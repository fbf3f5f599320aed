"""The scale of step credit within one answer (`credit_normalization`). Unknown steps (NaN) stay unknown.

    signed          c                                       the reward's own unit; the only one that keeps unbiasedness
    clip            c cut to ± scale
    zscore          (c − mean) / (std + 1e-6)               all equal: 0
    rank            centred ranks in [−½, ½], ties averaged
    sum_preserving  c + (v(N) − v(∅) − Σ c) / n             adds up to what the whole answer earned
    share           |c| / Σ |c|                             weights, for mapping = "redistribute"; all zero: uniform
    abs_softmax     softmax(|c| / scale)                    weights, for mapping = "redistribute"

With m of n steps known, weights add up to m / n (an unknown step keeps its 1 / n), and sum_preserving hands the known
steps their m / n of the total. Suffix: S steps.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from rlvrlab.batch import Floats

Normalisation = Literal["signed", "abs_softmax", "share", "rank", "zscore", "sum_preserving", "clip"]
WEIGHTS: tuple[Normalisation, ...] = ("share", "abs_softmax")
"""Unsigned: they say how much, not in which direction."""
SMALL = 1e-6


def normalised(credit_S: Floats, method: Normalisation, scale: float = 1.0, total: float = np.nan) -> Floats:
    """Credit on its new scale; `total` is v(N) − v(∅), for sum_preserving."""
    out_S = np.full(len(credit_S), np.nan)
    known_S = ~np.isnan(credit_S)
    if not known_S.any():
        return out_S
    c = credit_S[known_S]
    match method:
        case "signed":
            out_S[known_S] = c
        case "clip":
            out_S[known_S] = np.clip(c, -scale, scale)
        case "zscore":
            out_S[known_S] = 0.0 if np.ptp(c) == 0 else (c - c.mean()) / (c.std() + SMALL)
        case "rank":
            _, group, counts = np.unique(c, return_inverse=True, return_counts=True)
            mean_rank = np.cumsum(counts) - (counts + 1) / 2
            out_S[known_S] = mean_rank[group] / (len(c) - 1) - 0.5 if len(c) > 1 else 0.0
        case "sum_preserving":
            out_S[known_S] = c + (total * len(c) / len(credit_S) - c.sum()) / len(c)
        case "share":
            mass = np.abs(c).sum()
            out_S[known_S] = (np.abs(c) / mass if mass > 0 else 1 / len(c)) * len(c) / len(credit_S)
        case "abs_softmax":
            weight = np.exp((np.abs(c) - np.abs(c).max()) / scale)
            out_S[known_S] = weight / weight.sum() * len(c) / len(credit_S)
    return out_S
