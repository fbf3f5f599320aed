"""The learning rate at a step of a phase: linear warm-up, then constant, linear or cosine."""

from __future__ import annotations

import math

from rlvrlab.recipe.schema import Optimizer


def learning_rate(peak: float, step: int, steps: int, settings: Optimizer) -> float:
    """`step` counts from 0; the last step of a decay is at final_ratio × peak."""
    if step < settings.warmup_steps:
        return peak * (step + 1) / settings.warmup_steps
    if settings.decay == "constant":
        return peak
    length = max(1, steps - 1 - settings.warmup_steps)
    progress = min(1.0, (step - settings.warmup_steps) / length)
    if settings.decay == "cosine":
        progress = (1 - math.cos(math.pi * progress)) / 2
    return peak * (1 - (1 - settings.final_ratio) * progress)
