"""Offline DPO on pairs made by the verifier: better against worse answers of the policy that enters the phase.

The pairs are drawn once, judged, and kept in artifacts/dpo_pairs.jsonl; a resumed run reads them back. They may also
come from a file of preference rows (data/preferences.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from annotated_types import Ge, Lt

from rlvrlab.batch import TokenBatch, batch_of
from rlvrlab.data.hashes import prompt_sha256
from rlvrlab.data.preferences import Preference, read_preferences
from rlvrlab.envs.data_files import ENDINGS, is_data_file
from rlvrlab.errors import NothingToLearn, UserError
from rlvrlab.notes import timed
from rlvrlab.objectives.dpo import Dpo
from rlvrlab.randomness import generator
from rlvrlab.recipe import Recipe
from rlvrlab.record.files import read_lines, write_rows
from rlvrlab.registry import register
from rlvrlab.rollout.pairs import right_pairs, score_pairs
from rlvrlab.rollout.prompts import answer_tokens, prompt_tokens
from rlvrlab.rollout.trainable import why_not
from rlvrlab.train.lab import Lab, Supplies
from rlvrlab.train.phases.base import Draws, Phase, StepOutcome
from rlvrlab.train.state import Memory, State
from rlvrlab.train.update import descend, learning_rate, publish
from rlvrlab.types import Count, Fraction01, NonNegative, Positive, Rollout

PAIRS = "dpo_pairs.jsonl"
NO_PAIRS = {
    "right": "no problem got both right and wrong answers",
    "score": "no problem got answers whose scores differ enough",
}
"""How pairs are made of the policy's own answers -> what is said where there are none."""
Pair = dict[str, Any]
"""A row of that file: problem, prompt, chosen and rejected as tokens and as texts."""


@register("phase", "dpo")
@dataclass(frozen=True)
class DpoPhase(Phase):
    """Prefer verified right answers of the own policy to wrong ones."""

    steps: Count = 50
    """Updates."""
    batch_size: Count = 16
    """Pairs per update."""
    learning_rate: Positive = 0.005
    """Peak; [optimizer] shapes it."""
    problems: Count = 200
    """Training problems from which pairs are made, rollout.n answers each."""
    pairs_per_problem: Count = 2
    """At most this many pairs of distinct answers."""
    loss: Literal["sigmoid", "ipo", "hinge", "robust"] = "sigmoid"
    """Which preference loss."""
    beta: Positive = 0.2
    """How far from the reference."""
    label_smoothing: Annotated[float, Ge(0), Lt(0.5)] = 0.0
    """Assumed share of flipped labels (robust)."""
    sft_coef: NonNegative = 0.2
    """Weight of the chosen answers' likelihood, against both falling together."""
    pairs: str = "right"
    """right: right against wrong answers. score: more tests passed against fewer. Else a file of preference rows."""
    margin: Fraction01 = 0.0
    """Least difference of the two answers' scores: with tests, 0.5 leaves out near misses."""
    length_ratio: Annotated[float, Ge(1)] | None = None
    """Longest answer over shortest in a pair, at most; None pairs any, and then length may be what is learnt."""

    family: ClassVar[str] = "preference"
    rows_per_item: ClassVar[int] = 2
    health: ClassVar[tuple[str, ...]] = ("dpo/chosen_reward",)

    def __post_init__(self) -> None:
        if self.file and not is_data_file(self.pairs):
            raise ValueError(f"pairs = {self.pairs!r}: right, score, or a file ({', '.join(ENDINGS)})")

    @property
    def file(self) -> bool:
        """Do the pairs come from a file?"""
        return self.pairs not in NO_PAIRS

    def draws(self, recipe: Recipe, available: int) -> Draws:
        """All answers come before the first step; none where a file has the pairs."""
        return Draws() if self.file else Draws(before=min(self.problems, available) * recipe.rollout.n)

    def check_files(self, has: Supplies) -> None:
        """A file of pairs is read once before anything is trained: this phase may come after hours of others."""
        if self.file:
            self._read(has)

    def prepare(self, lab: Lab, artifacts: Path) -> list[Pair]:
        """Make the pairs, unless a run that is being resumed has them already."""
        path = artifacts / PAIRS
        if not path.exists() and self.file:
            write_rows(path, self._from_file(lab))
        elif not path.exists():
            asked = lab.problems_at("dpo", 0, min(self.problems, len(lab.train)))
            write_rows(path, self.own_pairs(lab.ask(asked, (lab.recipe.seed, "dpo"))))
        pairs = read_lines(path, answers=True)
        if not pairs:
            raise NothingToLearn(f"dpo: {NO_PAIRS[self.pairs]}; do SFT first or raise dpo.problems")
        return pairs

    def step(self, lab: Lab, data: list[Pair], state: State, memory: Memory) -> StepOutcome:
        """One batch of pairs, drawn by key."""
        draw = generator(lab.recipe.seed, "dpo", state.phase_step)
        chosen = draw.choice(len(data), min(self.batch_size, len(data)), replace=False)
        batch = pair_batch([data[i] for i in chosen])
        with timed("score"):
            batch = replace(batch, reference_BT=lab.engine.logprobs(batch, "reference")[0])
        objective = Dpo(loss=self.loss, beta=self.beta, label_smoothing=self.label_smoothing, sft_coef=self.sft_coef)
        settings = lab.recipe.optimizer
        rate = learning_rate(self.learning_rate, state.phase_step, self.steps, settings)
        applied = descend(lab.engine, batch, objective, rate, settings.max_grad_norm)
        publish(lab.engine)
        return StepOutcome(applied.metrics | {"dpo/pairs": float(len(data))}, memory, skipped=applied.skipped)

    def own_pairs(self, rollouts: Sequence[Rollout]) -> list[Pair]:
        """Pairs of distinct answers of the same group that differ as the settings ask."""
        rows = []
        for right, wrong in right_and_wrong(rollouts):
            scored = [(rollout.verdict.score, rollout) for rollout in (*right, *wrong)]
            found = score_pairs(scored, self.margin) if self.pairs == "score" else right_pairs(right, wrong)
            fit = [pair for pair in found if self._fits(*pair)]
            rows += [
                {
                    "problem": chosen.problem.id,
                    "prompt": list(chosen.prompt_tokens),
                    "chosen": list(chosen.completion.tokens),
                    "rejected": list(rejected.completion.tokens),
                    "chosen_text": chosen.completion.text,
                    "rejected_text": rejected.completion.text,
                }
                for chosen, rejected in fit[: self.pairs_per_problem]
            ]
        return rows

    def _from_file(self, lab: Lab) -> list[Pair]:
        tokenizer = lab.engine.tokenizer
        return [
            {
                "problem": one.problem,
                "prompt": list(prompt_tokens(tokenizer, one.prompt)),
                "chosen": list(answer_tokens(tokenizer, one.chosen)),
                "rejected": list(answer_tokens(tokenizer, one.rejected)),
                "chosen_text": one.chosen,
                "rejected_text": one.rejected,
            }
            for one in self._read(lab)
        ]

    def _read(self, has: Supplies) -> list[Preference]:
        path = has.resolved.folder / self.pairs
        if not path.is_file():
            remedy = "`rlvr data prepare RUN --as preference` makes one, and a path is relative to the recipe's folder"
            raise UserError(f"dpo.pairs: {path}: no such file; {remedy}")
        held_out = {prompt_sha256(p.prompt): f"a {p.role} problem of this run" for p in (*has.dev, *has.test)}
        return read_preferences(path, held_out)

    def _fits(self, chosen: Rollout, rejected: Rollout) -> bool:
        short, long = sorted((len(chosen.completion.tokens), len(rejected.completion.tokens)))
        close = self.length_ratio is None or long <= self.length_ratio * max(1, short)
        return close and chosen.verdict.score - rejected.verdict.score >= self.margin


def right_and_wrong(rollouts: Sequence[Rollout]) -> Iterator[tuple[list[Rollout], list[Rollout]]]:
    """Of each group, the distinct answers that may be imitated and the distinct ones that are plainly wrong."""
    for _, members in groupby(rollouts, key=lambda rollout: rollout.group_id):
        reasons = [(rollout, why_not(rollout)) for rollout in members]
        right = {r.completion.text: r for r, reason in reasons if reason is None}
        wrong = {r.completion.text: r for r, reason in reasons if reason == "wrong"}
        yield list(right.values()), list(wrong.values())


def pair_batch(pairs: Sequence[Pair]) -> TokenBatch:
    """Rows chosen, rejected, chosen, rejected, …"""
    prompts = [pair["prompt"] for pair in pairs for _ in range(2)]
    answers = [pair[side] for pair in pairs for side in ("chosen", "rejected")]
    index = np.repeat(np.arange(len(pairs)), 2)
    return batch_of(prompts, answers, pair_B=index, chosen_B=np.arange(len(answers)) % 2 == 0)
