"""Which few problems stand for a skill when it is no longer trained, and which answers are kept for them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, zip_longest

from rlvrlab.randomness import shuffled
from rlvrlab.types import Problem


def quotas(skills: Sequence[str], per_skill: int, total: int) -> dict[str, int]:
    """Problems each skill may keep: at most `per_skill`, at most `total` together.

    Where there are more skills than room, the first ones get one problem each and the rest none.
    """
    room = max(0, total)
    share, extra = divmod(room, len(skills)) if skills else (0, 0)
    return {skill: min(per_skill, share + (i < extra)) for i, skill in enumerate(skills)}


def stratified(problems: Sequence[Problem], size: int, *key: object) -> list[Problem]:
    """`size` problems, spread evenly over levels; keyed, and a smaller choice is the beginning of a larger one."""
    strata: dict[str, list[Problem]] = {}
    for problem in sorted(problems, key=lambda p: p.id):
        strata.setdefault(str(problem.meta.get("level", "")), []).append(problem)
    mixed = [shuffled(members, *key, "memory", level) for level, members in sorted(strata.items())]
    in_turn = chain.from_iterable(zip_longest(*mixed))
    return [problem for problem in in_turn if problem is not None][:size]
