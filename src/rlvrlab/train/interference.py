"""The interference matrix of a policy as it stands: one small step on each skill, its effect on every other.

The step on skill a is its normalised policy gradient, of length `length`, taken back afterwards. Its effect on b is
measured with the same random numbers before and after (paired), and predicted to first order from b's own gradient on
other answers than those it is measured on.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rlvrlab.batch import Floats, TokenBatch
from rlvrlab.errors import UserError
from rlvrlab.skills.interference import Agreement, agreement, first_order, measured
from rlvrlab.surgery.conflict import cosines
from rlvrlab.train.batches import assemble, score, sort_groups, with_advantages
from rlvrlab.train.lab import Lab
from rlvrlab.train.phases.base import OnlinePhase
from rlvrlab.train.protocols.base import skills_of
from rlvrlab.types import Rollout


class Interference(NamedTuple):
    """Rows: the skill stepped on. Columns: the skill affected."""

    skills: tuple[str, ...]
    cosine_SS: Floats
    predicted_SS: Floats
    """Change of the policy objective per unit of step length, to first order."""
    measured_SS: Floats
    """Change of the mean reward per unit of step length."""
    agreement: Agreement


def interference(lab: Lab, phase: OnlinePhase, length: float, key: tuple[object, ...] = ()) -> Interference:
    """On all training problems; skills whose answers all earn the same have no gradient and are left out."""
    vectors, names = [], []
    for skill in skills_of(lab.train):
        live = sort_groups(_asked(lab, skill, (*key, "gradient"))).live
        if live:
            vectors.append(lab.engine.gradient(_batch(lab, phase, live), phase.estimators(lab.resolved).objective)[0])
            names.append(skill)
    if len(names) < 2:
        raise UserError(f"interference: {len(names)} skills have a gradient, two are needed; train a little first")
    gramian = lab.engine.gramian(vectors)["global"]
    norm_S = np.sqrt(np.diag(gramian))
    before_S, after = _rewards(lab, names, key), []
    for vector, norm in zip(vectors, norm_S, strict=True):
        lab.engine.shift([vector], [-length / norm])
        lab.engine.publish()
        after.append(_rewards(lab, names, key))
        lab.engine.shift([vector], [length / norm])
    lab.engine.publish()
    lab.engine.release(vectors)
    size_S = np.full(len(names), length)
    predicted_SS = first_order(length * gramian / norm_S[:, None], size_S)
    found_SS = measured(before_S, np.array(after), size_S)
    return Interference(tuple(names), cosines(gramian), predicted_SS, found_SS, agreement(predicted_SS, found_SS))


def _rewards(lab: Lab, names: list[str], key: tuple[object, ...]) -> Floats:
    rollouts = [_asked(lab, skill, (*key, "effect")) for skill in names]
    return np.array([np.mean([r.reward.value for r in part if r.reward is not None] or [0.0]) for part in rollouts])


def _asked(lab: Lab, skill: str, key: tuple[object, ...]) -> list[Rollout]:
    problems = [problem for problem in lab.train if problem.skill == skill]
    return lab.ask(problems, (lab.recipe.seed, "interference", *key))


def _batch(lab: Lab, phase: OnlinePhase, rollouts: list[Rollout]) -> TokenBatch:
    batch = assemble(rollouts, lab.recipe.rollout.max_tokens)
    batch = score(batch, lab.engine, lab.recipe, reused=False, critic=phase.critic is not None)
    return with_advantages(batch, rollouts, phase.advantage(lab.resolved), lab.recipe)[0]
