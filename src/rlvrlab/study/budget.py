"""What a trial's training spends, known before it runs: optimiser steps, answers, at most so many tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rlvrlab.recipe import Resolved
from rlvrlab.recipe.explain import phase_plans
from rlvrlab.train.protocols.base import cut


class Budget(NamedTuple):
    """What one trial spends on training; tokens are an upper bound."""

    steps: int
    answers: int
    tokens: int


def budget_of(resolved: Resolved) -> Budget:
    """All phases together; a curriculum's response lengths count as they are, not as the longest."""
    plans = phase_plans(resolved)
    protocol = resolved.recipe.protocol or {}
    lengths = protocol.get("lengths") or []
    tokens = 0
    for plan in plans:
        if not lengths or not plan.answers or plan.name == "dpo" or plan.steps < len(lengths):
            tokens += plan.max_tokens
            continue
        stages = cut(plan.steps, protocol.get("shares") or [1.0] * len(lengths), "protocol")
        per_step = plan.answers // plan.steps
        tokens += sum((last - first) * per_step * length for (first, last), length in zip(stages, lengths, strict=True))
    return Budget(sum(plan.steps for plan in plans), sum(plan.answers for plan in plans), tokens)


def unequal(budgets: Mapping[str, Budget], parity: Sequence[str]) -> str | None:
    """Why arms are no fair comparison, or None."""
    for what in parity:
        spent = {arm: getattr(budget, what) for arm, budget in budgets.items()}
        if len(set(spent.values())) > 1:
            listed = ", ".join(f"{arm} {amount:,}" for arm, amount in spent.items())
            return f"parity asks for equal {what}, but: {listed}; change grpo.steps, rollout.n or the lengths"
    return None
