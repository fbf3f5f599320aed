"""GRPO, alone and over several turns, and REINFORCE; the step itself is train/step.py.

`grpo_turns` is multi-turn repair on-line: a failed try of each group is answered with the judge's feedback, and its
second tries form a group of their own. Trap: the failures of a good policy are mostly problems it cannot solve at all,
so groups of second tries are often dead; on small policies `repair` (learning from hindsight) wins.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rlvrlab.registry import register
from rlvrlab.train.phases.base import OnlinePhase
from rlvrlab.train.step import online_step


@register("phase", "grpo")
@dataclass(frozen=True)
class Grpo(OnlinePhase):
    """GRPO (arXiv 2402.03300): better or worse than the other answers to the same problem."""

    default_advantage: ClassVar[str] = "grpo"
    default_objective: ClassVar[str] = "ppo_clip"
    step = online_step


@register("phase", "reinforce")
@dataclass(frozen=True)
class Reinforce(Grpo):
    """REINFORCE: the plain policy gradient with a leave-one-out baseline."""

    default_advantage: ClassVar[str] = "rloo"
    default_objective: ClassVar[str] = "reinforce"
