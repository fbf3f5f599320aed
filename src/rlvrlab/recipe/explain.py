"""What a recipe means in numbers, before anything runs."""

from __future__ import annotations

from typing import Any, NamedTuple

from rlvrlab.recipe.load import Resolved
from rlvrlab.recipe.parse import flatten
from rlvrlab.registry import find


class Setting(NamedTuple):
    """One resolved value."""

    key: str
    value: Any
    origin: str


class PhasePlan(NamedTuple):
    """One phase in numbers."""

    name: str
    steps: int
    problems_per_step: int
    answers_per_step: int
    """Effective batch: problems × rollout.n, or references, or two per pair."""
    updates_per_step: int
    answers: int
    """Over the whole phase, for verification too."""
    max_tokens: int
    """Generated at most, without refills."""


def settings(resolved: Resolved) -> list[Setting]:
    """Every value, in the schema's order."""
    found = []
    for key, value in flatten(resolved.plain()):
        origin = resolved.origins.get(key, "default")
        if key in ("advantage", "objective") and value is None:
            value, origin = _of_phases(resolved, key), "phase default"
        found.append(Setting(key, value, origin))
    return found


def _of_phases(resolved: Resolved, kind: str) -> str | None:
    """What the phases take when the recipe leaves it to them."""
    chosen = [getattr(find("phase", name), f"default_{kind}", None) for name in resolved.recipe.phases]
    return ", ".join(name for name in chosen if name) or None


def phase_plans(resolved: Resolved) -> list[PhasePlan]:
    """What each phase will do."""
    recipe = resolved.recipe
    plans = []
    for name in recipe.phases:
        table = recipe.phase_tables[name]
        steps, size = table["steps"], table["batch_size"]
        if name == "sft":
            plans.append(PhasePlan(name, steps, size, size, 1, 0, 0))
        elif name == "dpo":
            answers = table["problems"] * recipe.rollout.n
            plans.append(PhasePlan(name, steps, size, 2 * size, 1, answers, answers * recipe.rollout.max_tokens))
        else:
            per_step = size * recipe.rollout.n
            updates = table.get("minibatches", 1) * table.get("epochs", 1)
            answers = steps * per_step
            plans.append(PhasePlan(name, steps, size, per_step, updates, answers, answers * recipe.rollout.max_tokens))
    return plans
