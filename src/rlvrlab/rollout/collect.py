"""Put problems to a policy, sample its answers, have them judged, turn verdicts into rewards.

Where a problem has tools, an answer is a whole episode (episodes.py).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from rlvrlab.errors import InfrastructureError
from rlvrlab.rollout.episodes import drawn
from rlvrlab.rollout.prompts import prompt_tokens
from rlvrlab.stopwatch import timed
from rlvrlab.types import (
    Completion,
    Environment,
    Finish,
    Problem,
    Request,
    RewardFunction,
    Rollout,
    Sampler,
    Sampling,
    unjudged,
)


def collect(
    sampler: Sampler,
    env: Environment,
    reward: RewardFunction,
    problems: Sequence[Problem],
    *,
    n: int,
    sampling: Sampling,
    key: tuple[Any, ...],
) -> list[Rollout]:
    """`n` judged answers to each problem, grouped by problem, in order."""
    prompts = [prompt_tokens(sampler.tokenizer, problem.prompt) for problem in problems]
    requests = [Request(tokens, n, (*key, p.id), sampling) for tokens, p in zip(prompts, problems, strict=True)]
    prefix = "/".join(str(part) for part in key)
    groups = [(f"{prefix}/{problem.id}", problem) for problem in problems]
    with timed("sample"):
        answers = drawn(sampler, problems, requests)
    return judged_rollouts(env, reward, groups, prompts, answers)


def judged_rollouts(
    env: Environment,
    reward: RewardFunction,
    groups: Sequence[tuple[str, Problem]],
    prompts: Sequence[tuple[int, ...]],
    answers: Sequence[Sequence[Completion]],
) -> list[Rollout]:
    """Judge sampled answers in one call; `groups` are (group id, problem), parallel to prompts and answers.

    A completion the sampler failed to produce is not judged; equal answers to one problem are judged once.
    """
    flat = [
        (*groups[i], prompts[i], sample, completion)
        for i, group in enumerate(answers)
        for sample, completion in enumerate(group)
    ]
    wanted = {
        (problem.id, completion.text): (problem, completion.text)
        for _, problem, _, _, completion in flat
        if completion.finish is not Finish.ERROR
    }
    with timed("judge"):
        verdicts = dict(zip(wanted, env.verify_many(list(wanted.values())), strict=True))
    failed = unjudged("the sampler failed")
    rollouts = []
    with timed("reward"):
        for group, problem, prompt, sample, completion in flat:
            sampled = completion.finish is not Finish.ERROR
            verdict = verdicts[problem.id, completion.text] if sampled else failed
            given = None if verdict.correct is None else reward(problem, completion, verdict)
            if given is not None and not math.isfinite(given.value):
                raise InfrastructureError(f"reward of {problem.id} is {given.value}; a reward must be a finite number")
            rollouts.append(Rollout(f"{group}/{sample}", group, problem, prompt, completion, verdict, given))
    return rollouts


def as_row(rollout: Rollout, steps: Sequence[dict[str, Any]] | None = None) -> dict[str, Any]:
    """The rollout as it is stored: enough to judge it again, train on it, or look at it; `steps` with their credit."""
    verdict, completion = rollout.verdict, rollout.completion
    row = {
        "id": rollout.id,
        "group": rollout.group_id,
        "problem": rollout.problem.id,
        "skill": rollout.problem.skill,
        "role": rollout.problem.role,
        "turn": rollout.turn,
        "previous": rollout.previous,
        "prompt": rollout.asked or rollout.problem.prompt,
        "reference": rollout.problem.reference,
        "completion": completion.text,
        "tokens": list(completion.tokens),
        "finish": str(completion.finish),
        "policy_version": completion.policy_version,
        "correct": verdict.correct,
        "score": verdict.score,
        "error": str(verdict.error),
        "detail": verdict.detail,
        "flags": list(verdict.flags),
        "isolation": verdict.isolation,
        "reward": None if rollout.reward is None else rollout.reward.value,
        "parts": {} if rollout.reward is None else dict(rollout.reward.parts),
    }
    if completion.turns:
        row["turns"] = [turn._asdict() for turn in completion.turns]
    return row if steps is None else {**row, "steps": list(steps)}
