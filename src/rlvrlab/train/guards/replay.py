"""Replay: a share of every batch is problems of protected skills, trained on-line like the rest."""

from __future__ import annotations

from dataclasses import dataclass

from rlvrlab.randomness import generator
from rlvrlab.registry import register
from rlvrlab.train.guards.bank import Bank
from rlvrlab.train.guards.base import Guard, Moment
from rlvrlab.types import Count, Fraction01, Problem


@register("guard", "replay")
@dataclass(frozen=True)
class Replay:
    """Rehearse remembered problems."""

    share: Fraction01 = 0.25
    """Of each batch's problems; the batch keeps its size."""
    protected: tuple[str, ...] = ()
    """Skills to protect when they are not trained; empty protects those of earlier stages."""
    memory_per_skill: Count = 32
    """Problems remembered of each skill."""
    memory_total: Count = 256
    """For all skills together."""

    def build(self) -> Guard:
        """The rehearsal."""
        return Rehearsal(self)


class Rehearsal(Guard):
    """Needs no state: the remembered problems are a function of the seed."""

    def __init__(self, table: Replay) -> None:
        super().__init__()
        self._share = table.share
        self._bank = Bank({}, table.memory_per_skill, table.memory_total)

    def begin(self, now: Moment) -> None:
        """Say whom there is no room for."""
        for skill in now.protected:
            if not self._bank.problems(now.lab, skill):
                now.say(f"replay: no room in the memory for skill {skill!r}; it is not protected")

    def mixed_in(self, now: Moment, chosen: list[Problem], stream: str) -> list[Problem]:
        """Replace the last ones of the batch."""
        pool = [problem for skill in now.protected for problem in self._bank.problems(now.lab, skill)]
        count = min(len(pool), round(self._share * len(chosen)))
        if not count:
            return chosen
        order = generator(*now.key("replay", stream)).permutation(len(pool))[:count]
        return chosen[: len(chosen) - count] + [pool[i] for i in order]
