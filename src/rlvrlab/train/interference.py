"""The interference matrix of a policy as it stands: one small step on each skill, its effect on every other.

The step on skill a is its normalised policy gradient, of length `length`, taken back afterwards. Its effect on b is
measured with the same random numbers before and after (paired), and predicted to first order from b's own gradient on
other answers than those it is measured on. Suffixes: S skills, A halves of skills.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from rlvrlab.batch import Floats
from rlvrlab.engines.base import Vector
from rlvrlab.errors import UserError
from rlvrlab.skills.interference import Agreement, agreement, first_order, measured
from rlvrlab.surgery.conflict import cosines
from rlvrlab.train import checkpoint
from rlvrlab.train.batches import sort_groups, training_batch
from rlvrlab.train.lab import Lab, build_lab
from rlvrlab.train.phases.base import OnlinePhase
from rlvrlab.train.policy import checkpoint_of
from rlvrlab.train.session import resolved_of
from rlvrlab.train.update import problem_halves
from rlvrlab.types import Rollout, skills_of


class Interference(NamedTuple):
    """Rows: the skill stepped on. Columns: the skill affected."""

    skills: tuple[str, ...]
    cosine_SS: Floats
    self_cosine_S: Floats
    """Between the gradients of two halves of a skill's problems; NaN where there is only one problem."""
    predicted_SS: Floats
    """Change of the policy objective per unit of step length, to first order."""
    measured_SS: Floats
    """Change of the mean reward per unit of step length."""
    agreement: Agreement


def interference_of(run: Path, which: str, length: float, problems: int) -> Interference:
    """Of a run's checkpoint (`last`, `best`, `base` or a step) under its last on-line phase; the run is untouched."""
    resolved = resolved_of(run)
    path = checkpoint_of(run, which)
    online = [phase for name in resolved.recipe.phases if (phase := resolved.phase(name)).online]
    if not online:
        raise UserError(f"{run}: no on-line phase in {resolved.recipe.phases}, so there is no policy gradient")
    lab = build_lab(resolved)
    if path is not None:
        checkpoint.load(path, lab.engine)
    lab.engine.publish()
    return interference(lab, online[-1], length, problems=problems)


def interference(lab: Lab, phase: OnlinePhase, length: float, problems: int = 0) -> Interference:
    """On so many training problems of each skill, 0 for all; a skill whose answers all earn the same is left out."""
    asked = {skill: [p for p in lab.train if p.skill == skill][: problems or None] for skill in skills_of(lab.train)}

    def answers(skill: str, purpose: str) -> list[Rollout]:
        return lab.ask(asked[skill], (lab.recipe.seed, "interference", purpose))

    def rewards(names: list[str]) -> Floats:
        parts = [answers(skill, "effect") for skill in names]
        return np.array([np.mean([r.reward.value for r in part if r.reward is not None] or [0.0]) for part in parts])

    halves: dict[str, list[Vector]] = {}
    for skill in asked:
        if live := sort_groups(answers(skill, "gradient")).live:
            estimators, critic = phase.estimators(lab.resolved), phase.critic is not None
            objective = estimators.objective
            batch, _ = training_batch(live, lab.engine, lab.recipe, estimators.advantage, critic=critic)
            halves[skill] = [lab.engine.gradient(half, objective)[0] for half in problem_halves(batch)]
    if len(halves) < 2:
        raise UserError(f"interference: {len(halves)} skills have a gradient, two are needed; train a little first")
    names = list(halves)
    halves_AA = lab.engine.gramian([vector for vectors in halves.values() for vector in vectors])["global"]
    owner_A = np.repeat(np.arange(len(names)), [len(vectors) for vectors in halves.values()])
    gather_SA = (np.arange(len(names))[:, None] == owner_A[None, :]).astype(np.float64)
    gramian = gather_SA @ halves_AA @ gather_SA.T
    norm_S = np.sqrt(np.diag(gramian))
    before_S, after = rewards(names), []
    for vectors, norm in zip(halves.values(), norm_S, strict=True):
        lab.engine.shift(vectors, [-length / norm] * len(vectors))
        lab.engine.publish()
        after.append(rewards(names))
        lab.engine.shift(vectors, [length / norm] * len(vectors))
    lab.engine.publish()
    lab.engine.release([vector for vectors in halves.values() for vector in vectors])
    size_S = np.full(len(names), length)
    predicted_SS = first_order(length * gramian / norm_S[:, None], size_S)
    found_SS = measured(before_S, np.array(after), size_S)
    cosine_AA, own = cosines(halves_AA), np.full(len(names), np.nan)
    for place in range(len(names)):
        both = np.flatnonzero(owner_A == place)
        if len(both) == 2:
            own[place] = cosine_AA[both[0], both[1]]
    return Interference(tuple(names), cosines(gramian), own, predicted_SS, found_SS, agreement(predicted_SS, found_SS))
