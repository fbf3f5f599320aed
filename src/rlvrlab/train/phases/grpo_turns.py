"""GRPO over two turns: failed tries are told what went wrong and tried again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rlvrlab.registry import register
from rlvrlab.rollout.turns import Context, try_again
from rlvrlab.train.lab import Lab
from rlvrlab.train.phases.grpo import Grpo
from rlvrlab.types import Rollout, Sampling


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
