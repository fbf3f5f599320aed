"""Credit of answers that grew on trees: their steps are the branches they went along, and no replay is needed.

`tree/drawn_tokens`    tokens that were drawn in a step, those of shared beginnings once
`tree/shared`          share of the answers' tokens that did not have to be drawn
`tree/beside`          share of answers drawn beside their tree, because others ended before they could branch
Suffixes: B rows, S steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, pairwise

import numpy as np

from rlvrlab.credit.base import StepCredit
from rlvrlab.credit.steps import Decode, token_spans
from rlvrlab.rollout.replay import Trajectory
from rlvrlab.rollout.segments import Segments
from rlvrlab.train.credit.credited import Credited, StepCredits, metrics_of_steps
from rlvrlab.types import Rollout, Step


def tree_credits(plugin: StepCredit, rollouts: Sequence[Rollout], decode: Decode) -> StepCredits:
    """Of all answers that grew on trees; the others (second tries) keep their group's advantage."""
    on_trees = [rollout for rollout in rollouts if rollout.completion.branches]
    answers = {}
    for _, members in groupby(on_trees, key=lambda rollout: rollout.group_id):
        group = list(members)
        reward_B = np.array([np.nan if r.reward is None else r.reward.value for r in group])
        grown = plugin.grown([r.completion.branches for r in group], reward_B)
        for rollout, (credit_S, trained_S) in zip(group, grown, strict=True):
            if rollout.reward is not None:
                examined_S = np.ones(len(credit_S), dtype=bool)
                answers[rollout.id] = Credited(_trajectory(rollout, decode), credit_S, trained_S, examined_S)
    written = sum(len(r.completion.tokens) for r in on_trees)
    length = {}  # of each branch of a tree, which is drawn once
    for rollout in on_trees:
        begins = 0
        for branch in rollout.completion.branches:
            length[rollout.group_id, branch.path] = branch.end - begins
            begins = branch.end
    drawn = sum(length.values())
    beside = sum(r.completion.branches[0].path[0] < 0 for r in on_trees)
    metrics = {
        "credit/unbiased": float(plugin.label == "unbiased"),
        **metrics_of_steps(list(answers.values())),
        "tree/drawn_tokens": float(drawn),
        "tree/shared": 1 - drawn / max(1, written),
        "tree/beside": beside / max(1, len(on_trees)),
    }
    return StepCredits(plugin, answers, metrics)


def _trajectory(rollout: Rollout, decode: Decode) -> Trajectory:
    """An answer in the branches it is made of."""
    completion = rollout.completion
    spans_T2 = token_spans(completion.text, completion.tokens, decode)
    ends = [branch.end for branch in completion.branches]
    step_T = np.searchsorted(ends, np.arange(len(completion.tokens)), side="right")
    cuts = [0, *(int(spans_T2[end - 1, 1]) if end else 0 for end in ends)]
    steps = [
        Step(at, "branch", (start, end), completion.text[start:end]) for at, (start, end) in enumerate(pairwise(cuts))
    ]
    segments = Segments.flat(completion.text, "text", steps, (), (), (0, len(completion.text)))
    return Trajectory(rollout, segments, step_T, ())
