"""SFT: maximum likelihood of right answers, the cold start that gives reinforcement learning something to reinforce.

`sft` takes the environment's references; `rft` (rejection sampling, expert iteration) the policy's own answers that
were judged right. Own answers are drawn once, kept in artifacts/rft_answers.jsonl as the very tokens that were sampled,
and read back by a resumed run.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from rlvrlab.batch import batch_of
from rlvrlab.errors import UserError
from rlvrlab.objectives.sft import Sft
from rlvrlab.randomness import generator
from rlvrlab.record.files import read_lines, write_rows
from rlvrlab.registry import register
from rlvrlab.rollout.collect import collect
from rlvrlab.rollout.render import answer_tokens, prompt_tokens
from rlvrlab.train.lab import Lab
from rlvrlab.train.phases.base import StepOutcome
from rlvrlab.train.schedule import learning_rate
from rlvrlab.train.update import update
from rlvrlab.types import Count, Positive

ANSWERS = "rft_answers.jsonl"
Example = dict[str, Any]
"""{"problem": id, "prompt": tokens, "answer": tokens}."""


@dataclass(frozen=True)
class _Imitation:
    """What both share: batches of stored answers."""

    steps: Count = 100
    """Updates."""
    batch_size: Count = 32
    """Answers per update."""
    learning_rate: Positive = 0.02
    """Peak; [optimizer] shapes it."""

    name: ClassVar[str]

    def step(self, lab: Lab, phase_step: int) -> StepOutcome:
        """One batch of answers, drawn by key."""
        examples: list[Example] = self._examples  # type: ignore[attr-defined]
        draw = generator(lab.recipe.seed, self.name, phase_step)
        chosen = [examples[i] for i in draw.choice(len(examples), self.batch_size, replace=True)]
        rate = learning_rate(self.learning_rate, phase_step, self.steps, lab.recipe.optimizer)
        return imitate(lab, chosen, rate)

    def _keep(self, examples: list[Example]) -> None:
        object.__setattr__(self, "_examples", examples)


@register("phase", "sft")
@dataclass(frozen=True)
class SftPhase(_Imitation):
    """Maximum likelihood of reference answers: the cold start."""

    references: Count = 64
    """How many of the training problems come with their reference answer."""

    def prepare(self, lab: Lab, artifacts: Path) -> None:
        """A phase without references would train on nothing."""
        tokenizer = lab.engine.tokenizer
        pairs = [(problem, lab.env.gold(problem)) for problem in lab.train[: self.references]]
        if all(gold is None for _, gold in pairs):
            raise UserError(f"sft: environment {lab.env.name!r} has no reference answers; leave the phase out")
        self._keep(
            [
                {
                    "problem": problem.id,
                    "prompt": prompt_tokens(tokenizer, problem.prompt),
                    "answer": answer_tokens(tokenizer, gold),
                }
                for problem, gold in pairs
                if gold is not None
            ]
        )


@register("phase", "more_sft")
@dataclass(frozen=True)
class MoreSft(SftPhase):
    """Control arm: what the time of a later phase would have bought as more SFT. The next phase starts before it."""

    control: ClassVar[bool] = True


@register("phase", "rft")
@dataclass(frozen=True)
class RftPhase(_Imitation):
    """Maximum likelihood of the policy's own answers that were judged right."""

    problems: Count = 200
    """Training problems that are tried, rollout.n answers each."""

    def prepare(self, lab: Lab, artifacts: Path) -> None:
        """Draw and judge the answers, unless a run that is being resumed has them already."""
        path = artifacts / ANSWERS
        if not path.exists():
            asked, key = lab.problems_at("rft", 0, min(self.problems, len(lab.train))), (lab.recipe.seed, "rft")
            n = lab.recipe.rollout.n
            rollouts = collect(lab.engine, lab.env, lab.reward, asked, n=n, sampling=lab.sampling, key=key)
            right = {(r.problem.id, r.completion.tokens): r for r in rollouts if r.verdict.correct is True}
            rows = [
                {"problem": r.problem.id, "prompt": list(r.prompt_tokens), "answer": list(r.completion.tokens)}
                for r in right.values()
            ]
            write_rows(path, rows)
        examples = read_lines(path)
        if not examples:
            raise UserError("rft: the policy solved none of the problems itself; do SFT first or raise rft.problems")
        self._keep(examples)


def imitate(lab: Lab, examples: list[Example], rate: float) -> StepOutcome:
    """One update towards these answers; also how repairs are learnt."""
    batch = batch_of(
        [example["prompt"] for example in examples],
        [example["answer"] for example in examples],
        horizon=lab.recipe.rollout.max_tokens,
    )
    applied = update(lab.engine, batch, Sft(), rate, lab.recipe.optimizer.max_grad_norm)
    lab.engine.publish()
    return StepOutcome(applied.metrics, skipped=applied.skipped)
