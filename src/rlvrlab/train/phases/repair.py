"""Multi-turn repair: learn to mend an own failed answer from the judge's feedback.

`repair` learns from hindsight: where a problem's answers are mixed, each refused one is a first turn and an accepted
one of the SAME group is what the second turn should have said. Half of each batch rehearses accepted first turns, so
that mending is not paid for with first tries. Pairs are drawn once and kept in artifacts/repair_pairs.jsonl.
`grpo_turns` is the on-line form. Report the blind-resample control beside recovery_rate (evals/recovery.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from rlvrlab.errors import NothingToLearn
from rlvrlab.randomness import generator
from rlvrlab.recipe import Recipe
from rlvrlab.record.files import read_lines, write_rows
from rlvrlab.registry import register
from rlvrlab.rollout.trainable import usable
from rlvrlab.rollout.turns import Context, second_prompts
from rlvrlab.train.lab import Lab
from rlvrlab.train.phases.base import Draws, Phase, StepOutcome
from rlvrlab.train.phases.dpo import right_and_wrong
from rlvrlab.train.phases.sft import Example, imitate
from rlvrlab.train.state import Memory, State
from rlvrlab.train.update import learning_rate
from rlvrlab.types import Count, Fraction01, Positive, Rollout

PAIRS = "repair_pairs.jsonl"
Turns = dict[int, list[Example]]
"""First turns (0) to rehearse and second turns (1) to learn."""


@register("phase", "repair")
@dataclass(frozen=True)
class RepairPhase(Phase):
    """Second turns learnt from hindsight: what another answer to the same problem got right."""

    steps: Count = 120
    """Updates."""
    batch_size: Count = 32
    """Turns per update."""
    learning_rate: Positive = 0.005
    """Peak; [optimizer] shapes it."""
    problems: Count = 500
    """Training problems from which pairs are made, rollout.n answers each."""
    pairs_per_problem: Count = 4
    """At most this many distinct refused answers of one problem become first turns."""
    rehearsal: Fraction01 = 0.5
    """Share of a batch that repeats accepted first turns."""
    context: Context = "fresh"
    """fresh: feedback stands alone. conversation: it follows the tokens of the first turn."""

    tries: ClassVar[int] = 2
    health: ClassVar[tuple[str, ...]] = ("sft/nll",)

    def draws(self, recipe: Recipe, available: int) -> Draws:
        """All answers come before the first step."""
        return Draws(before=min(self.problems, available) * recipe.rollout.n)

    def prepare(self, lab: Lab, artifacts: Path) -> Turns:
        """Make the pairs, unless a run that is being resumed has them already."""
        path = artifacts / PAIRS
        if not path.exists():
            write_rows(path, self._pairs(lab))
        rows = read_lines(path, answers=True)
        turns = {turn: [row for row in rows if row["turn"] == turn] for turn in (0, 1)}
        if not turns[1]:
            words = "no problem got both right and wrong answers; train first or raise repair.problems"
            raise NothingToLearn(f"repair: {words}")
        return turns

    def step(self, lab: Lab, data: Turns, state: State, memory: Memory) -> StepOutcome:
        """Some repairs, some first turns, drawn by key."""
        draw = generator(lab.recipe.seed, "repair", state.phase_step)
        rehearsed = round(self.rehearsal * self.batch_size)
        sizes = {0: rehearsed, 1: self.batch_size - rehearsed}
        chosen = [data[t][i] for t, size in sizes.items() for i in draw.choice(len(data[t]), size, replace=True)]
        rate = learning_rate(self.learning_rate, state.phase_step, self.steps, lab.recipe.optimizer)
        applied = imitate(lab, chosen, rate)
        metrics = applied.metrics | {"repair/pairs": float(len(data[1]))}
        return StepOutcome(metrics, memory, skipped=applied.skipped)

    def _pairs(self, lab: Lab) -> list[Example]:
        asked = lab.problems_at("repair", 0, min(self.problems, len(lab.train)))
        rollouts = lab.ask(asked, (lab.recipe.seed, "repair"))
        pairs = hindsight(rollouts, self.pairs_per_problem)
        seconds = second_prompts(lab.engine, lab.env, [wrong for wrong, _ in pairs], self.context)
        rows = [
            _row(1, right, tokens, previous=wrong.completion.text, asked=text)
            for (wrong, right), (text, tokens) in zip(pairs, seconds, strict=True)
        ]
        firsts = {(r.problem.id, r.completion.tokens): r for r in rollouts if usable(r)}
        return rows + [_row(0, r, r.prompt_tokens) for r in firsts.values()]


def hindsight(rollouts: Sequence[Rollout], per_problem: int) -> list[tuple[Rollout, Rollout]]:
    """(refused, accepted) of one group, distinct refused answers, accepted ones in turn."""
    return [
        (bad, right[i % len(right)])
        for right, wrong in right_and_wrong(rollouts)
        if right
        for i, bad in enumerate(wrong[:per_problem])
    ]


def _row(turn: int, answer: Rollout, prompt: Sequence[int], **texts: str) -> Example:
    tokens = {"prompt": list(prompt), "answer": list(answer.completion.tokens)}
    return {"turn": turn, "problem": answer.problem.id, **tokens, "text": answer.completion.text, **texts}
