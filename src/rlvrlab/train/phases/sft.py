"""SFT: maximum likelihood of right answers, the cold start that gives reinforcement learning something to reinforce.

`sft` takes the environment's references; rft.py the policy's own answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from rlvrlab.batch import batch_of
from rlvrlab.envs.base import BaseEnvironment, ShowsTurns
from rlvrlab.errors import UserError
from rlvrlab.objectives.sft import Sft
from rlvrlab.randomness import generator
from rlvrlab.registry import register
from rlvrlab.rollout.prompts import answer_tokens, prompt_tokens
from rlvrlab.train.lab import Lab, Supplies
from rlvrlab.train.phases.base import Phase, StepOutcome
from rlvrlab.train.state import Memory, State
from rlvrlab.train.update import Applied, descend, learning_rate, publish
from rlvrlab.types import Count, Positive

Example = dict[str, Any]
"""{"problem": id, "prompt": tokens, "answer": tokens}."""


@dataclass(frozen=True)
class Imitation(Phase):
    """Batches of stored answers; what SFT and RFT share."""

    steps: Count = 100
    """Updates."""
    batch_size: Count = 32
    """Answers per update."""
    learning_rate: Positive = 0.02
    """Peak; [optimizer] shapes it."""

    health: ClassVar[tuple[str, ...]] = ("sft/nll",)

    def step(self, lab: Lab, data: list[Example], state: State, memory: Memory) -> StepOutcome:
        """One batch of answers, drawn by key."""
        draw = generator(lab.recipe.seed, self.name, state.phase_step)
        chosen = [data[i] for i in draw.choice(len(data), self.batch_size, replace=True)]
        rate = learning_rate(self.learning_rate, state.phase_step, self.steps, lab.recipe.optimizer)
        applied = imitate(lab, chosen, rate)
        return StepOutcome(applied.metrics, memory, skipped=applied.skipped)


@register("phase", "sft")
@dataclass(frozen=True)
class SftPhase(Imitation):
    """Maximum likelihood of reference answers: the cold start."""

    trains_turns: ClassVar[bool] = True

    references: Count = 64
    """How many of the training problems come with their reference answer."""

    def check(self, has: Supplies) -> None:
        """Refuse an environment without reference answers: there would be nothing to train on."""
        shown = isinstance(has.env, ShowsTurns)
        if shown or any(has.env.gold(problem) is not None for problem in has.train[: self.references]):
            return
        own = has.env.gold_remedy if isinstance(has.env, BaseEnvironment) else BaseEnvironment.gold_remedy
        raise UserError(f"{self.name}: environment {has.env.name!r} has no reference answers; {own}")

    def prepare(self, lab: Lab, artifacts: Path) -> list[Example]:
        """The references as tokens."""
        self.check(lab)
        tokenizer = lab.engine.tokenizer
        if isinstance(lab.env, ShowsTurns):
            from rlvrlab.rollout.episodes import demonstrations

            return demonstrations(lab.env, lab.train[: self.references], tokenizer)
        golds = [(problem, lab.env.gold(problem)) for problem in lab.train[: self.references]]
        return [
            {
                "problem": problem.id,
                "prompt": prompt_tokens(tokenizer, problem.prompt),
                "answer": answer_tokens(tokenizer, gold),
            }
            for problem, gold in golds
            if gold is not None
        ]


@register("phase", "more_sft")
@dataclass(frozen=True)
class MoreSft(SftPhase):
    """Control arm: what the time of a later phase would have bought as more SFT. The next phase starts before it."""

    control: ClassVar[bool] = True


def imitate(lab: Lab, examples: list[Example], rate: float) -> Applied:
    """One update towards these answers; also how repairs are learnt."""
    prompts, answers = ([example[part] for example in examples] for part in ("prompt", "answer"))
    batch = batch_of(prompts, answers, horizon=lab.recipe.rollout.max_tokens)
    applied = descend(lab.engine, batch, Sft(), rate, lab.recipe.optimizer.max_grad_norm)
    publish(lab.engine)
    return applied
