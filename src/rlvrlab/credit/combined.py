"""Several credits at once: each works on what the one before it has left of the advantage.

    [credit]
    type = "combined"
    of = [{type = "tree"}, {type = "trace"}, {type = "doubly_robust", weight = 0.5}]

The advantage of a token goes through the credits in the order given. One that adds to it (mapping = "add") is added, so
that two of these are their sum in any order; one that replaces it wipes out what came before it, so it is named first;
trace moves what is there to the statement that is blamed. Each credit has steps of its own: branches, statements,
clauses. Together they are shaping, whatever each of them is alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rlvrlab.batch import Floats, Ints
from rlvrlab.credit.base import Shape, StepCredit
from rlvrlab.errors import UserError
from rlvrlab.recipe.remedies import instantiate_part
from rlvrlab.registry import register


def one_does(declared: str) -> Any:
    """The property that combined credits declare this where one of them does."""
    return property(lambda self: any(getattr(part, declared) for part in self.parts))


@register("credit", "combined")
@dataclass(frozen=True)
class Combined(StepCredit):
    """Several credits, one after the other."""

    of: tuple[dict[str, Any], ...] = ({"type": "counterfactual"},)
    """Tables of credits, in the order in which they work on the advantage; one of trees comes first."""

    def __post_init__(self) -> None:
        if not self.parts:
            raise UserError("credit: of is empty; give at least one credit table")
        if any(part.parts for part in self.parts):
            raise UserError("credit: of: combined credits hold no combined ones; list them all in one table")
        if any(part.grows for part in self.parts[1:]):
            raise UserError("credit: of: credit of trees replaces the group's advantage; put it first, and only once")
        if sum(part.remembers for part in self.parts) > 1:
            raise UserError("credit: of: a run has one memory of statements; give one credit that remembers")

    @cached_property
    def parts(self) -> tuple[StepCredit, ...]:
        """The credits, built from their tables."""
        return tuple(instantiate_part("credit", table, f"credit: of[{i}]") for i, table in enumerate(self.of))

    grows = one_does("grows")
    follows = one_does("follows")
    remembers = one_does("remembers")
    needs_replays = one_does("needs_replays")
    needs_sampling = one_does("needs_sampling")
    keeps_dead_groups = one_does("keeps_dead_groups")

    def shape(self, answers: int) -> Shape:
        """The tree of the first."""
        return self.parts[0].shape(answers)

    def mapped(self, group_T: Floats, step_T: Ints, credit_S: Floats) -> Floats:
        """Never asked: each credit maps its own steps (train/credit/credited.py)."""
        raise NotImplementedError("combined credits have no steps in common")
