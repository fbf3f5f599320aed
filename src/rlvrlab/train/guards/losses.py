"""What a remembered skill is held by, as a loss on its memory.

    likelihood   mean −log p of the latest right answers of training; only problems without one are asked again
    accepted     mean −log p of the anchor's own right answers, as often as they were drawn: on-policy replay as SFT
    kl           mean −log p of the anchor's own answers, right or wrong: KL(anchor ‖ policy) + constant, by samples
    kl_full      mean KL(anchor ‖ policy) over the whole vocabulary after the prefixes of these answers

All are means over tokens. kl_full and its gradient are exactly 0 at the anchor; those of kl only up to sampling noise.
The anchor is the policy with which the stage began that no longer trains the skill.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

from rlvrlab.batch import TokenBatch
from rlvrlab.engines.base import Vector
from rlvrlab.objectives.sft import Sft
from rlvrlab.train.guards.memory import (
    KEPT_ANSWERS,
    RemembersSkills,
    anchor,
    anchored,
    answers_batch,
    refilled,
    remembered,
    sampled,
    some,
    with_answers,
    without_anchors,
)
from rlvrlab.train.state import Kept, Moment
from rlvrlab.types import CountOrZero, Rollout

MemoryLoss = Literal["likelihood", "accepted", "kl", "kl_full"]
FORWARD = 1 / 3
"""A forward pass, as a share of a forward and backward pass."""


class SkillLoss(NamedTuple):
    """The loss on one skill's memory."""

    skill: str
    vector: Vector
    value: float


def recalled(now: Moment, kept: Kept, skill: str, loss: MemoryLoss) -> Kept:
    """`kept` with the answers, and where it needs them the parameters, that a skill is held by from now on."""
    if loss == "likelihood":
        kept, asked = refilled(now, kept, skill)
        if asked:
            now.say(f"guard: {asked} answers were drawn to fill the memory of skill {skill!r}")
        return kept
    kept = sampled(now, kept, skill, only_right=loss == "accepted")
    return anchored(now, kept, skill) if loss == "kl_full" else kept


def slope(now: Moment, kept: Kept, skill: str, batch: TokenBatch, loss: MemoryLoss) -> SkillLoss:
    """Gradient and value of a loss on answers to the skill's problems."""
    if loss == "kl_full":
        assert now.anchor_kl is not None, "refused where distributions cannot be had"
        return SkillLoss(skill, *now.anchor_kl(batch, anchor(kept, skill)))
    vector, value, _ = now.engine.gradient(batch, Sft())
    return SkillLoss(skill, vector, value)


def why_unprotected(kept: Kept, skill: str) -> str:
    """Why there is nothing a skill could be held by."""
    why = "its memory holds no verified answer" if remembered(kept, skill) else "there is no room for it in the memory"
    return f"skill {skill!r} is not protected: {why}; raise memory_total or train it longer"


@dataclass(frozen=True)
class RemembersLosses(RemembersSkills):
    """A guard with a loss on the memory of each skill; what it does with the gradients is its own."""

    loss: MemoryLoss = "likelihood"
    """On stored right answers, the anchor's accepted ones (replay as SFT), by samples of kl, or exactly (kl_full)."""
    rows: CountOrZero = 0
    """Remembered answers of each skill used in one update, drawn anew in every step; 0 takes all."""

    needs_answers: ClassVar[bool] = True

    @property
    def needs_sampling(self) -> bool:
        """False for likelihood: answers of training are stored, and references can replace them."""
        return self.loss != "likelihood"

    @property
    def needs_distributions(self) -> bool:
        """The exact KL compares them."""
        return self.loss == "kl_full"

    @property
    def passes(self) -> float:
        """One, and another forward pass for the anchor's distributions."""
        return 1.0 + (FORWARD if self.needs_distributions else 0.0)

    def begin(self, now: Moment, kept: Kept) -> Kept:
        """Fill the memory of what is newly protected; what is trained again is let go."""
        kept = without_anchors(self.with_problems(now, kept), now.stage.skills)
        held = [skill for skill in kept.memory.get("held", []) if skill not in now.stage.skills]
        for skill in now.protected:
            if skill in held:
                continue
            kept = recalled(now, kept, skill, self.loss)
            if answers_batch(kept, skill) is None:
                now.say(f"{self.name}: {why_unprotected(kept, skill)}")
                kept = without_anchors(kept, [skill])
            else:
                held.append(skill)
        return kept._replace(memory={**kept.memory, "held": held})

    def observe(self, now: Moment, kept: Kept, rollouts: Sequence[Rollout]) -> Kept:
        """Right answers of the skill being trained are what it will be remembered by."""
        if self.loss != "likelihood":
            return kept
        held = kept.memory.get("held", [])
        fresh = [rollout for rollout in rollouts if rollout.problem.skill not in held]
        return with_answers(self.with_problems(now, kept), fresh, KEPT_ANSWERS)

    def losses(self, now: Moment, kept: Kept) -> list[SkillLoss]:
        """The loss of every protected skill on its memory, or on the part of it that this step draws."""
        found = []
        for skill in (skill for skill in now.protected if skill in kept.memory.get("held", [])):
            batch = answers_batch(kept, skill)
            assert batch is not None
            found.append(slope(now, kept, skill, some(batch, self.rows, *now.key("rows", skill)), self.loss))
        return found


def loss_metrics(found: Sequence[SkillLoss]) -> dict[str, float]:
    """`guard/<skill>/loss`, and how many skills are held."""
    return {f"guard/{one.skill}/loss": one.value for one in found} | {"guard/protected": float(len(found))}
