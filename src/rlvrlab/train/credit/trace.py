"""Credit by execution: failed programs are followed beside right ones of their group, and blamed where they part.

Jobs in the jail beyond those of the verdicts: one for each different failed answer of a group that has a right one, and
one for each right answer it is compared with (credit.siblings at most); equal answers are followed once. None of
them is scored. What comes out of the jail is check sums, and only a step's number goes further.
`credit/traced`      programs followed
`credit/located`     share of the failed answers in groups with a right one whose parting was found
"""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO
from itertools import groupby

import numpy as np

from rlvrlab.credit.base import StepCredit
from rlvrlab.credit.steps import Decode
from rlvrlab.credit.trace import parting
from rlvrlab.envs.base import Followed, FollowsPrograms
from rlvrlab.rollout.segments import Segments
from rlvrlab.train.credit.credited import Credited, StepCredits, metrics_of_steps, segmented, worth
from rlvrlab.types import Environment, Problem, Rollout

Answer = tuple[str, str]
"""Problem and text."""


def trace_credits(plugin: StepCredit, rollouts: Sequence[Rollout], env: Environment, decode: Decode) -> StepCredits:
    """Of the failed answers whose group has a right one; all others keep their group's advantage."""
    assert isinstance(env, FollowsPrograms)
    pairs = list(_compared(rollouts, plugin.siblings))
    wanted: dict[Answer, tuple[Problem, str]] = {}
    for failed, right in pairs:
        wanted |= {_answer(one): (one.problem, one.completion.text) for one in (failed, *right)}
    followed = dict(zip(wanted, env.follow(list(wanted.values())) if wanted else [], strict=True))
    answers = {}
    trajectories = segmented([failed for failed, _ in pairs], plugin.segmentation, decode)
    for (failed, right), one in zip(pairs, trajectories, strict=True):
        step = _blamed_step(one.segments, followed[_answer(failed)], [followed[_answer(other)] for other in right])
        if step is not None:
            credit_S = plugin.blamed(len(one.segments), step, worth(right[0]) - worth(failed))
            answers[failed.id] = Credited(one, credit_S, credit_S, np.ones(len(credit_S), dtype=bool))
    metrics = {
        "credit/unbiased": 0.0,
        "credit/traced": float(len(wanted)),
        "credit/located": len(answers) / max(1, len(pairs)),
        **metrics_of_steps(list(answers.values())),
    }
    return StepCredits(plugin, answers, metrics)


def _compared(rollouts: Sequence[Rollout], siblings: int) -> list[tuple[Rollout, list[Rollout]]]:
    """Each failed answer with different right ones of its group that earned more, the first of them."""
    pairs = []
    for _, members in groupby(rollouts, key=lambda rollout: rollout.group_id):
        group = [rollout for rollout in members if rollout.reward is not None]
        right = {r.completion.text: r for r in reversed(group) if r.verdict.correct is True}
        first = list(reversed(right.values()))[:siblings]
        for failed in (r for r in group if r.verdict.correct is False):
            if first and worth(failed) < min(map(worth, first)):
                pairs.append((failed, first))
    return pairs


def _blamed_step(segments: Segments, failed: Followed | None, right: Sequence[Followed | None]) -> int | None:
    """The step at which the failed program parts from the right one that goes along for longest."""
    if failed is None:
        return None
    found = [where for one in right if one is not None and (where := parting(failed.calls, one.calls)) is not None]
    return _step_at(segments, failed.program, max(found)[1]) if found else None


def _step_at(segments: Segments, program: str, line: int) -> int | None:
    """The step of the answer that holds a line of the program it stands for."""
    start, end = segments.region
    rows, written = _rows(program), _rows(segments.text[start:end])
    at = line - 1 - (len(rows) - len(written))  # what the prompt began stands above; indentation may be the fence's
    if not 0 <= at < len(written) or not rows[line - 1].strip().endswith(written[at].strip()):
        return None
    place = start + sum(map(len, written[:at])) + len(written[at]) - len(written[at].lstrip())
    return next((step.index for step in segments.steps if step.span[0] <= place < step.span[1]), None)


def _rows(program: str) -> list[str]:
    """Lines as Python counts them: `splitlines` would also end them at a U+2028."""
    return list(StringIO(program, newline=""))


def _answer(rollout: Rollout) -> Answer:
    return rollout.problem.id, rollout.completion.text
