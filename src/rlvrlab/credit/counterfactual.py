"""Counterfactual step credit: which step earned the reward? Replay the answer with one step changed, and compare.

    [credit]
    type = "counterfactual"                # the line that switches it on, in any online recipe
    counterfactual_k = 4
    intervention_types = ["delete", "truncate"]
    credit_normalization = "signed"

Unbiased or shaping? A subtracted term is a valid baseline exactly when it does not depend on the token's own choice
given what came before. v(< i), the reward of what stood before the step, does not: truncate and tail are **unbiased**,
as unbiased as the group advantage they are added to, as long as the steps are words or characters and each is one
token. In all other segmentations later tokens decide where a step begins. Deleting or exchanging a step and keeping the
policy's later steps, which reacted to it, is **shaping**; so are vine, resample and step_groups, which would be
unbiased over a fixed number of steps but give the decision to stop no credit of its own; so is credit that is ranked,
clipped, gated or turned into weights, and a random choice of k steps where the number of steps depends on the answer.
Shaping can teach faster, and may move the optimum; `weight` says how much of it there is (studies that looked for a
gain: studies/paper_a_credit_assignment). Every run records `credit/unbiased` (1 or 0).
A failed answer rarely has one step to blame (deleting a statement mended 2 % of failed minicode programs), yet most
different programs are failed ones. `examined = "earning"` leaves them to their group's advantage, for less than a third
of the calls; "live" also leaves groups alone in which every answer earned the same. Both are shaping: what is
subtracted then depends on the outcome.
Trap: an altered program that no longer runs says that a step is needed for the rest to run, not that it is worth
anything; `invalid` decides, and the default takes no credit from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from rlvrlab.batch import Floats, Ints
from rlvrlab.credit import estimators
from rlvrlab.credit.base import Known, Label, Segmentation, StepCredit
from rlvrlab.credit.bisection import bisect
from rlvrlab.credit.edits import Intervention, Invalid, ReplayMode, Replays, chosen_steps, intervention
from rlvrlab.credit.mapping import WEIGHTS, Length, Mapping, Normalisation, mapped, normalised
from rlvrlab.errors import UserError
from rlvrlab.registry import register
from rlvrlab.types import Count, CountOrZero, NonNegative

Estimator = Literal["leave_one_out", "prefix", "tail", "shapley", "banzhaf", "vine", "step_groups", "bisect"]
Examined = Literal["all", "earning", "live"]


@register("credit", "counterfactual")
@dataclass(frozen=True)
class Counterfactual(StepCredit):
    """Credit of steps by replaying the answer without them."""

    estimator: Estimator = "leave_one_out"
    """leave_one_out, prefix, tail, shapley, banzhaf, vine, step_groups, or bisect (of answers that earned)."""
    counterfactual_k: CountOrZero = 4
    """Steps examined per answer, drawn at random; 0 examines all. shapley and banzhaf always look at all."""
    examined: Examined = "all"
    """Answers replayed: all, those that earned above 0 (earning), or of these any above their group's worst (live)."""
    intervention_types: tuple[Intervention, ...] = ("delete", "truncate")
    """Interventions of leave_one_out: delete, truncate, substitute, null, reorder, resample; several are averaged."""
    replay: ReplayMode = "fixed"
    """fixed keeps the later steps as they are; resample lets the policy write them again."""
    samples: Count = 4
    """Continuations per state, permutations of shapley beyond 10 steps, coalitions per step of banzhaf."""
    segmentation: Segmentation = "auto"
    """What a step is; auto looks at the answer: python statements, sql clauses, turns, or paragraphs of text."""
    invalid: Invalid = "skip"
    """An altered program that no longer runs: skip (unknown), zero (no credit) or count (its reward is its value)."""
    credit_normalization: Normalisation = "signed"
    """signed, clip, zscore, rank, sum_preserving; share and abs_softmax are weights for redistribute."""
    mapping: Mapping = "add"
    """add to the group's advantage, redistribute it, gate it, or replace it."""
    weight: NonNegative = 1.0
    """Factor on the credit where mapping is add or replace."""
    length: Length = "token"
    """token: every token gets its step's credit; step: a step's sum does not depend on its length."""

    def __post_init__(self) -> None:
        kinds = self.intervention_types
        if not kinds or len(set(kinds)) < len(kinds):
            raise UserError(f"credit: intervention_types = {list(kinds)}: give one or more, each once")
        if (self.mapping == "redistribute") != (self.credit_normalization in WEIGHTS):
            raise UserError(
                f'credit: mapping = "{self.mapping}" with credit_normalization = "{self.credit_normalization}": '
                'redistribute goes with the weights "share" and "abs_softmax", the others with the rest'
            )
        if self.replay == "resample" and self.estimator == "leave_one_out" and "reorder" in kinds:
            raise UserError('credit: intervention "reorder" keeps all steps; use replay = "fixed" or leave it out')

    @property
    def label(self) -> Label:
        """Is the expected update still the policy gradient, or has it been shaped?

        "unbiased" also takes that every step is one token, which train/credit/replays.py looks at in the answers.
        """
        linear = self.credit_normalization == "signed" and self.mapping in ("add", "replace") and self.length == "token"
        truncates = self.intervention_types == ("truncate",) and self.replay == "fixed"
        sees_past_only = self.estimator == "tail" or (self.estimator == "leave_one_out" and truncates)
        all_steps = self.counterfactual_k == 0 and self.examined == "all"
        causal = self.segmentation in ("words", "characters")
        return "unbiased" if linear and sees_past_only and all_steps and causal else "shaping"

    @property
    def needs_replays(self) -> bool:
        """step_groups only compares the answers of a group with one another."""
        return self.estimator != "step_groups"

    @property
    def needs_sampling(self) -> bool:
        """vine, replay = "resample", and the interventions resample and substitute let the policy write again."""
        if self.estimator != "leave_one_out":
            return self.estimator == "vine"
        return any(intervention(kind, 1, 0, self.replay).sampled for kind in self.intervention_types)

    @property
    def wants_empty(self) -> bool:
        """Must the answer without any step be judged too?"""
        return self.credit_normalization == "sum_preserving"

    @property
    def keeps_dead_groups(self) -> bool:
        """Can it teach something where all answers of a group earned the same?"""
        return self.mapping in ("add", "replace") and (self.weight > 0 or self.mapping == "replace")

    def plan(self, steps: int, rng: np.random.Generator, known: Known | None = None) -> Replays:
        """What to replay of an answer with so many steps."""
        if self.estimator == "shapley":
            return estimators.shapley(steps, self.samples, rng)
        if self.estimator == "banzhaf":
            return estimators.banzhaf(steps, self.samples, rng)
        if self.estimator == "prefix":
            return estimators.prefix_difference(steps, self._chosen(steps, 2, rng))
        if self.estimator == "bisect":
            return bisect(steps, self._chosen(steps, 2, rng))
        if self.estimator == "vine":
            return estimators.vine(steps, self._chosen(steps, 2 * self.samples, rng))
        kinds: tuple[Intervention, ...] = ("truncate",) if self.estimator == "tail" else self.intervention_types
        replay: ReplayMode = "fixed" if self.estimator == "tail" else self.replay
        return estimators.leave_one_out(steps, self._chosen(steps, len(kinds), rng), kinds, replay)

    def examines(self, reward: float, least: float) -> bool:
        """Is an answer that earned `reward` worth replays, in a group where the worst earned `least`?"""
        if self.examined == "all" and self.estimator != "bisect":  # which looks for what a right answer needs
            return True
        return reward > 0 and (self.examined != "live" or reward > least)

    def normalised(self, credit_S: Floats, total: float) -> Floats:
        """Credit on the scale asked for; `total` is what the whole answer earned above the empty one."""
        return normalised(credit_S, self.credit_normalization, total=total)

    def mapped(self, group_T: Floats, step_T: Ints, credit_S: Floats) -> Floats:
        """Advantages of tokens from the group's advantage and the credit of their steps."""
        return mapped(group_T, step_T, credit_S, self.mapping, self.weight, self.length)

    def _chosen(self, steps: int, replays_per_step: int, rng: np.random.Generator) -> Ints:
        most = max(1, estimators.MAX_REPLAYS // replays_per_step)
        return chosen_steps(steps, min(self.counterfactual_k or most, most), rng)
