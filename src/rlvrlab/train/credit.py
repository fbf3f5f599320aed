"""Step credit in training: which steps, which replays, and what the tokens get. Switched on by a [credit] table.

judged rollouts -> steps -> plan -> replays (one call of the verifier) -> credit of steps -> advantages of tokens

The group's advantage is computed as ever; credit is mapped onto it afterwards. A group whose answers all earned the
same has no advantage, yet deleting a step may show what its answers are made of: such groups are kept when credit has
something to say. Whatever is not known (not examined, not judged, no longer running) leaves the token its group's
advantage, and is counted. Suffixes: B rows, T tokens, S steps, E edits.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rlvrlab.batch import Bools, Floats
from rlvrlab.credit.base import StepCredit
from rlvrlab.credit.edits import Replays, coalition
from rlvrlab.credit.estimators import step_groups
from rlvrlab.credit.steps import GLUE
from rlvrlab.randomness import generator
from rlvrlab.rollout.replay import COUNTED, Replayer, Trajectory
from rlvrlab.train.credited import Credited, StepCredits, metrics_of_steps, segmented
from rlvrlab.train.lab import Lab
from rlvrlab.train.trace_credit import trace_credits
from rlvrlab.train.tree_credit import tree_credits
from rlvrlab.types import Environment, RewardFunction, Rollout, Sampler, Sampling


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
    if plugin.grows:
        return tree_credits(plugin, rollouts, sampler.tokenizer.decode)
    if plugin.follows:
        return trace_credits(plugin, rollouts, env, sampler.tokenizer.decode)
    replayer = Replayer(env, reward, sampler, sampling, plugin.samples, plugin.invalid, cached)
    judged = [(rollout, rollout.reward.value) for rollout in rollouts if rollout.reward is not None]
    least: dict[str, float] = {}
    for rollout, value in judged:
        least[rollout.group_id] = min(value, least.get(rollout.group_id, value))
    # The others keep their group's advantage; answers that began alike are compared whatever they earned.
    examined = [r for r, value in judged if not plugin.needs_replays or plugin.examines(value, least[r.group_id])]
    asked: list[Trajectory] = []
    plans: list[Replays | None] = []
    for one in segmented(examined, plugin.segmentation, sampler.tokenizer.decode):
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
        **metrics_of_steps(list(answers.values())),
        "credit/hit_rate": replayer.counts["cache_hits"] / max(1, replayer.counts["replays"]),
        **{f"credit/{name}": float(replayer.counts[name]) for name in COUNTED},
    }
    return StepCredits(plugin, answers, metrics)


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
