"""Doubly robust replays: an estimate for every step, corrected by replays of a few of them.

    [credit]
    type = "doubly_robust"

    c_i = ĉ_i + 1[i examined] / q_i · (v(N) − v(N \\ i) − ĉ_i)

ĉ_i is what deleting this statement, in canonical form, has cost in earlier steps of training, apart for answers that
earned something and those that did not; q_i is the chance with which the step is examined. Both are settled before
anything is replayed, so the mean over the choice is the deletion effect v(N) − v(N \\ i) exactly, however bad the
estimate (tests/credit/test_doubly_robust.py enumerates it). A good estimate makes the correction small, and then fewer
steps need it: q_i is the root mean square error that the estimate has had, from 1 for a statement never seen down to
`least_share`. Rewards are taken to be about 0 to 1.

The deletion effect itself is **shaping**, as in counterfactual.py. An altered program that no longer runs must have a
value here: a step that is left unknown when it is examined and estimated when it is not would bend the mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from rlvrlab.batch import Bools, Floats, Ints
from rlvrlab.credit.base import Known, Remembered, Segmentation, StepCredit
from rlvrlab.credit.edits import Estimate, Replays, intervention
from rlvrlab.credit.estimators import MAX_REPLAYS
from rlvrlab.credit.mapping import mapped
from rlvrlab.errors import UserError
from rlvrlab.registry import register
from rlvrlab.types import Fraction01, NonNegative

LONGEST_MEMORY = 50
"""Replays of a statement after which older ones begin to count less: the policy around it changes."""
MOST_STATEMENTS = 5000


@register("credit", "doubly_robust")
@dataclass(frozen=True)
class DoublyRobust(StepCredit):
    """Deletion effects, estimated from earlier steps of training and corrected by few replays."""

    least_share: Fraction01 = 0.1
    """Least chance with which a step is examined, however good its estimate; 1 examines all."""
    segmentation: Segmentation = "auto"
    """What a step is."""
    invalid: Literal["zero", "count"] = "zero"
    """An altered program that no longer runs: zero (no credit) or count (its reward is its value)."""
    mapping: Literal["add", "replace"] = "add"
    """add to the group's advantage, or replace it."""
    weight: NonNegative = 1.0
    """Factor on the credit."""

    remembers: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.least_share == 0:
            raise UserError("credit: least_share = 0: what is never examined is never corrected; give 0.02 or more")

    @property
    def keeps_dead_groups(self) -> bool:
        """Can it teach something where all answers of a group earned the same?"""
        return self.weight > 0

    def plan(self, steps: int, rng: np.random.Generator, known: Known | None = None) -> Replays:
        """Steps examined with the chance that their estimate's error gives them, and the correction by it."""
        estimate_S, error_S = known or Known(np.zeros(steps), np.ones(steps))
        chance_S = np.clip(error_S, self.least_share, 1.0)
        chance_S = np.minimum(chance_S, MAX_REPLAYS / max(MAX_REPLAYS, steps))
        examined_S = rng.random(steps) < chance_S
        places = np.flatnonzero(examined_S)

        def solve(value_E: Floats, whole: float) -> Estimate:
            effect_S = np.full(steps, np.nan)
            effect_S[places] = whole - value_E
            credit_S = corrected(estimate_S, chance_S, examined_S, effect_S)
            return Estimate(credit_S, np.full(steps, np.nan))

        return Replays(tuple(intervention("delete", steps, int(i), "fixed") for i in places), solve)

    def mapped(self, group_T: Floats, step_T: Ints, credit_S: Floats) -> Floats:
        """Advantages of tokens from the group's advantage and the credit of their steps."""
        return mapped(group_T, step_T, credit_S, self.mapping, self.weight)


def corrected(estimate_S: Floats, chance_S: Floats, examined_S: Bools, effect_S: Floats) -> Floats:
    """c = ĉ + 1[examined] / q · (effect − ĉ); unknown where an examined step's effect is."""
    return np.where(examined_S, estimate_S + (effect_S - estimate_S) / chance_S, estimate_S)


def known_of(remembered: Remembered, statements: Sequence[str]) -> Known:
    """What earlier replays say about statements; one never seen is worth 0, with an error of 1."""
    rows = [remembered.get(statement, FRESH) for statement in statements]
    return Known(np.array([row[1] for row in rows]), np.sqrt([row[2] for row in rows]))


FRESH = (0.0, 0.0, 1.0, 0.0)
"""Replays, mean effect, mean squared error of the estimate at the time, and when it was last seen."""


def learnt(remembered: Remembered, effects: Iterable[tuple[str, float]]) -> Remembered:
    """The memory after further replays: (statement, effect of deleting it)."""
    now = max((row[3] for row in remembered.values()), default=0.0) + 1
    rows = dict(remembered)
    for statement, effect in effects:
        count, mean, error, _ = rows.get(statement, FRESH)
        count = min(count + 1, LONGEST_MEMORY)
        error += ((effect - mean) ** 2 - error) / (count + 1)
        rows[statement] = (count, mean + (effect - mean) / count, error, now)
    kept = sorted(rows, key=lambda statement: (-rows[statement][3], statement))[:MOST_STATEMENTS]
    return {statement: rows[statement] for statement in sorted(kept)}
