"""One optimiser step: gradient, clip, apply; refused when it is not finite."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rlvrlab.batch import TokenBatch
from rlvrlab.engines.base import Engine
from rlvrlab.types import Objective


class Applied(NamedTuple):
    """What an update did."""

    metrics: dict[str, float]
    skipped: bool
    """The loss or gradient was NaN or infinite: the parameters are as they were."""


def update(
    engine: Engine, batch: TokenBatch, objective: Objective, learning_rate: float, max_grad_norm: float
) -> Applied:
    """Descend the objective on one batch. √(wᵀGw) is the norm, so clipping is a factor on the weight."""
    gradient, value, metrics = engine.gradient(batch, objective)
    norm = math.sqrt(float(engine.gramian([gradient])["global"][0, 0]))
    metrics |= {"actor/loss": value, "actor/grad_norm": norm, "actor/lr": learning_rate}
    if not (math.isfinite(value) and math.isfinite(norm)):
        return Applied(metrics, skipped=True)
    weight = min(1.0, max_grad_norm / norm) if max_grad_norm and norm > 0 else 1.0
    engine.step([gradient], [weight], learning_rate)
    engine.release([gradient])
    return Applied(metrics, skipped=False)


def mean_metrics(rows: list[dict[str, float]]) -> dict[str, float]:
    """Average over the updates of a step, key by key."""
    keys = dict.fromkeys(key for row in rows for key in row)
    return {key: float(np.mean([row[key] for row in rows if key in row])) for key in keys}
