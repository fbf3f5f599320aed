"""What a step credit method says about itself and must be able to do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from rlvrlab.batch import Floats, Ints
from rlvrlab.credit.edits import Invalid, Replays, nothing
from rlvrlab.types import Branch

Label = Literal["unbiased", "shaping"]
Segmentation = Literal["auto", "python", "sql", "turns", "text", "words", "characters"]
Boundary = Literal["lines", "tokens", "turns"]


class Shape(NamedTuple):
    """Of a tree of answers to one problem (rollout/tree.py)."""

    branches: tuple[int, ...]
    """Ways on at each level, from the prompt; their product is the number of answers."""
    boundary: Boundary
    """Where a step ends."""
    every: int
    """So many lines, tokens or turns make a step."""


class Grown(NamedTuple):
    """What a tree of answers says about the steps of one of them."""

    credit_S: Floats
    """In units of reward; NaN where nothing was judged to compare with."""
    trained_S: Floats
    """As it is trained on."""


Remembered = Mapping[str, tuple[float, ...]]
"""What a credit method keeps from step to step, by statement: plain numbers, saved with every checkpoint."""


class Known(NamedTuple):
    """What is thought of the steps of an answer before any replay."""

    estimate_S: Floats
    """Of their credit."""
    error_S: Floats
    """Root mean square error that such estimates had."""


class StepCredit(ABC):
    """Derive a frozen dataclass from this and give it a name with @register("credit", …)."""

    grows: ClassVar[bool] = False
    """Takes its credit from answers that grew on a tree: goes with rollout.type = "tree", and only with that."""
    follows: ClassVar[bool] = False
    """Compares what programs do, statement by statement: needs an environment that runs them."""
    remembers: ClassVar[bool] = False
    """Learns from replay to replay what statements are worth: its memory is saved with every checkpoint."""
    samples: int = 1
    """Continuations per state, where the policy writes again."""
    siblings: int = 1
    """Right answers that a failed one is compared with, where programs are followed."""
    segmentation: Segmentation = "auto"
    """What a step is."""
    invalid: Invalid = "skip"
    """What an altered program that no longer runs is worth."""

    @property
    def parts(self) -> tuple[StepCredit, ...]:
        """The credits that this one is made of, in their order; none where it is one by itself."""
        return ()

    @property
    def label(self) -> Label:
        """Is the expected update still the policy gradient, or has it been shaped? In doubt it has."""
        return "shaping"

    @property
    def needs_replays(self) -> bool:
        """Judges altered answers; False where the answers of a group are only compared with one another."""
        return True

    @property
    def needs_sampling(self) -> bool:
        """Draws new answers from the policy while the update waits."""
        return False

    @property
    def wants_empty(self) -> bool:
        """Must the answer without any step be judged too?"""
        return False

    @property
    def keeps_dead_groups(self) -> bool:
        """Can it teach something where all answers of a group earned the same?"""
        return False

    def examines(self, reward: float, least: float) -> bool:
        """Is an answer worth replays that earned `reward`, in a group where the worst earned `least`?"""
        return True

    def shape(self, answers: int) -> Shape:
        """The tree on which so many answers to a problem grow, where they do; UserError where they cannot."""
        raise NotImplementedError(f"{type(self).__name__} grows no trees")

    def blamed(self, steps: int, step: int, gap: float) -> Floats:
        """Credit of the steps of a failed program where `step` is to blame for earning `gap` less than a right one."""
        raise NotImplementedError(f"{type(self).__name__} follows no programs")

    def grown(self, answers: Sequence[Sequence[Branch]], reward_B: Floats) -> list[Grown]:
        """Credit of the steps of answers that grew on one tree; a reward is NaN where an answer was not judged."""
        raise NotImplementedError(f"{type(self).__name__} grows no trees")

    def plan(self, steps: int, rng: np.random.Generator, known: Known | None = None) -> Replays:
        """What to replay of an answer with so many steps; nothing by default. `known` is for those that remember."""
        return nothing(steps)

    def normalised(self, credit_S: Floats, total: float) -> Floats:
        """Credit on the scale asked for; `total` is what the whole answer earned above the empty one."""
        return credit_S

    @abstractmethod
    def mapped(self, group_T: Floats, step_T: Ints, credit_S: Floats) -> Floats:
        """Advantages of tokens from the group's advantage and the credit of their steps."""
