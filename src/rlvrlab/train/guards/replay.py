"""Replay: a share of every batch is problems of protected skills, trained on-line like the rest."""

from __future__ import annotations

from dataclasses import dataclass

from rlvrlab.randomness import generator
from rlvrlab.registry import register
from rlvrlab.train.guards.memory import RemembersSkills, remembered
from rlvrlab.train.state import Kept, Moment, Place
from rlvrlab.types import Fraction01, Problem


@register("guard", "replay")
@dataclass(frozen=True)
class Replay(RemembersSkills):
    """Rehearse remembered problems."""

    share: Fraction01 = 0.25
    """Of each batch's problems; the batch keeps its size."""

    def begin(self, now: Moment, kept: Kept) -> Kept:
        """Report the protected skills that the memory has no room for."""
        kept = self.with_problems(now, kept)
        for skill in now.protected:
            if not remembered(kept, skill):
                now.say(f"replay: no room in the memory for skill {skill!r}; it is not protected")
        return kept

    def mixed_in(self, place: Place, chosen: list[Problem], stream: str) -> list[Problem]:
        """Replace the last problems of the batch by remembered ones."""
        problems = self.problems(place.train, place.seed)
        pool = [problem for skill in place.protected for problem in problems.get(skill, [])]
        count = min(len(pool), round(self.share * len(chosen)))
        if not count:
            return chosen
        order = generator(*place.key("replay", stream)).permutation(len(pool))[:count]
        return chosen[: len(chosen) - count] + [pool[i] for i in order]
