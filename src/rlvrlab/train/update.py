"""One optimiser step: gradients, surgery, clip, apply, guard; refused when it is not finite."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rlvrlab.batch import Floats, TokenBatch
from rlvrlab.engines.base import Engine, Vector
from rlvrlab.surgery.base import Memory, Scene, Surgery
from rlvrlab.surgery.conflict import conflict, noise
from rlvrlab.types import Objective

if TYPE_CHECKING:
    from rlvrlab.train.guards.base import Guard, Moment


class Applied(NamedTuple):
    """What an update did."""

    metrics: dict[str, float]
    skipped: bool
    """The loss or gradient was NaN or infinite: the parameters are as they were."""


class Gradients(NamedTuple):
    """Gradients of several groups' losses; a group may be given as two halves that add up to it."""

    vectors: list[Vector]
    owner_A: list[int]
    """Group of each vector."""
    value_S: Floats
    """Loss of each group."""
    entropy_S: Floats
    """Mean token entropy of each group, 0 where the objective does not tell."""
    metrics: dict[str, float]
    """Of the objective, averaged over the groups by their share."""

    @property
    def gather_SA(self) -> Floats:
        """Adds up each group's vectors."""
        return (np.arange(len(self.value_S))[:, None] == np.array(self.owner_A)[None, :]).astype(np.float64)


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


def gradients(
    engine: Engine, groups: Mapping[str, TokenBatch], objective: Objective, share_S: Floats, *, halved: bool
) -> Gradients:
    """One backward call per group, or two where halves are wanted; the work is the same."""
    vectors: list[Vector] = []
    owner_A: list[int] = []
    value_S, entropy_S = np.zeros(len(groups)), np.zeros(len(groups))
    total: dict[str, float] = {}
    for i, batch in enumerate(groups.values()):
        for part in problem_halves(batch) if halved else [batch]:
            vector, value, metrics = engine.gradient(part, objective)
            vectors.append(vector)
            owner_A.append(i)
            value_S[i] += value
            entropy_S[i] += metrics.get("actor/entropy", 0.0)
            for name, one in metrics.items():
                total[name] = total.get(name, 0.0) + one * float(share_S[i])
    return Gradients(vectors, owner_A, value_S, entropy_S, total)


def careful_update(
    engine: Engine,
    found: Gradients,
    weight_S: Floats,
    share_S: Floats,
    learning_rate: float,
    max_grad_norm: float,
    guard: Guard | None,
    now: Moment,
) -> Applied:
    """Step along Σ wᵢgᵢ plus the guard's terms, clipped as a whole; then let the guard correct the step."""
    terms = guard.terms(now) if guard else []
    vectors = [*found.vectors, *(vector for vector, _ in terms)]
    weights = np.array([*weight_S[found.owner_A], *(weight for _, weight in terms)])
    gramian = engine.gramian(vectors)["global"]
    norm = math.sqrt(max(float(weights @ gramian @ weights), 0.0)) if np.isfinite(gramian).all() else math.nan
    value = float(found.value_S @ share_S)
    metrics = found.metrics | {"actor/loss": value, "actor/grad_norm": norm, "actor/lr": learning_rate}
    if not (math.isfinite(value) and math.isfinite(norm)):
        engine.release(vectors)
        return Applied(metrics, skipped=True)
    metrics |= guard.before_step(now) if guard else {}
    clip = min(1.0, max_grad_norm / norm) if max_grad_norm and norm > 0 else 1.0
    applied = engine.step(vectors, [float(w) for w in clip * weights], learning_rate)
    engine.release(vectors)
    metrics |= guard.after_step(now, applied) if guard else {}
    engine.release([applied])
    return Applied(metrics, skipped=False)


def operate(
    engine: Engine, surgery: Surgery, found: Gradients, scene: Scene, memory: Memory
) -> tuple[Floats, Memory, dict[str, float]]:
    """Weights of the groups, what the method remembers, and how much the groups disagree."""
    gather_SA = found.gather_SA
    halves_AA = engine.gramian(found.vectors)["global"]
    scene = scene._replace(gramian_SS=gather_SA @ halves_AA @ gather_SA.T)
    weight_S, memory = surgery(scene, memory)
    metrics = conflict(scene.gramian_SS, surgery.conflict_threshold).metrics()
    if surgery.scope == "module":
        for name, gramian in engine.gramian(found.vectors, "module").items():
            rate = conflict(gather_SA @ gramian @ gather_SA.T, surgery.conflict_threshold).rate
            metrics[f"surgery/conflict_rate/{name}"] = rate
    twice = [i for i in range(len(scene.names)) if found.owner_A.count(i) == 2]
    if len(twice) > 1:
        both = np.flatnonzero(np.isin(found.owner_A, twice))
        control = noise(halves_AA[np.ix_(both, both)], *scene.key)
        metrics |= {"surgery/permutation_z": control.z, "surgery/permutation_p": control.p_lower}
        for i, one in zip(twice, control.self_cosine_S, strict=True):
            metrics[f"surgery/self_cosine/{scene.names[i]}"] = float(one)
    for i, name in enumerate(scene.names):
        metrics[f"surgery/weight/{name}"] = float(weight_S[i])
        metrics[f"surgery/success/{name}"] = float(scene.success_S[i])
        metrics[f"surgery/entropy/{name}"] = float(found.entropy_S[i])
    return weight_S, memory, metrics


def problem_halves(batch: TokenBatch) -> list[TokenBatch]:
    """Two halves by problem, with the scale of the whole, so that their gradients add up; one problem stays whole."""
    assert batch.group_B is not None
    problems = np.unique(batch.group_B)
    if len(problems) < 2:
        return [batch]
    first_B = np.isin(batch.group_B, problems[::2])
    return [batch.rows(np.flatnonzero(first_B)), batch.rows(np.flatnonzero(~first_B))]


def shares(batch: TokenBatch, groups: Sequence[TokenBatch], objective: Objective) -> Floats:
    """What each group's own loss counts in the loss of the whole batch, under the objective's aggregation."""
    inner = getattr(objective, "objective", objective)
    mode = str(getattr(inner, "aggregation", "token-mean"))
    if mode == "token-sum":
        return np.ones(len(groups))
    field = "tokens" if mode == "token-mean" else "rows"
    return np.array([getattr(g.scale, field) for g in groups]) / max(1, getattr(batch.scale, field))


def mean_metrics(rows: list[dict[str, float]]) -> dict[str, float]:
    """Average over the updates of a step, key by key."""
    keys = dict.fromkeys(key for row in rows for key in row)
    return {key: float(np.mean([row[key] for row in rows if key in row])) for key in keys}
