"""Several judged and rewarded answers to each problem, by the path of every evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rlvrlab.evals.answering import Answerer
from rlvrlab.evals.evaluate import evaluate
from rlvrlab.evals.protocol import Protocol
from rlvrlab.types import Environment, ErrorKind, Finish, Problem, RewardFunction, Sampling

FORMLESS = (ErrorKind.FORMAT, ErrorKind.SYNTAX)


@dataclass(frozen=True, slots=True)
class Try:
    """One answer, as far as the probe looks at it."""

    problem: Problem
    correct: bool | None
    """None when it could not be judged."""
    reward: float | None
    """None when it could not be judged."""
    formed: bool
    """Whether there was an answer in the demanded form."""
    truncated: bool
    gen_tokens: int
    entropy: float | None
    """Mean token entropy in nats, where it is known."""


def try_problems(
    answerer: Answerer,
    env: Environment,
    reward: RewardFunction,
    problems: Sequence[Problem],
    *,
    n: int,
    sampling: Sampling,
    seed: int = 0,
) -> list[Try]:
    """`n` tries of each problem, in the order of the problems; judged under the environment's own limits."""
    protocol = Protocol("EVAL@k", n, (1,), sampling)
    tries = []
    for one in evaluate(answerer, env, problems, protocol, seed=seed).judged:
        verdict, completion = one.verdict, one.answer.completion
        tries.append(
            Try(
                one.problem,
                verdict.correct,
                None if verdict.correct is None else reward(one.problem, completion, verdict).value,
                formed=verdict.error not in FORMLESS,
                truncated=completion.finish is Finish.LENGTH,
                gen_tokens=one.answer.gen_tokens,
                entropy=one.answer.entropy,
            )
        )
    return tries
