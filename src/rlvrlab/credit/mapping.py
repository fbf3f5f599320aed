"""From step credit to token advantages. A is the group's advantage of a token, c the credit of its step, n the steps.

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
