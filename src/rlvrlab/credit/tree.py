"""Credit from a tree of answers: was this step better than the others drawn from the same place?

    [rollout]
    type = "tree"          # the line that switches it on
    n = 8

    V(leaf) = its reward        V(node) = mean over its children        credit of a step = V(its node) − V(its siblings)

V(siblings) is the mean over the other children of the same parent: k / (k − 1) times V(node) − V(parent), so that a
step's own leaves are not part of what it is compared with. Given what came before, the siblings were drawn
independently of the step: their mean is a valid baseline, and the expected credit of a step is exactly its advantage
Q(prefix, step) − V(prefix). The boundary at which a step ends is known from the tokens up to it, so later tokens decide
nothing: the credit is **unbiased**, for every policy and every kind of boundary (SPO-tree, 2505.23564; TreeRPO,
2506.05183). tests/credit/test_tree_credit.py enumerates it.

A leaf that ended before it could branch counts for all leaves that were to grow from it, in the means and in the
update: share / leaves. Answers drawn beside the tree in their place are compared with the whole tree.
No replays: the verifier is asked as often as by GRPO with the same rollout.n, and shared beginnings are drawn once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar, Literal

import numpy as np

from rlvrlab.batch import Floats, Ints
from rlvrlab.credit.base import Boundary, Grown, Label, Shape, StepCredit
from rlvrlab.credit.mapping import mapped
from rlvrlab.errors import UserError
from rlvrlab.registry import register
from rlvrlab.types import Branch, Count, NonNegative

Path = tuple[int, ...]
SMALL = 1e-6


@register("credit", "tree")
@dataclass(frozen=True)
class Tree(StepCredit):
    """Each step against the others that were drawn from the same beginning."""

    branches: tuple[Count, ...] = ()
    """Ways on at each boundary, from the prompt; their product is rollout.n. Left out: n / 2 steps, each in 2 ways."""
    boundary: Boundary = "lines"
    """What ends a step: lines, tokens, or turns of an episode with tools, each with its result."""
    every: Count = 1
    """So many of them make a step; tokens want 8 or more."""
    credit_normalization: Literal["signed", "group"] = "signed"
    """signed is in units of reward; group divides by the standard deviation of the group's rewards, as GRPO does."""
    mapping: Literal["replace", "add"] = "replace"
    """replace the group's advantage, or add to it."""
    weight: NonNegative = 1.0
    """Factor on the credit."""

    grows: ClassVar[bool] = True
    needs_replays = False  # the answers of the tree are all there is

    def __post_init__(self) -> None:
        if any(ways < 2 for ways in self.branches):
            remedy = "each must be 2 or more, or a step has nothing to be compared with"
            raise UserError(f"credit: branches = {list(self.branches)}: {remedy}")

    @property
    def label(self) -> Label:
        """Unbiased for the advantage given the prefix, unless the credit is mapped or normalised."""
        return "unbiased" if self.credit_normalization == "signed" and self.mapping == "replace" else "shaping"

    def shape(self, answers: int) -> Shape:
        """The tree on which so many answers to a problem grow."""
        branches = self.branches or ((answers // 2, 2) if answers % 2 == 0 and answers >= 4 else (answers,))
        if prod(branches) != answers or min(branches) < 2:
            remedy = f"set rollout.n = {prod(branches)}, or branches whose product is {answers}"
            raise UserError(f"credit: branches = {list(branches)} give {prod(branches)} answers; {remedy}")
        return Shape(branches, self.boundary, self.every)

    def mapped(self, group_T: Floats, step_T: Ints, credit_S: Floats) -> Floats:
        """Advantages of tokens from the group's advantage and the credit of their steps."""
        return mapped(group_T, step_T, credit_S, self.mapping, self.weight)

    def grown(self, answers: Sequence[Sequence[Branch]], reward_B: Floats) -> list[Grown]:
        """Credit of the steps of answers to one problem; steps that stand for several answers count so often."""
        known_B, spread = reward_B[~np.isnan(reward_B)], 1.0
        if self.credit_normalization == "group" and len(known_B) > 1:
            spread = float(known_B.std(ddof=1)) + SMALL
        return [Grown(credit_S, credit_S * weight_S / spread) for credit_S, weight_S in tree_credit(answers, reward_B)]


def tree_credit(answers: Sequence[Sequence[Branch]], reward_B: Floats) -> list[tuple[Floats, Floats]]:
    """Credit of each answer's steps in units of reward, and how many answers stand behind each that is there.

    Unjudged answers (NaN) are left out of every mean.
    """
    leaves = Counter(branch.path for branches in answers for branch in branches)
    value: dict[Path, float] = {
        branches[-1].path: float(reward) for branches, reward in zip(answers, reward_B, strict=True)
    }
    below: dict[Path, set[Path]] = {}
    for path in leaves:
        below.setdefault(path[:-1], set()).add(path)
    planned = {parent: sorted(path for path in paths if path[-1] >= 0) for parent, paths in below.items()}
    for parent in sorted(planned, key=len, reverse=True):
        value[parent] = _mean([value[path] for path in planned[parent]])
    credit = {
        path: value[path] - _mean([value[other] for other in planned[path[:-1]] if other != path]) for path in leaves
    }
    return [
        (
            np.array([credit[branch.path] for branch in branches]),
            np.array([branch.share / leaves[branch.path] for branch in branches]),
        )
        for branches in answers
    ]


def _mean(values: Sequence[float]) -> float:
    known = [value for value in values if not np.isnan(value)]
    return sum(known) / len(known) if known else float("nan")
