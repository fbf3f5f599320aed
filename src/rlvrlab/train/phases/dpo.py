"""Offline DPO on pairs made by the verifier: right against wrong answers of the policy that enters the phase.

The pairs are drawn once, judged, and kept in artifacts/dpo_pairs.jsonl; a resumed run reads them back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby, product
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from annotated_types import Ge

from rlvrlab.batch import TokenBatch, batch_of
from rlvrlab.errors import UserError
from rlvrlab.objectives.dpo import Dpo
from rlvrlab.randomness import generator
from rlvrlab.record.files import read_lines, write_rows
from rlvrlab.registry import register
from rlvrlab.rollout.collect import collect
from rlvrlab.train.lab import Lab
from rlvrlab.train.phases.base import StepOutcome
from rlvrlab.train.schedule import learning_rate
from rlvrlab.train.update import update
from rlvrlab.types import Count, Fraction01, NonNegative, Positive, Rollout

PAIRS = "dpo_pairs.jsonl"


@register("phase", "dpo")
@dataclass(frozen=True)
class DpoPhase:
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
    label_smoothing: NonNegative = 0.0
    """Assumed share of flipped labels (robust)."""
    sft_coef: NonNegative = 0.2
    """Weight of the chosen answers' likelihood, against both falling together."""
    margin: Fraction01 = 0.0
    """Least difference of the two answers' scores: with tests, 0.5 leaves out near misses."""
    length_ratio: Annotated[float, Ge(1)] | None = None
    """Longest answer over shortest in a pair, at most; None pairs any, and then length may be what is learnt."""

    def prepare(self, lab: Lab, artifacts: Path) -> None:
        """Make the pairs, unless a run that is being resumed has them already."""
        path = artifacts / PAIRS
        if not path.exists():
            chosen = lab.problems_at("dpo", 0, min(self.problems, len(lab.train)))
            key = (lab.recipe.seed, "dpo")
            n = lab.recipe.rollout.n
            rollouts = collect(lab.engine, lab.env, lab.reward, chosen, n=n, sampling=lab.sampling, key=key)
            write_rows(path, self.pairs(rollouts))
        pairs = read_lines(path)
        if not pairs:
            raise UserError("dpo: no problem got both right and wrong answers; do SFT first or raise dpo.problems")
        object.__setattr__(self, "_pairs", pairs)

    def step(self, lab: Lab, phase_step: int) -> StepOutcome:
        """One batch of pairs, drawn by key."""
        pairs: list[dict[str, Any]] = self._pairs  # type: ignore[attr-defined]
        draw = generator(lab.recipe.seed, "dpo", phase_step)
        size = min(self.batch_size, len(pairs))
        batch = pair_batch([pairs[i] for i in draw.choice(len(pairs), size, replace=False)])
        batch = replace(batch, reference_BT=lab.engine.logprobs(batch, "reference")[0])
        objective = Dpo(loss=self.loss, beta=self.beta, label_smoothing=self.label_smoothing, sft_coef=self.sft_coef)
        settings = lab.recipe.optimizer
        rate = learning_rate(self.learning_rate, phase_step, self.steps, settings)
        applied = update(lab.engine, batch, objective, rate, settings.max_grad_norm)
        lab.engine.publish()
        return StepOutcome(applied.metrics | {"dpo/pairs": float(len(pairs))}, skipped=applied.skipped)

    def pairs(self, rollouts: Sequence[Rollout]) -> list[dict[str, Any]]:
        """Distinct right answers against distinct wrong ones of the same group that differ as the settings ask."""
        rows = []
        for _, members in groupby(rollouts, key=lambda rollout: rollout.group_id):
            group = list(members)
            right = list({r.completion.text: r for r in group if r.verdict.correct is True}.values())
            wrong = list({r.completion.text: r for r in group if r.verdict.correct is False}.values())
            # Diagonals first: every answer appears once before one appears twice.
            order = sorted(product(range(len(right)), range(len(wrong))), key=lambda ij: (abs(ij[0] - ij[1]), ij))
            fit = [(right[i], wrong[j]) for i, j in order if self._fits(right[i], wrong[j])]
            rows += [_row(chosen, rejected) for chosen, rejected in fit[: self.pairs_per_problem]]
        return rows

    def _fits(self, chosen: Rollout, rejected: Rollout) -> bool:
        short, long = sorted((len(chosen.completion.tokens), len(rejected.completion.tokens)))
        close = self.length_ratio is None or long <= self.length_ratio * max(1, short)
        return close and chosen.verdict.score - rejected.verdict.score >= self.margin


def _row(chosen: Rollout, rejected: Rollout) -> dict[str, Any]:
    return {
        "problem": chosen.problem.id,
        "prompt": list(chosen.prompt_tokens),
        "chosen": list(chosen.completion.tokens),
        "rejected": list(rejected.completion.tokens),
        "chosen_text": chosen.completion.text,
        "rejected_text": rejected.completion.text,
    }


def pair_batch(pairs: Sequence[dict[str, Any]]) -> TokenBatch:
    """Rows chosen, rejected, chosen, rejected, …"""
    prompts = [pair["prompt"] for pair in pairs for _ in range(2)]
    answers = [pair[side] for pair in pairs for side in ("chosen", "rejected")]
    index = np.repeat(np.arange(len(pairs)), 2)
    return batch_of(prompts, answers, pair_B=index, chosen_B=np.arange(len(answers)) % 2 == 0)
