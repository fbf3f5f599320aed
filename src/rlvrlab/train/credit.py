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

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rlvrlab.batch import Bools, Floats, Ints, TokenBatch
from rlvrlab.credit.base import StepCredit
from rlvrlab.credit.edits import Edit, Replays, coalition
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


def step_credits(lab: Lab, rollouts: Sequence[Rollout]) -> StepCredits:
    """Credit of every judged answer of a collection, or nothing where the recipe wants none."""
    if lab.credit is None:
        return StepCredits()
    return credit_of(lab.credit, rollouts, lab.env, lab.reward, lab.engine, lab.sampling)


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
    judged = [rollout for rollout in rollouts if rollout.reward is not None]
    examined = _examined(plugin, judged)
    found = _segmented(examined, plugin, _remembering(sampler.tokenizer.decode))
    plans = [_plan(plugin, one) for one in found]
    asked = [one._replace(edits=_edits(plugin, one, plan)) for one, plan in zip(found, plans, strict=True)]
    values = replayer.values(asked)
    raw = _solved(plugin, asked, plans, values)
    answers = {
        one.rollout.id: Credited(
            one, raw_S, plugin.normalised(raw_S, _total(plugin, one, value_E)), _asked(raw_S, plan)
        )
        for one, raw_S, value_E, plan in zip(asked, raw, values, plans, strict=True)
        if len(one.segments)
    }
    metrics = _metrics(plugin, answers, replayer.counts, len(examined))
    return StepCredits(plugin, answers, {**metrics, "credit/examined": len(examined) / max(1, len(judged))})


def _remembering(decode: Decode) -> Decode:
    """Single tokens are decoded once: a collection has many tokens of few kinds."""
    pieces: dict[int, str] = {}

    def decoded(tokens: Sequence[int]) -> str:
        if len(tokens) != 1:
            return decode(tokens)
        if tokens[0] not in pieces:
            pieces[tokens[0]] = decode(tokens)
        return pieces[tokens[0]]

    return decoded


def _examined(plugin: StepCredit, judged: list[Rollout]) -> list[Rollout]:
    """The others keep their group's advantage; answers that began alike are compared whatever they earned."""
    if not plugin.needs_replays:
        return judged
    earned = [(rollout, rollout.reward.value) for rollout in judged if rollout.reward is not None]
    least: dict[str, float] = {}
    for rollout, value in earned:
        least[rollout.group_id] = min(value, least.get(rollout.group_id, value))
    return [rollout for rollout, value in earned if plugin.examines(value, least[rollout.group_id])]


def _segmented(rollouts: Sequence[Rollout], plugin: StepCredit, decode: Decode) -> list[Trajectory]:
    """Steps and tokens of each answer; equal answers are looked at once."""
    known: dict[tuple[tuple[int, ...], str], tuple[Segments, Ints]] = {}
    found = []
    for rollout in rollouts:
        tokens, text = answer = rollout.completion.tokens, rollout.completion.text
        if answer not in known:
            segments = segment(text, plugin.segmentation)
            known[answer] = segments, step_of_tokens(token_spans(text, tokens, decode), segments.spans)
        found.append(Trajectory(rollout, *known[answer], ()))
    return found


def _plan(plugin: StepCredit, one: Trajectory) -> Replays | None:
    """Keyed by the rollout, so that it is the same on any machine and after any restart."""
    if not len(one.segments) or not plugin.needs_replays:
        return None
    return plugin.plan(len(one.segments), generator("credit", one.rollout.id))


def _edits(plugin: StepCredit, one: Trajectory, plan: Replays | None) -> tuple[Edit, ...]:
    if plan is None:
        return ()
    empty = coalition(np.zeros(len(one.segments), dtype=bool))
    return (*plan.edits, empty) if plugin.wants_empty else plan.edits


def _total(plugin: StepCredit, one: Trajectory, value_E: Floats) -> float:
    """What the whole answer earned above the empty one."""
    assert one.rollout.reward is not None
    return one.rollout.reward.value - float(value_E[-1]) if plugin.wants_empty and len(value_E) else float("nan")


def _solved(
    plugin: StepCredit, asked: Sequence[Trajectory], plans: Sequence[Replays | None], values: Sequence[Floats]
) -> list[Floats]:
    reward_B = np.array([one.rollout.reward.value for one in asked if one.rollout.reward is not None])
    if not plugin.needs_replays:
        ids = {group: i for i, group in enumerate(dict.fromkeys(one.rollout.group_id for one in asked))}
        group_B = np.array([ids[one.rollout.group_id] for one in asked], dtype=np.int64)
        return step_groups([_places(one) for one in asked], reward_B, group_B)
    return [
        np.zeros(0) if plan is None else plan.solve(value_E[: len(plan.edits)], float(whole)).credit_S
        for plan, value_E, whole in zip(plans, values, reward_B, strict=True)
    ]


def _asked(raw_S: Floats, plan: Replays | None) -> Bools:
    """The steps of which something would be known had every altered answer got a value."""
    known_S: Bools = ~np.isnan(raw_S)
    if plan is None or known_S.all():
        return np.ones(len(raw_S), dtype=bool)
    return known_S | ~np.isnan(plan.solve(np.zeros(len(plan.edits)), 0.0).credit_S)


def _places(one: Trajectory) -> list[str]:
    """Where each step was taken: the text before it."""
    return [one.rollout.completion.text[: step.span[0]] for step in one.segments.steps]


def _metrics(plugin: StepCredit, answers: dict[str, Credited], counts: Counter[str], examined: int) -> dict[str, float]:
    raw = np.concatenate([one.raw_S for one in answers.values()]) if answers else np.zeros(0)
    known = raw[~np.isnan(raw)]
    whole = Counter({name: counts[name] for name in COUNTED})
    return {
        "credit/unbiased": float(plugin.label == "unbiased"),
        "credit/steps": len(raw) / max(1, len(answers)),
        "credit/known": len(known) / max(1, len(raw)),
        "credit/nonzero": float(np.mean(known != 0)) if len(known) else 0.0,
        "credit/mean_abs": float(np.abs(known).mean()) if len(known) else 0.0,
        "credit/no_steps": float(examined - len(answers)),
        "credit/unparsed": float(sum(one.trajectory.segments.broken for one in answers.values())),
        "credit/hit_rate": whole["cache_hits"] / max(1, whole["replays"]),
        **{f"credit/{name}": float(whole[name]) for name in COUNTED},
    }


def step_rows(
    credits: StepCredits, batch: TokenBatch | None = None, used: Sequence[Rollout] = ()
) -> dict[str, list[dict[str, Any]]]:
    """By rollout; `batch` is what `used` were trained on, and None where nothing was."""
    trained: dict[str, Floats] = {}
    if credits.answers and batch is not None and batch.advantage_BT is not None:
        advantage_BT = np.where(batch.loss_BT, batch.advantage_BT, np.nan)
        trained = {rollout.id: advantage_BT[row] for row, rollout in enumerate(used)}
    return {name: _rows(one, trained.get(name)) for name, one in credits.answers.items()}


def _rows(one: Credited, advantage_T: Floats | None) -> list[dict[str, Any]]:
    steps = one.trajectory.segments.steps
    mean_S = np.full(len(steps), np.nan) if advantage_T is None else _means(one, advantage_T)
    return [
        {
            "start": step.span[0],
            "end": step.span[1],
            "kind": step.kind,
            "credit": _number(credit),
            "advantage": _number(mean),
            **({} if examined else {"examined": False}),
        }
        for step, credit, mean, examined in zip(steps, one.raw_S, mean_S, one.examined_S, strict=True)
    ]


def _means(one: Credited, advantage_T: Floats) -> Floats:
    """Over the tokens of each step; NaN is a token that is not trained on."""
    step_T = one.trajectory.step_T
    advantage_T = advantage_T[: len(step_T)]
    used_T = (step_T != GLUE) & ~np.isnan(advantage_T)
    count_S = np.bincount(step_T[used_T], minlength=len(one.raw_S))
    sum_S = np.bincount(step_T[used_T], advantage_T[used_T], minlength=len(one.raw_S))
    return np.where(count_S > 0, sum_S / np.maximum(count_S, 1), np.nan)


def _number(value: float) -> float | None:
    """Six decimals are plenty, and + 0.0 turns −0.0 into 0.0."""
    return round(float(value), 6) + 0.0 if np.isfinite(value) else None
