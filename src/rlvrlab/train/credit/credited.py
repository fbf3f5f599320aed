"""Answers with the credit of their steps: what credit methods hand back, on the batch and in the record.

A run keeps the steps of each answer beside it in rollouts/step_N.jsonl:
    "steps": [{"start": 0, "end": 6, "kind": "statement", "credit": 0.25, "advantage": 1.1},
              {"start": 6, "end": 12, "kind": "statement", "credit": null, "advantage": 0.85, "examined": false}]
start, end   characters of the completion
credit       in units of reward; null: not known, because nobody asked (`examined` is there, and false) or because no
             altered answer ran and was judged
advantage    mean over the step's tokens as they were trained on, credit included; null: not trained on
Suffixes: B rows, T tokens, S steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, reduce
from typing import Any

import numpy as np

from rlvrlab.batch import Bools, Floats, Ints, TokenBatch
from rlvrlab.credit.base import Remembered, StepCredit
from rlvrlab.credit.steps import GLUE, Decode, step_of_tokens, token_spans
from rlvrlab.rollout.replay import Trajectory
from rlvrlab.rollout.segment import segment
from rlvrlab.rollout.segments import Segments
from rlvrlab.types import Rollout


@dataclass(frozen=True)
class Credited:
    """One answer's steps with their credit."""

    trajectory: Trajectory
    raw_S: Floats
    """In units of reward; NaN where nothing is known."""
    credit_S: Floats
    """Normalised."""
    examined_S: Bools
    """Was it asked what the step earned? Where it was and nothing is known, no altered answer ran or was judged."""

    @property
    def speaks(self) -> bool:
        """Does any step have credit other than 0?"""
        return bool(np.nan_to_num(self.credit_S).any())


@dataclass(frozen=True)
class StepCredits:
    """The credit of a collection; empty where the recipe has no [credit]."""

    plugin: StepCredit | None = None
    answers: dict[str, Credited] = field(default_factory=dict)
    """By rollout."""
    metrics: dict[str, float] = field(default_factory=dict)
    remembered: Remembered = field(default_factory=dict)
    """What the method knows of statements after this collection."""
    parts: tuple[StepCredits, ...] = ()
    """Of credits that work one after the other."""

    def speaking(self, dead: Sequence[Rollout]) -> list[Rollout]:
        """Rollouts of dead groups in which credit has something to say."""
        if self.parts:
            heard = {rollout.id for part in self.parts for rollout in part.speaking(dead)}
            return [rollout for rollout in dead if rollout.id in heard]
        if self.plugin is None or not self.plugin.keeps_dead_groups:
            return []
        spoken = {r.group_id for r in dead if r.id in self.answers and self.answers[r.id].speaks}
        return [r for r in dead if r.group_id in spoken]

    def on(self, batch: TokenBatch, rollouts: Sequence[Rollout]) -> TokenBatch:
        """The batch with the credit of its steps in its advantages."""
        if self.parts:
            return reduce(lambda credited, part: part.on(credited, rollouts), self.parts, batch)
        if self.plugin is None or not self.answers:
            return batch
        assert batch.advantage_BT is not None
        advantage_BT = batch.advantage_BT.copy()
        for row, rollout in enumerate(rollouts):
            one = self.answers.get(rollout.id)
            if one is not None:
                width = len(one.trajectory.step_T)
                group_T = batch.advantage_BT[row, :width]
                advantage_BT[row, :width] = self.plugin.mapped(group_T, one.trajectory.step_T, one.credit_S)
        return replace(batch, advantage_BT=np.where(batch.loss_BT, advantage_BT, 0.0))

    def rows(self, batch: TokenBatch | None = None, used: Sequence[Rollout] = ()) -> dict[str, list[dict[str, Any]]]:
        """Rows for the record by rollout; `batch` is what `used` were trained on, None where there was no update."""
        trained: dict[str, Floats] = {}
        if self.answers and batch is not None and batch.advantage_BT is not None:
            advantage_BT = np.where(batch.loss_BT, batch.advantage_BT, np.nan)
            trained = {rollout.id: advantage_BT[row] for row, rollout in enumerate(used)}
        return {name: _step_rows(one, trained.get(name)) for name, one in self.answers.items()}


def combined(plugin: StepCredit, parts: Sequence[StepCredits], remembered: Remembered) -> StepCredits:
    """Credits one after the other; where several know an answer, record and shared metrics tell of the last one."""
    answers = {name: one for part in parts for name, one in part.answers.items()}
    metrics = {key: value for part in parts for key, value in part.metrics.items()}
    learnt = [part.remembered for part in parts if part.plugin is not None and part.plugin.remembers]
    metrics["credit/unbiased"] = float(plugin.label == "unbiased")
    return StepCredits(plugin, answers, metrics, learnt[0] if learnt else remembered, tuple(parts))


def segmented(rollouts: Sequence[Rollout], segmentation: str, decode: Decode) -> Iterator[Trajectory]:
    """Steps and tokens of each answer; equal answers are looked at once, and single tokens are decoded once."""
    known: dict[tuple[tuple[int, ...], str], tuple[Segments, Ints]] = {}
    piece = cache(lambda token: decode((token,)))

    def remembering(tokens: Sequence[int]) -> str:
        return piece(tokens[0]) if len(tokens) == 1 else decode(tokens)

    for rollout in rollouts:
        tokens, text = answer = rollout.completion.tokens, rollout.completion.text
        if answer not in known:
            segments = segment(text, segmentation)
            known[answer] = segments, step_of_tokens(token_spans(text, tokens, remembering), segments.spans)
        yield Trajectory(rollout, *known[answer], ())


def worth(rollout: Rollout) -> float:
    """The reward of a judged answer."""
    assert rollout.reward is not None
    return rollout.reward.value


def metrics_of_steps(answers: Sequence[Credited]) -> dict[str, float]:
    """What is known of the steps of a collection."""
    raw = np.concatenate([one.raw_S for one in answers]) if answers else np.zeros(0)
    known = raw[~np.isnan(raw)]
    return {
        "credit/steps": len(raw) / max(1, len(answers)),
        "credit/known": len(known) / max(1, len(raw)),
        "credit/nonzero": float(np.mean(known != 0)) if len(known) else 0.0,
        "credit/mean_abs": float(np.abs(known).mean()) if len(known) else 0.0,
        "credit/unparsed": float(sum(one.trajectory.segments.broken for one in answers)),
    }


def _step_rows(one: Credited, advantage_T: Floats | None) -> list[dict[str, Any]]:
    """The steps of one answer for the record."""
    steps = zip(one.trajectory.segments.steps, one.raw_S, _means(one, advantage_T), one.examined_S, strict=True)
    return [
        {
            "start": step.span[0],
            "end": step.span[1],
            "kind": step.kind,
            "credit": _number(credit),
            "advantage": _number(mean),
            **({} if examined else {"examined": False}),
        }
        for step, credit, mean, examined in steps
    ]


def _means(one: Credited, advantage_T: Floats | None) -> Floats:
    """Mean advantage over the tokens of each step; NaN where none of them is trained on."""
    if advantage_T is None:
        return np.full(len(one.raw_S), np.nan)
    step_T = one.trajectory.step_T
    advantage_T = advantage_T[: len(step_T)]
    used_T = (step_T != GLUE) & ~np.isnan(advantage_T)
    count_S = np.bincount(step_T[used_T], minlength=len(one.raw_S))
    sum_S = np.bincount(step_T[used_T], advantage_T[used_T], minlength=len(one.raw_S))
    return np.where(count_S > 0, sum_S / np.maximum(count_S, 1), np.nan)


def _number(value: float) -> float | None:
    """Six decimals are plenty, and + 0.0 turns −0.0 into 0.0."""
    return round(float(value), 6) + 0.0 if np.isfinite(value) else None
