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

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rlvrlab.batch import Floats, Ints
from rlvrlab.credit.base import Shape, StepCredit
from rlvrlab.errors import UserError
from rlvrlab.recipe.load import instantiate
from rlvrlab.registry import register


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
        return tuple(_built(number, table) for number, table in enumerate(self.of))

    @property
    def grows(self) -> bool:  # type: ignore[override]
        """Whether one of them does."""
        return self._any(lambda part: part.grows)

    @property
    def follows(self) -> bool:  # type: ignore[override]
        """Whether one of them does."""
        return self._any(lambda part: part.follows)

    @property
    def remembers(self) -> bool:  # type: ignore[override]
        """Whether one of them does."""
        return self._any(lambda part: part.remembers)

    @property
    def needs_replays(self) -> bool:
        """Whether one of them does."""
        return self._any(lambda part: part.needs_replays)

    @property
    def needs_sampling(self) -> bool:
        """Whether one of them does."""
        return self._any(lambda part: part.needs_sampling)

    @property
    def keeps_dead_groups(self) -> bool:
        """Whether one of them does."""
        return self._any(lambda part: part.keeps_dead_groups)

    def shape(self, answers: int) -> Shape:
        """The tree of the first."""
        return self.parts[0].shape(answers)

    def mapped(self, group_T: Floats, step_T: Ints, credit_S: Floats) -> Floats:
        """Never asked: each credit maps its own steps (train/credit/credited.py)."""
        raise NotImplementedError("combined credits have no steps in common")

    def _any(self, declares: Callable[[StepCredit], bool]) -> bool:
        return any(map(declares, self.parts))


def _built(number: int, table: dict[str, Any]) -> StepCredit:
    """One of the credits; a mistake in its table is told with its place."""
    if not isinstance(table.get("type"), str):
        raise UserError(f"credit: of[{number}] needs `type = NAME`")
    try:
        part: StepCredit = instantiate("credit", table)
    except UserError as error:
        raise UserError(f"credit: of[{number}]: {error}") from None
    except ValueError as error:  # pydantic's own, several lines long
        raise UserError(f"credit: of[{number}] ({table['type']}): {' '.join(str(error).split())[:200]}") from None
    return part
