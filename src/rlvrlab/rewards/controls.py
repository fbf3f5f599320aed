"""Control arms: rewards that must not teach the task. A gain that they reproduce was not learnt from the verdict.

`random` pays by chance, `inverted` pays for the opposite, `constant` pays everyone the same (and so gives no signal
at all). Random rewards have lifted a base model on a contaminated benchmark by two thirds of what true rewards did
(arXiv 2506.10947), so run these beside any surprising result.
"""

from __future__ import annotations

from dataclasses import dataclass

from rlvrlab.randomness import generator
from rlvrlab.registry import register
from rlvrlab.rewards.total import Around, Control, judged, total
from rlvrlab.types import Completion, CountOrZero, Fraction01, Problem, Reward, Verdict


@register("reward", "random")
@dataclass(frozen=True)
class RandomReward(Control):
    """1 with a fixed chance, 0 otherwise."""

    chance: Fraction01 = 0.5
    """How often it pays."""
    seed: CountOrZero = 0
    """Another seed is another coin."""

    def __call__(self, problem: Problem, completion: Completion, verdict: Verdict) -> Reward:
        """Keyed by the rollout, so that a restart pays the same; equal answers to one problem share their luck."""
        judged(verdict)
        key = (self.seed, "random reward", problem.id, completion.policy_version, completion.tokens, completion.text)
        return total({"random": float(generator(*key).random() < self.chance)})


@register("reward", "inverted")
@dataclass(frozen=True)
class Inverted(Around, Control):
    """Another reward with its sign turned."""

    def __call__(self, problem: Problem, completion: Completion, verdict: Verdict) -> Reward:
        """The inner reward with every part negated."""
        judged(verdict)
        inner = self.inner(problem, completion, verdict)
        return total({name: -value for name, value in inner.parts.items()})


@register("reward", "constant")
@dataclass(frozen=True)
class Constant(Control):
    """The same for everyone."""

    value: float = 1.0
    """What everyone gets."""

    def __call__(self, problem: Problem, completion: Completion, verdict: Verdict) -> Reward:
        """The constant, whatever the verdict says."""
        judged(verdict)
        return total({"constant": self.value})
