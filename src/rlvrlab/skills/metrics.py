"""What a sequence of stages left of each skill. `success_TS[i, j]`: success on skill j after stage i; row 0 is before.

    forgetting   max over stages 1 … T−1 of success, minus the last (Chaudhry et al. 2018); against row 0: vs. base
    BWT          last minus right after the skill's own stage          FWT   just before its own stage minus base
    intransigence   what training the skill alone reaches, minus what its own stage reached
`order[i]` is the skill trained in stage i + 1. Suffixes: T stages + 1, S skills.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rlvrlab.batch import Floats
from rlvrlab.shares import pass_at_k


class Retention(NamedTuple):
    """Numbers of one run; NaN where there is nothing to take a mean of."""

    average: float
    """Mean success over skills at the end."""
    worst: float
    """Success of the worst skill at the end."""
    forgetting: float
    """From the peak, mean over skills trained before the last stage."""
    forgetting_base: float
    """From before training, mean over all skills but the last trained; negative means gained."""
    backward_transfer: float
    forward_transfer: float
    learning: float
    """Success on each skill right after its own stage, mean."""
    intransigence: float
    oscillation: float
    """Mean absolute change from stage to stage."""


SHARES = frozenset({"average", "worst", "learning", "lost", "lost_by_chance", "oscillation"})
"""What lies between 0 and 1; `lost` is since the peak of all evaluations, the last one among them."""


def limits(name: str) -> tuple[float, float]:
    """The least and the most that a number of a run can be, by its name: shares, or differences of shares."""
    return (0.0, 1.0) if name in SHARES else (-1.0, 1.0)


def retention(success_TS: Floats, order: Sequence[int], alone_S: Floats | None = None) -> Retention:
    """Every number from the matrix of stage-end evaluations; `alone_S` is what training each skill alone reaches."""
    table = np.asarray(success_TS, dtype=np.float64)
    if table.ndim != 2 or len(table) != len(order) + 1:
        raise ValueError(f"{len(order)} stages need {len(order) + 1} rows of success, got an array of {table.shape}")
    stage = {skill: i + 1 for i, skill in enumerate(order)}
    past = [skill for skill in stage if stage[skill] < len(order)]
    others = [skill for skill in range(table.shape[1]) if stage.get(skill) != len(order)]
    own = {skill: float(table[i, skill]) for skill, i in stage.items()}
    later = {skill: i for skill, i in stage.items() if i > 1}
    peaks = [table[1 : len(order), skill].max() - table[-1, skill] for skill in past]
    return Retention(
        average=float(table[-1].mean()),
        worst=float(table[-1].min()),
        forgetting=_mean(peaks),
        forgetting_base=_mean([table[0, skill] - table[-1, skill] for skill in others]),
        backward_transfer=_mean([table[-1, skill] - own[skill] for skill in past]),
        forward_transfer=_mean([table[i - 1, skill] - table[0, skill] for skill, i in later.items()]),
        learning=_mean(list(own.values())),
        intransigence=_mean([] if alone_S is None else [float(alone_S[skill]) - own[skill] for skill in own]),
        oscillation=float(np.abs(np.diff(table, axis=0)).mean()) if len(table) > 1 else 0.0,
    )


def diversity(correct: Sequence[Sequence[bool]], answers: Sequence[Sequence[str]]) -> dict[str, float]:
    """One inner sequence per problem: `pass@1`, `pass@2`, `pass@4` … `pass@n`, and `distinct_accepted` per problem."""
    counts = [(len(group), sum(group)) for group in correct]
    n = min((size for size, _ in counts), default=0)
    ks = sorted({1, n, *(2**i for i in range(1, n.bit_length()) if 2**i <= n)}) if n else []
    rates = {f"pass@{k}": float(np.mean([pass_at_k(size, c, k) for size, c in counts])) for k in ks}
    distinct = [
        len({text for text, right in zip(texts, rights, strict=True) if right})
        for texts, rights in zip(answers, correct, strict=True)
    ]
    return rates | {"distinct_accepted": float(np.mean(distinct)) if distinct else 0.0}


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if len(values) else float("nan")
