"""A trial call of the user's own verifier and reward, before anything is trained on what they say.

A function that raises, returns what is no number or takes a minute for one answer would otherwise show only after the
policy has answered, often behind hours of SFT. Here it judges and pays four answers to one problem: a right one, a
wrong one, an empty one and a right one cut in half.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

from rlvrlab.errors import LabError, OwnCodeError, UserError, told
from rlvrlab.rewards.total import paid
from rlvrlab.types import Completion, Environment, Finish, Problem, Reward, RewardFunction, Verdict

T = TypeVar("T")
LIMIT_S = 10.0
"""Most seconds for one call; a step makes hundreds of them."""


class Tried(NamedTuple):
    """One answer of the trial."""

    name: str
    text: str
    verdict: Verdict
    reward: Reward | None
    """None where the answer could not be judged: such an answer is masked."""
    seconds: float
    """That the reward took."""


def tried(
    env: Environment,
    reward: RewardFunction,
    problem: Problem,
    encode: Callable[[str], Sequence[int]] = str.encode,
    *,
    own_env: bool = False,
    limit_s: float | None = None,
) -> list[Tried]:
    """What verifier and reward say about four answers; a UserError says what is wrong with them.

    `own_env`: the verifier is the user's own, and has a time limit like the reward.
    """
    limit_s = LIMIT_S if limit_s is None else limit_s
    gold = env.gold(problem)
    right = gold if gold is not None else "an answer"
    answers = {"right": gold, "wrong": "certainly not the answer", "empty": "", "truncated": right[: len(right) // 2]}
    results = []
    for name, text in answers.items():
        if text is None:
            continue
        judge, what = partial(env.verify_many, [(problem, text)]), f"on the {name} answer to problem {problem.id}"
        [verdict] = limited(judge, f"the verifier {what}", limit_s) if own_env else judge()
        finish = Finish.LENGTH if name == "truncated" else Finish.STOP
        tokens = tuple(encode(text))
        completion = Completion(text, tokens, (0.0,) * len(tokens), finish)
        started = time.perf_counter()
        pay = partial(paid, reward, problem, completion, verdict)
        given = None if verdict.correct is None else limited(pay, f"the reward {what}", limit_s)
        results.append(Tried(name, text, verdict, given, time.perf_counter() - started))
    return results


def limited(work: Callable[[], T], what: str, limit_s: float) -> T:
    """The result of a call, made in a thread of its own so that one that never ends can be left behind."""
    done: list[T] = []
    failed: list[Exception] = []

    def call() -> None:
        try:
            done.append(work())
        except Exception as error:
            failed.append(error)

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(limit_s)
    if done:
        return done[0]
    if not failed:
        remedy = "make it quicker: every answer of every step waits for it"
        raise UserError(f"{what} took more than {limit_s:g} s; {remedy}")
    if isinstance(failed[0], LabError | MemoryError):  # who has too little memory may get more and try again
        raise failed[0]
    raise OwnCodeError(f"{what} raised {told(failed[0])}") from failed[0]
