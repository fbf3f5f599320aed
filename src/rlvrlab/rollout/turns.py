"""Another try after a failed one: the environment's feedback, the next answer, its verdict.

Each turn is a rollout of its own: the prompt as the policy saw it and the tokens it sampled, never tokenised again.
A second try keeps its first as `previous`, so a conversation can be followed back. In `fresh` context the feedback
prompt stands alone (it repeats the question and the failed answer); in `conversation` it is appended to the very
tokens of the first turn:
    fresh          P2 | A2                     P2 = encode(question, failed answer, what went wrong)
    conversation   P1 A1 F | A2                P1 A1 as sampled, F = encode(feedback)
The feedback never tells about hidden tests: that is the environment's promise (`second_turn`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from rlvrlab.envs.base import GivesFeedback, GivesFeedbackTogether
from rlvrlab.errors import UserError
from rlvrlab.notes import timed
from rlvrlab.rollout.collect import Asked, Judging, drawn, judged_rollouts
from rlvrlab.rollout.prompts import again_tokens, prompt_tokens
from rlvrlab.types import Environment, Problem, Request, RewardFunction, Rollout, Sampler, Sampling, Verdict

Context = Literal["fresh", "conversation"]


def feedback(env: Environment, items: Sequence[tuple[Problem, str, Verdict]]) -> list[str]:
    """What each failed try (problem, answer, verdict) is told; in one call where the environment can."""
    refuse_silent(env)
    assert isinstance(env, GivesFeedback)
    if isinstance(env, GivesFeedbackTogether):
        return env.second_turns(list(items))
    return [env.second_turn(*item) for item in items]


def refuse_silent(env: Environment) -> None:
    """UserError for an environment that has nothing to tell after a failed try."""
    if not isinstance(env, GivesFeedback):
        raise UserError(
            f"environment {env.name!r} gives no feedback on a failed answer; leave second tries out (tries = 1)"
        )


def second_prompts(
    sampler: Sampler, env: Environment, tries: Sequence[Rollout], context: Context
) -> list[tuple[str, tuple[int, ...]]]:
    """Text and tokens that ask for another try."""
    texts = feedback(env, [(r.problem, r.completion.text, r.verdict) for r in tries])
    if context == "fresh":
        return [(text, prompt_tokens(sampler.tokenizer, text)) for text in texts]
    return [
        (text, (*r.prompt_tokens, *r.completion.tokens, *again_tokens(sampler.tokenizer, text)))
        for r, text in zip(tries, texts, strict=True)
    ]


def try_again(
    sampler: Sampler,
    env: Environment,
    reward: RewardFunction,
    tries: Sequence[Rollout],
    *,
    n: int,
    sampling: Sampling,
    key: tuple[Any, ...],
    context: Context = "fresh",
) -> list[Rollout]:
    """`n` judged second answers to each failed try, grouped by the try they answer."""
    if not tries:
        return []
    asked = second_prompts(sampler, env, tries, context)
    requests = [
        Request(tokens, n, (*key, "turn", first.turn + 1, first.id), sampling)
        for first, (_, tokens) in zip(tries, asked, strict=True)
    ]
    groups = [(f"{first.id}/turn{first.turn + 1}", first.problem) for first in tries]
    with Judging(env) as judging:
        with timed("sample"):
            answers = drawn(sampler, requests, [first.problem for first in tries], judging)
        asked_again = Asked(groups, [request.tokens for request in requests], answers)
        rollouts = judged_rollouts(judging, reward, asked_again)
    origins = [(first, text) for first, (text, _), group in zip(tries, asked, answers, strict=True) for _ in group]
    return [
        replace(r, turn=first.turn + 1, previous=first.id, asked=text)
        for r, (first, text) in zip(rollouts, origins, strict=True)
    ]
