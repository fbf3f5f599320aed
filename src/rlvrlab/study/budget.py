"""What a trial's training spends, known before it runs: optimiser steps, answers, at most so many tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rlvrlab.recipe import Resolved
from rlvrlab.train.plan import phase_plans


class Budget(NamedTuple):
    """What one trial spends on training; tokens are an upper bound."""

    steps: int
    answers: int
    tokens: int


def budget_of(resolved: Resolved) -> Budget:
    """All phases together; a curriculum's response lengths count as they are, not as the longest."""
    plans = phase_plans(resolved)
    return Budget(*(sum(amounts) for amounts in zip(*((p.steps, p.answers, p.max_tokens) for p in plans), strict=True)))


def unequal(budgets: Mapping[str, Budget], parity: Sequence[str]) -> str | None:
    """Why arms are no fair comparison, or None."""
    for what in parity:
        spent = {arm: getattr(budget, what) for arm, budget in budgets.items()}
        if len(set(spent.values())) > 1:
            listed = ", ".join(f"{arm} {amount:,}" for arm, amount in spent.items())
            return f"parity asks for equal {what}, but: {listed}; change grpo.steps, rollout.n or the lengths"
    return None
