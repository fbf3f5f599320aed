"""Does a policy still find several ways? pass@k of a group's samples, and how many distinct right answers it gives."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb

import numpy as np


def diversity(correct: Sequence[Sequence[bool]], answers: Sequence[Sequence[str]]) -> dict[str, float]:
    """One inner sequence per problem: `pass@1`, `pass@2`, `pass@4` … `pass@n`, and `distinct_accepted` per problem."""
    counts = [(len(group), sum(group)) for group in correct]
    n = min((size for size, _ in counts), default=0)
    ks = sorted({1, n, *(2**i for i in range(1, n.bit_length()) if 2**i <= n)}) if n else []
    rates = {f"pass@{k}": float(np.mean([1 - comb(size - c, k) / comb(size, k) for size, c in counts])) for k in ks}
    distinct = [
        len({text for text, right in zip(texts, rights, strict=True) if right})
        for texts, rights in zip(answers, correct, strict=True)
    ]
    return rates | {"distinct_accepted": float(np.mean(distinct)) if distinct else 0.0}
