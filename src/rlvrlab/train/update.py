"""One optimiser step: its rate, gradients by group, clip, apply, guard; refused when it is not finite.

The same functions serve the engines of this package and verl's shards: all they ask of `engine` are the verbs gradient,
gramian, step and release. Suffixes: S groups, A vectors (a group may be given as two halves that add up to it).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rlvrlab.batch import Floats, Scale, TokenBatch, add_metrics
from rlvrlab.engines.base import Trainable, Vector
from rlvrlab.notes import timed
from rlvrlab.recipe.schema import Optimizer
from rlvrlab.train.state import NOTHING, Kept, Moment
from rlvrlab.types import Aggregation, Objective

if TYPE_CHECKING:
    from rlvrlab.engines.base import Engine
    from rlvrlab.train.guards.base import Guard


class Applied(NamedTuple):
    """What an update did."""

    metrics: dict[str, float]
    skipped: bool
    """The loss or gradient was NaN or infinite: the parameters are as they were."""


class Backward(NamedTuple):
    """One backward pass over a group, or over half of one."""

    vector: Vector
    group: int
    value: float
    metrics: dict[str, float]


class Gradients(NamedTuple):
    """Gradients of several groups' losses."""

    vectors: list[Vector]
    owner_A: list[int]
    """Group of each vector."""
    share_S: Floats
    """What each group's loss counts in that of the whole batch."""
    value_S: Floats
    """Loss of each group."""
    entropy_S: Floats
    """Mean token entropy of each group, 0 where the objective does not tell."""
    metrics: dict[str, float]
    """The objective's metrics, averaged over the groups by their share."""

    @classmethod
    def of(cls, passes: Sequence[Backward], share_S: Floats) -> Gradients:
        """Add up what the backward passes found."""
        value_S, entropy_S = np.zeros(len(share_S)), np.zeros(len(share_S))
        metrics: dict[str, float] = {}
        for one in passes:
            value_S[one.group] += one.value
            entropy_S[one.group] += one.metrics.get("actor/entropy", 0.0)
            add_metrics(metrics, one.metrics, float(share_S[one.group]))
        return cls([one.vector for one in passes], [one.group for one in passes], share_S, value_S, entropy_S, metrics)

    @property
    def gather_SA(self) -> Floats:
        """Adds up each group's vectors."""
        return (np.arange(len(self.value_S))[:, None] == np.array(self.owner_A)[None, :]).astype(np.float64)


def gradients(
    engine: Trainable, groups: Mapping[str, TokenBatch], objective: Objective, share_S: Floats, *, halved: bool = False
) -> Gradients:
    """One backward call per group, or two where halves are wanted; the work is the same."""
    passes = []
    for group, whole in enumerate(groups.values()):
        for part in problem_halves(whole) if halved else [whole]:
            vector, value, metrics = engine.gradient(part, objective)
            passes.append(Backward(vector, group, value, metrics))
    return Gradients.of(passes, share_S)


def descend(engine: Trainable, batch: TokenBatch, objective: Objective, rate: float, max_grad_norm: float) -> Applied:
    """One optimiser step on a whole batch, without surgery or guard."""
    with timed("update"):
        whole = gradients(engine, {"all": batch}, objective, np.ones(1))
        return apply(engine, whole, whole.share_S, rate, max_grad_norm)[0]


def publish(engine: Engine) -> int:
    """Hand the new policy to what samples from it; the number of its version."""
    with timed("publish"):
        return engine.publish()


def apply(
    engine: Trainable,
    found: Gradients,
    weight_S: Floats,
    rate: float,
    max_grad_norm: float,
    guard: Guard | None = None,
    now: Moment | None = None,
    kept: Kept = NOTHING,
) -> tuple[Applied, Kept]:
    """Step along Σ wᵢgᵢ plus the guard's terms, clipped as a whole; then let the guard correct the step.

    √(wᵀGw) is the norm of the sum, so clipping is a factor on the weights.
    """
    own = [float(weight) for weight in weight_S[found.owner_A]]
    vectors, weights, metrics = [*found.vectors], np.array(own), found.metrics
    if guard and now:
        from rlvrlab.train.guards.base import Gradient

        terms = guard.terms(now, kept, Gradient(vectors, own))
        vectors, weights = [*vectors, *terms.vectors], np.array([*own, *terms.weights])
        metrics = metrics | {"guard/protected": float(len(now.protected))} | terms.metrics
    gramian = engine.gramian(vectors)["global"]
    norm = math.sqrt(max(float(weights @ gramian @ weights), 0.0)) if np.isfinite(gramian).all() else math.nan
    value = float(found.value_S @ found.share_S)
    metrics = metrics | {"actor/loss": value, "actor/grad_norm": norm, "actor/lr": rate}
    if not (math.isfinite(value) and math.isfinite(norm)):
        engine.release(vectors)
        return Applied(metrics, skipped=True), kept
    if guard and now:
        kept, more = guard.before_step(now, kept)
        metrics |= more
    clip = min(1.0, max_grad_norm / norm) if max_grad_norm and norm > 0 else 1.0
    moved = engine.step(vectors, [float(w) for w in clip * weights], rate)
    engine.release(vectors)
    if guard and now:
        kept, more = guard.after_step(now, kept, moved)
        metrics |= more
    engine.release([moved])
    return Applied(metrics, skipped=False), kept


def problem_halves(batch: TokenBatch) -> list[TokenBatch]:
    """Two halves by problem, with the scale of the whole, so that their gradients add up; one problem stays whole."""
    assert batch.group_B is not None
    problems = np.unique(batch.group_B)
    if len(problems) < 2:
        return [batch]
    first_B = np.isin(batch.group_B, problems[::2])
    return [batch.rows(np.flatnonzero(first_B)), batch.rows(np.flatnonzero(~first_B))]


def shares(rows_S: Sequence[int] | Floats, tokens_S: Sequence[int] | Floats, aggregation: Aggregation) -> Floats:
    """What each group's own loss counts in the loss of the whole batch; given are its rows and tokens with loss."""
    if aggregation == "token-sum":
        return np.ones(len(rows_S))
    count_S = np.asarray(tokens_S if aggregation == "token-mean" else rows_S, dtype=np.float64)
    return count_S / max(1.0, float(count_S.sum()))


def counted_share(computed: Scale, whole: Scale, aggregation: Aggregation) -> float:
    """Weight of the computed rows in the mean over all rows; the others count as zero."""
    rows, tokens = (computed.rows, whole.rows - computed.rows), (computed.tokens, whole.tokens - computed.tokens)
    return float(shares(rows, tokens, aggregation)[0])


def mean_metrics(rows: Sequence[dict[str, float]]) -> dict[str, float]:
    """Average over the updates of a step, key by key."""
    keys = dict.fromkeys(key for row in rows for key in row)
    return {key: float(np.mean([row[key] for row in rows if key in row])) for key in keys}


def learning_rate(peak: float, step: int, steps: int, settings: Optimizer) -> float:
    """Linear warm-up, then constant, linear or cosine. `step` counts from 0; a decay ends at final_ratio × peak."""
    if step < settings.warmup_steps:
        return peak * (step + 1) / settings.warmup_steps
    if settings.decay == "constant":
        return peak
    length = max(1, steps - 1 - settings.warmup_steps)
    progress = min(1.0, (step - settings.warmup_steps) / length)
    if settings.decay == "cosine":
        progress = (1 - math.cos(math.pi * progress)) / 2
    return peak * (1 - (1 - settings.final_ratio) * progress)
