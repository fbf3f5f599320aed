"""A penalty on the memory: each protected skill's loss on remembered answers is added to what is trained.

    loss + coef Σ_s ℓ_s          ℓ_s from losses.py

The plain alternative to every projection on the same memory. `loss = "accepted"` with `rows` is on-policy replay as
SFT; `kl_full` is distillation from the anchor, without sampling noise.
"""

from __future__ import annotations

from dataclasses import dataclass

from rlvrlab.batch import batch_of
from rlvrlab.errors import UserError
from rlvrlab.randomness import generator
from rlvrlab.registry import register
from rlvrlab.train.guards.base import Gradient, Terms
from rlvrlab.train.guards.losses import RemembersLosses, SkillLoss, loss_metrics, slope
from rlvrlab.train.state import Kept, Moment
from rlvrlab.types import CountOrZero, Positive


@register("guard", "penalty")
@dataclass(frozen=True)
class Penalty(RemembersLosses):
    """The memory's loss, added with a coefficient."""

    coef: Positive = 1.0
    """Strength: what a skill's mean loss per remembered token counts against the loss that is trained."""
    fresh: CountOrZero = 0
    """For kl_full: problems of each skill, anywhere in its training problems, asked anew in every step."""

    def __post_init__(self) -> None:
        if self.fresh and self.loss != "kl_full":
            what = f"penalty: fresh = {self.fresh}: loss = {self.loss!r} needs stored answers"
            raise UserError(f'{what}, and new problems have none; set loss = "kl_full" or fresh = 0')

    def terms(self, now: Moment, kept: Kept, gradient: Gradient) -> Terms:
        """Gradients of the skills' losses."""
        stored = self.losses(now, kept)
        terms = Terms([], [], loss_metrics(stored) if stored else {})
        for one in stored:
            fresh = self._on_fresh(now, kept, one.skill)
            terms.vectors.extend(part.vector for part in (one, *fresh))
            # Stored and fresh prefixes count alike, so that `fresh` does not change the strength.
            terms.weights.extend([self.coef / (1 + len(fresh))] * (1 + len(fresh)))
            terms.metrics.update({f"guard/{one.skill}/fresh_loss": part.value for part in fresh})
        return terms

    def _on_fresh(self, now: Moment, kept: Kept, skill: str) -> list[SkillLoss]:
        """The loss on the current policy's own answers to problems drawn for this step."""
        pool = [problem for problem in now.train if problem.skill == skill] if self.fresh else []
        order = generator(*now.key("fresh problems", skill)).permutation(len(pool))[: self.fresh]
        asked = now.asked([pool[i] for i in order], "fresh", skill)
        rollouts = [rollout for rollout in asked if rollout.completion.tokens]
        if not rollouts:
            return []
        batch = batch_of([r.prompt_tokens for r in rollouts], [r.completion.tokens for r in rollouts], skill=skill)
        return [slope(now, kept, skill, batch, self.loss)]
