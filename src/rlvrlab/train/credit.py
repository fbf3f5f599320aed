"""Step credit in training: which steps, which replays, and what the tokens get. Switched on by a [credit] table.

judged rollouts -> steps -> plan -> replays (one call of the verifier) -> credit of steps -> advantages of tokens

The group's advantage is computed as ever; credit is mapped onto it afterwards. A group whose answers all earned the
same has no advantage, yet deleting a step may show what its answers are made of: such groups are kept when credit has
something to say. Whatever is not known (not examined, not judged, no longer running) leaves the token its group's
advantage, and is counted.

A run keeps the steps of each answer beside it in rollouts/step_N.jsonl:
    "steps": [{"start": 0, "end": 6, "kind": "statement", "credit": 0.25, "advantage": 1.1},
              {"start": 6, "end": 12, "kind": "statement", "credit": null, "advantage": 0.85, "examined": false}]
start, end   characters of the completion
credit       in units of reward; null: not known, because nobody asked (`examined` is there, and false) or because no
             altered answer ran and was judged
advantage    mean over the step's tokens as they were trained on, credit included; null: not trained on
Suffixes: B rows, T tokens, S steps, E edits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rlvrlab.batch import Bools, Floats, Ints, TokenBatch
from rlvrlab.credit.base import StepCredit
from rlvrlab.credit.edits import Replays, coalition
from rlvrlab.credit.estimators import step_groups
from rlvrlab.credit.steps import GLUE, Decode, step_of_tokens, token_spans
from rlvrlab.randomness import generator
from rlvrlab.rollout.replay import COUNTED, Replayer, Trajectory
from rlvrlab.rollout.segment import segment
from rlvrlab.rollout.segments import Segments
from rlvrlab.train.lab import Lab
from rlvrlab.types import Environment, RewardFunction, Rollout, Sampler, Sampling


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

    def speaking(self, dead: Sequence[Rollout]) -> list[Rollout]:
        """Rollouts of dead groups in which credit has something to say."""
        if self.plugin is None or not self.plugin.keeps_dead_groups:
            return []
        spoken = {r.group_id for r in dead if r.id in self.answers and self.answers[r.id].speaks}
        return [r for r in dead if r.group_id in spoken]

    def on(self, batch: TokenBatch, rollouts: Sequence[Rollout]) -> TokenBatch:
        """The batch with the credit of its steps in its advantages."""
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


def step_credits(lab: Lab, rollouts: Sequence[Rollout], sampling: Sampling) -> StepCredits:
    """Credit of every judged answer of a collection, or nothing where the recipe wants none."""
    if lab.credit is None:
        return StepCredits()
    return credit_of(lab.credit, rollouts, lab.env, lab.reward, lab.engine, sampling)


def credit_of(
    plugin: StepCredit,
    rollouts: Sequence[Rollout],
    env: Environment,
    reward: RewardFunction,
    sampler: Sampler,
    sampling: Sampling,
    *,
    cached: bool = True,
) -> StepCredits:
    """Segment, plan, replay, solve; `cached` is for tests, results do not depend on it."""
    replayer = Replayer(env, reward, sampler, sampling, plugin.samples, plugin.invalid, cached)
    judged = [(rollout, rollout.reward.value) for rollout in rollouts if rollout.reward is not None]
    least: dict[str, float] = {}
    for rollout, value in judged:
        least[rollout.group_id] = min(value, least.get(rollout.group_id, value))
    # The others keep their group's advantage; answers that began alike are compared whatever they earned.
    examined = [r for r, value in judged if not plugin.needs_replays or plugin.examines(value, least[r.group_id])]
    asked: list[Trajectory] = []
    plans: list[Replays | None] = []
    for one in _segmented(examined, plugin.segmentation, sampler.tokenizer.decode):
        steps, plan, edits = len(one.segments), None, ()
        if steps and plugin.needs_replays:  # keyed by the rollout: the same on any machine and after any restart
            plan = plugin.plan(steps, generator("credit", one.rollout.id))
            empty = (coalition(np.zeros(steps, dtype=bool)),) if plugin.wants_empty else ()
            edits = (*plan.edits, *empty)
        plans.append(plan)
        asked.append(one._replace(edits=edits))
    values = replayer.values(asked)
    raw = _solved(plugin, asked, plans, values)
    answers = {}
    for one, plan, raw_S, value_E in zip(asked, plans, raw, values, strict=True):
        if len(one.segments):
            assert one.rollout.reward is not None
            whole = one.rollout.reward.value
            above_empty = whole - float(value_E[-1]) if plugin.wants_empty and len(value_E) else float("nan")
            answers[one.rollout.id] = Credited(one, raw_S, plugin.normalised(raw_S, above_empty), _asked(raw_S, plan))
    metrics = {
        "credit/unbiased": float(plugin.label == "unbiased" and all(_is_one_token(one) for one in answers.values())),
        "credit/no_steps": float(len(examined) - len(answers)),
        "credit/examined": len(examined) / max(1, len(judged)),
        **_metrics(list(answers.values())),
        "credit/hit_rate": replayer.counts["cache_hits"] / max(1, replayer.counts["replays"]),
        **{f"credit/{name}": float(replayer.counts[name]) for name in COUNTED},
    }
    return StepCredits(plugin, answers, metrics)


def _segmented(rollouts: Sequence[Rollout], segmentation: str, decode: Decode) -> Iterator[Trajectory]:
    """Steps and tokens of each answer; equal answers are looked at once, and single tokens are decoded once."""
    known: dict[tuple[tuple[int, ...], str], tuple[Segments, Ints]] = {}
    pieces: dict[int, str] = {}

    def remembering(tokens: Sequence[int]) -> str:
        if len(tokens) != 1:
            return decode(tokens)
        if tokens[0] not in pieces:
            pieces[tokens[0]] = decode(tokens)
        return pieces[tokens[0]]

    for rollout in rollouts:
        tokens, text = answer = rollout.completion.tokens, rollout.completion.text
        if answer not in known:
            segments = segment(text, segmentation)
            known[answer] = segments, step_of_tokens(token_spans(text, tokens, remembering), segments.spans)
        yield Trajectory(rollout, *known[answer], ())


def _solved(
    plugin: StepCredit, asked: Sequence[Trajectory], plans: Sequence[Replays | None], values: Sequence[Floats]
) -> list[Floats]:
    """Credit in units of reward: from the replays' values, or from answers of a group that began alike."""
    reward_B = np.array([one.rollout.reward.value for one in asked if one.rollout.reward is not None])
    if not plugin.needs_replays:
        ids = {group: i for i, group in enumerate(dict.fromkeys(one.rollout.group_id for one in asked))}
        group_B = np.array([ids[one.rollout.group_id] for one in asked], dtype=np.int64)
        texts = [(one.rollout.completion.text, one.segments.steps) for one in asked]
        return step_groups([[text[: step.span[0]] for step in steps] for text, steps in texts], reward_B, group_B)
    return [
        np.zeros(0) if plan is None else plan.solve(value_E[: len(plan.edits)], float(whole)).credit_S
        for plan, value_E, whole in zip(plans, values, reward_B, strict=True)
    ]


def _asked(raw_S: Floats, plan: Replays | None) -> Bools:
    """Steps that were examined: their credit is known, or would be if every altered answer had a value."""
    known_S: Bools = ~np.isnan(raw_S)
    if plan is None or known_S.all():
        return np.ones(len(raw_S), dtype=bool)
    return known_S | ~np.isnan(plan.solve(np.zeros(len(plan.edits)), 0.0).credit_S)


def _is_one_token(one: Credited) -> bool:
    """Is every step a single token, with nothing but the end left over? Then no later token decides what a step is."""
    step_T = one.trajectory.step_T
    written = len(step_T) - (len(step_T) > 0 and step_T[-1] == GLUE)
    return bool(np.array_equal(step_T[:written], np.arange(len(one.raw_S))))


def _metrics(answers: Sequence[Credited]) -> dict[str, float]:
    raw = np.concatenate([one.raw_S for one in answers]) if answers else np.zeros(0)
    known = raw[~np.isnan(raw)]
    return {
        "credit/steps": len(raw) / max(1, len(answers)),
        "credit/known": len(known) / max(1, len(raw)),
        "credit/nonzero": float(np.mean(known != 0)) if len(known) else 0.0,
        "credit/mean_abs": float(np.abs(known).mean()) if len(known) else 0.0,
        "credit/unparsed": float(sum(one.trajectory.segments.broken for one in answers)),
    }


def step_rows(
    credits: StepCredits, batch: TokenBatch | None = None, used: Sequence[Rollout] = ()
) -> dict[str, list[dict[str, Any]]]:
    """Rows for the record by rollout; `batch` is what `used` were trained on, None where there was no update."""
    trained: dict[str, Floats] = {}
    if credits.answers and batch is not None and batch.advantage_BT is not None:
        advantage_BT = np.where(batch.loss_BT, batch.advantage_BT, np.nan)
        trained = {rollout.id: advantage_BT[row] for row, rollout in enumerate(used)}
    return {
        name: [
            {
                "start": step.span[0],
                "end": step.span[1],
                "kind": step.kind,
                "credit": _number(credit),
                "advantage": _number(mean),
                **({} if examined else {"examined": False}),
            }
            for step, credit, mean, examined in zip(
                one.trajectory.segments.steps, one.raw_S, _means(one, trained.get(name)), one.examined_S, strict=True
            )
        ]
        for name, one in credits.answers.items()
    }


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
