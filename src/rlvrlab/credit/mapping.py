"""From step credit to token advantages: its scale within one answer, then what it does to the group's advantage.

`credit_normalization`; unknown steps (NaN) stay unknown:
    signed          c                                       the reward's own unit; the only one that keeps unbiasedness
    clip            c cut to ± scale
    zscore          (c − mean) / (std + 1e-6)               all equal: 0
    rank            centred ranks in [−½, ½], ties averaged
    sum_preserving  c + (v(N) − v(∅) − Σ c) / n             adds up to what the whole answer earned
    share           |c| / Σ |c|                             weights, for mapping = "redistribute"; all zero: uniform
    abs_softmax     softmax(|c| / scale)                    weights, for mapping = "redistribute"
With m of n steps known, weights add up to m / n (an unknown step keeps its 1 / n), and sum_preserving hands the known
steps their m / n of the total.

`mapping`; A is the group's advantage of a token, c the credit of its step, n the steps:
    add           A + weight · c
    redistribute  A · n · w            w the weights of share or abs_softmax; the mean over steps stays A
    gate          A where c · A ≥ 0, else 0        a step that helped is not punished with its answer, nor the reverse
    replace       c
Glue, and steps of which nothing is known, keep A: no information is no evidence. length = "token" gives each token of a
step its credit, so a long step weighs more; "step" makes a step's sum over its tokens independent of their number:
c · (mean tokens per step) / (tokens of this step). Suffixes: T tokens, S steps.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from rlvrlab.batch import Floats, Ints
from rlvrlab.credit.steps import GLUE

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


Mapping = Literal["add", "redistribute", "gate", "replace"]
Length = Literal["token", "step"]


def mapped(
    group_T: Floats, step_T: Ints, credit_S: Floats, how: Mapping, weight: float = 1.0, length: Length = "token"
) -> Floats:
    """Advantage of each token; `group_T` where nothing is known."""
    inside_T = step_T != GLUE
    credit_T = np.full(len(step_T), np.nan)
    credit_T[inside_T] = credit_S[step_T[inside_T]]
    known_T = ~np.isnan(credit_T)
    factor_T = np.ones(len(step_T))
    if length == "step" and inside_T.any():
        count_S = np.bincount(step_T[inside_T])
        factor_T[inside_T] = inside_T.sum() / np.count_nonzero(count_S) / count_S[step_T[inside_T]]
    if how == "add":
        out_T = group_T + weight * factor_T * credit_T
    elif how == "redistribute":
        out_T = group_T * len(credit_S) * credit_T * factor_T
    elif how == "gate":
        out_T = np.where(credit_T * group_T >= 0, group_T, 0.0)
    else:
        out_T = weight * factor_T * credit_T
    return np.where(known_T, out_T, group_T)
