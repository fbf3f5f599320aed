"""Credit by altered answers: which steps are examined, which answers are replayed, and what that says of each step.

judged rollouts -> steps -> plan -> replays (one call of the verifier) -> credit of steps

Suffixes: B rows, T tokens, S steps, E edits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from rlvrlab.batch import Bools, Floats
from rlvrlab.credit.base import Remembered, StepCredit
from rlvrlab.credit.doubly_robust import known_of, learnt
from rlvrlab.credit.edits import Replays, coalition
from rlvrlab.credit.estimators import step_groups
from rlvrlab.credit.steps import GLUE, Decode
from rlvrlab.randomness import generator
from rlvrlab.rollout.replay import COUNTED, Replayer, Trajectory
from rlvrlab.rollout.segment import statements_of
from rlvrlab.train.credit.credited import Credited, StepCredits, metrics_of_steps, segmented, worth
from rlvrlab.types import Rollout


def replay_credits(
    plugin: StepCredit, rollouts: Sequence[Rollout], replayer: Replayer, remembered: Remembered, decode: Decode
) -> StepCredits:
    """Segment, plan, replay, solve; `remembered` is from earlier steps."""
    judged = [(rollout, rollout.reward.value) for rollout in rollouts if rollout.reward is not None]
    least: dict[str, float] = {}
    for rollout, value in judged:
        least[rollout.group_id] = min(value, least.get(rollout.group_id, value))
    # The others keep their group's advantage; answers that began alike are compared whatever they earned.
    examined = [r for r, value in judged if not plugin.needs_replays or plugin.examines(value, least[r.group_id])]
    asked = list(segmented(examined, plugin.segmentation, decode))
    plans, values = _replayed(replayer, asked, [_planned(plugin, one, remembered) for one in asked])
    solved, empty = _solved(plugin, asked, plans, values), _empty_values(plugin, replayer, asked, plans)
    answers = {}
    for one, plan, raw_S, of_empty in zip(asked, plans, solved, empty, strict=True):
        if len(one.segments):
            credit_S = plugin.normalised(raw_S, worth(one.rollout) - of_empty)
            answers[one.rollout.id] = Credited(one, raw_S, credit_S, _asked(raw_S, plan))
    learning: dict[str, float] = {}
    if plugin.remembers:
        remembered = learnt(remembered, _effects(asked, plans, values))
        steps = sum(len(one.segments) for one in asked)
        asked_for = sum(len(plan.edits) for plan in plans if plan)
        learning = {"credit/asked": asked_for / max(1, steps), "credit/statements": float(len(remembered))}
    metrics = {
        "credit/unbiased": float(plugin.label == "unbiased" and all(_is_one_token(one) for one in answers.values())),
        "credit/no_steps": float(len(examined) - len(answers)),
        "credit/examined": len(examined) / max(1, len(judged)),
        **metrics_of_steps(list(answers.values())),
        **learning,
        "credit/hit_rate": replayer.counts["cache_hits"] / max(1, replayer.counts["replays"]),
        **{f"credit/{name}": float(replayer.counts[name]) for name in COUNTED},
    }
    return StepCredits(plugin, answers, metrics, remembered)


def _planned(plugin: StepCredit, one: Trajectory, remembered: Remembered) -> Replays | None:
    """What to replay of an answer; None where it has no steps, or nothing is replayed."""
    steps = len(one.segments)
    if not steps or not plugin.needs_replays:
        return None
    known = known_of(remembered, statements_of(one.segments, _kind(one))) if plugin.remembers else None
    # Keyed by the rollout: the same on any machine and after any restart.
    return plugin.plan(steps, generator("credit", one.rollout.id), known)


def _empty_values(
    plugin: StepCredit, replayer: Replayer, asked: Sequence[Trajectory], plans: Sequence[Replays | None]
) -> list[float]:
    """What each answer is worth without any of its steps; NaN where that is not asked."""
    nothing = [
        (coalition(np.zeros(len(one.segments), dtype=bool)),) if plugin.wants_empty and plan else ()
        for one, plan in zip(asked, plans, strict=True)
    ]
    found = replayer.values([one._replace(edits=edits) for one, edits in zip(asked, nothing, strict=True)])
    return [float(value_E[0]) if len(value_E) else float("nan") for value_E in found]


def _replayed(
    replayer: Replayer, asked: Sequence[Trajectory], plans: Sequence[Replays | None]
) -> tuple[list[Replays | None], list[Floats]]:
    """The plans with all that was asked in the end, and the values of their edits; each round is one call."""
    done, values = list(plans), [np.zeros(0) for _ in asked]
    fresh = [plan.edits if plan else () for plan in plans]
    while True:
        found = replayer.values([one._replace(edits=edits) for one, edits in zip(asked, fresh, strict=True)])
        values = [np.append(old, new) for old, new in zip(values, found, strict=True)]
        fresh = [
            plan.then(value_E, worth(one.rollout)) if plan else ()
            for one, plan, value_E in zip(asked, done, values, strict=True)
        ]
        if not any(fresh):
            return done, values
        done = [plan and plan._replace(edits=(*plan.edits, *more)) for plan, more in zip(done, fresh, strict=True)]


def _kind(one: Trajectory) -> str:
    """Statements of answers that earned something are remembered apart from those of others."""
    return f"{one.rollout.problem.skill} {worth(one.rollout) > 0}"


def _effects(
    asked: Sequence[Trajectory], plans: Sequence[Replays | None], values: Sequence[Floats]
) -> Iterator[tuple[str, float]]:
    """What deleting a statement has cost, once for each different answer."""
    seen = set()
    for one, plan, value_E in zip(asked, plans, values, strict=True):
        statements = statements_of(one.segments, _kind(one))
        for edit, value in zip(plan.edits if plan else (), value_E, strict=True):
            place = one.rollout.problem.id, one.rollout.completion.text, edit.step
            if place not in seen and not np.isnan(value):
                seen.add(place)
                yield statements[edit.step], worth(one.rollout) - float(value)


def _solved(
    plugin: StepCredit, asked: Sequence[Trajectory], plans: Sequence[Replays | None], values: Sequence[Floats]
) -> list[Floats]:
    """Credit in units of reward: from the replays' values, or from answers of a group that began alike."""
    reward_B = np.array([worth(one.rollout) for one in asked])
    if not plugin.needs_replays:
        ids = {group: i for i, group in enumerate(dict.fromkeys(one.rollout.group_id for one in asked))}
        group_B = np.array([ids[one.rollout.group_id] for one in asked], dtype=np.int64)
        texts = [(one.rollout.completion.text, one.segments.steps) for one in asked]
        return step_groups([[text[: step.span[0]] for step in steps] for text, steps in texts], reward_B, group_B)
    return [
        np.zeros(0) if plan is None else plan.solve(value_E, float(whole)).credit_S
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
