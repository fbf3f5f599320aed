"""Counterfactual questions in terms of steps; what a step's text is, and how it is replayed, is known in rollout/.

delete step 1 of 4     Edit("keep", 1, 1 0 1 1)          keep these steps, as they stand
truncate at 1          Edit("keep", 1, 1 0 0 0)
null, substitute       Edit("null", 1, 1 1 1 1)          the step becomes a neutral one, or the policy's own
reorder                Edit("swap", 1, 1 1 1 1)          the step and its neighbour change places
resample               Edit("resume", 1, 1 0 0 0)        the policy goes on from before the step
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal, NamedTuple

import numpy as np

from rlvrlab.batch import Bools, Floats, Ints

How = Literal["keep", "null", "substitute", "swap", "resume", "resume_null"]
Intervention = Literal["delete", "truncate", "substitute", "null", "reorder", "resample"]
ReplayMode = Literal["fixed", "resample"]
Invalid = Literal["skip", "zero", "count"]
"""What an altered program that no longer runs is worth: unknown, no credit, or the reward it gets."""
SAMPLED: tuple[How, ...] = ("substitute", "resume", "resume_null")
"""These ask the policy, so they cost tokens and may be drawn several times."""
COALITION = -1
"""The step of an edit that is about no single step."""


class Edit(NamedTuple):
    """One altered trajectory."""

    how: How
    step: int
    kept: bytes
    """One byte per step: 1 where it stays."""

    @property
    def kept_S(self) -> Bools:
        """The steps that stay."""
        return np.frombuffer(self.kept, dtype=np.bool_)

    @property
    def sampled(self) -> bool:
        """Does it ask the policy?"""
        return self.how in SAMPLED


class Estimate(NamedTuple):
    """Credit of each step."""

    credit_S: Floats
    """NaN where nothing is known."""
    error_S: Floats
    """Standard error where the estimate was sampled, 0 where it is exact, NaN where nothing is known."""

    @classmethod
    def exact(cls, credit_S: Floats) -> Estimate:
        """Credit that was not sampled."""
        return cls(credit_S, np.where(np.isnan(credit_S), np.nan, 0.0))


class Replays(NamedTuple):
    """The altered trajectories to replay, and how their rewards become credit."""

    edits: tuple[Edit, ...]
    """Each once; never the unaltered trajectory, whose reward is known."""
    solve: Callable[[Floats, float], Estimate]
    """(reward of each edit, NaN where unknown; reward of the whole) -> credit."""
    then: Callable[[Floats, float], tuple[Edit, ...]] = lambda value_E, whole: ()
    """(the same) -> edits to replay next, once these values are known; none when nothing more is to be asked."""


def nothing(steps: int) -> Replays:
    """No replay at all: nothing is known of any step."""
    unknown_S = np.full(steps, np.nan)
    return Replays((), lambda value_E, whole: Estimate(unknown_S, unknown_S))


def coalition(kept_S: Bools | Iterable[bool], step: int = COALITION) -> Edit:
    """The answer with these steps alone."""
    return Edit("keep", step, np.asarray(kept_S, dtype=np.bool_).tobytes())


def before(steps: int, index: int) -> Bools:
    """Mask of the steps before number `index`."""
    return np.arange(steps) < index


def intervention(kind: Intervention, steps: int, index: int, replay: ReplayMode) -> Edit:
    """The edit that an intervention on one step means."""
    prefix_S = before(steps, index)
    if kind == "resample" or (replay == "resample" and kind in ("delete", "truncate", "substitute")):
        return Edit("resume", index, prefix_S.tobytes())
    if kind == "truncate":
        return coalition(prefix_S, index)
    if kind == "delete":
        return coalition(np.arange(steps) != index, index)
    if kind == "null" and replay == "resample":
        return Edit("resume_null", index, prefix_S.tobytes())
    how: dict[str, How] = {"null": "null", "substitute": "substitute", "reorder": "swap"}
    return Edit(how[kind], index, np.ones(steps, dtype=np.bool_).tobytes())


def chosen_steps(steps: int, budget: int, rng: np.random.Generator) -> Ints:
    """`budget` different steps, in order; all of them for 0. The others stay unknown."""
    if budget == 0 or budget >= steps:
        return np.arange(steps)
    return np.sort(rng.choice(steps, size=budget, replace=False))
