"""GRPO, alone and over several turns, and REINFORCE; the step itself is train/step.py.

`grpo_turns` is multi-turn repair on-line: a failed try of each group is answered with the judge's feedback, and its
second tries form a group of their own. Trap: the failures of a good policy are mostly problems it cannot solve at all,
so groups of second tries are often dead; on small policies `repair` (learning from hindsight) wins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rlvrlab.registry import register
from rlvrlab.rollout.turns import Context, try_again
from rlvrlab.train.lab import Lab
from rlvrlab.train.phases.base import OnlinePhase
from rlvrlab.train.step import online_step
from rlvrlab.types import Rollout, Sampling


@register("phase", "grpo")
@dataclass(frozen=True)
class Grpo(OnlinePhase):
    """GRPO (arXiv 2402.03300): better or worse than the other answers to the same problem."""

    default_advantage: ClassVar[str] = "grpo"
    default_objective: ClassVar[str] = "ppo_clip"
    step = online_step


@register("phase", "grpo_turns")
@dataclass(frozen=True)
class GrpoTurns(Grpo):
    """GRPO over first tries and over second tries that answer the judge's feedback."""

    context: Context = "fresh"
    """fresh: feedback stands alone. conversation: it follows the tokens of the first turn."""

    tries: ClassVar[int] = 2

    def second_tries(self, lab: Lab, firsts: Sequence[Rollout], phase_step: int, sampling: Sampling) -> list[Rollout]:
        """The first failed answer of each group is told what went wrong and tried again rollout.n times."""
        failed = {rollout.group_id: rollout for rollout in reversed(firsts) if rollout.verdict.correct is False}
        tries, n, key = list(failed.values()), lab.recipe.rollout.n, (lab.recipe.seed, self.name, phase_step)
        return try_again(lab.engine, lab.env, lab.reward, tries, n=n, sampling=sampling, key=key, context=self.context)


@register("phase", "reinforce")
@dataclass(frozen=True)
class Reinforce(Grpo):
    """REINFORCE: the plain policy gradient with a leave-one-out baseline."""

    default_advantage: ClassVar[str] = "rloo"
    default_objective: ClassVar[str] = "reinforce"
