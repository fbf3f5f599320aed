"""A trial call of the user's own verifier and reward, before anything is trained on what they say.

A function that raises, returns what is no number, takes a minute for one answer or rejects right answers would
otherwise show only after the policy has answered, often behind hours of SFT, or not at all. Here it judges and pays
four answers to one problem, a right one, a wrong one, an empty one and a right one cut in half, and three to others.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import NamedTuple, TypeVar

from rlvrlab.errors import LabError, OwnCodeError, UserError, first_few, told
from rlvrlab.rewards.total import paid
from rlvrlab.types import Completion, Environment, Finish, Problem, Reward, RewardFunction, Verdict

T = TypeVar("T")
LIMIT_S = 10.0
"""Most seconds for one call; a step makes hundreds of them. As many seconds are spent on further problems."""
MOST = 16
"""Problems that are tried; where a third of all make trouble, 16 chosen blindly miss it once in 650 times."""
BACKWARD_SHOWN = 3
"""Problems that a warning about the reward names."""
WRONG = "certainly not the answer"
NEIGHBOURS = "neighbour's"


class Tried(NamedTuple):
    """One answer of the trial."""

    problem: Problem
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
    *,
    own_env: bool = False,
    wanted: Sequence[str] = ("right", "wrong", "empty", "truncated", NEIGHBOURS),
    neighbours: str | None = None,
) -> list[Tried]:
    """What verifier and reward say about four answers; a UserError says what is wrong with them.

    `neighbours` is the right answer to another problem, where one is known: of its kind and yet wrong, it is what
    partial credit is paid for. `own_env`: the verifier is the user's own, and has a time limit like the reward.
    """
    gold = _gold(env, problem) if own_env else env.gold(problem)
    right = gold if gold is not None else "an answer"
    answers = {"right": gold, "wrong": WRONG, "empty": "", "truncated": right[: len(right) // 2]}
    answers |= {NEIGHBOURS: neighbours if neighbours != gold else None}
    results = []
    for name, text in answers.items():
        if text is None or name not in wanted:
            continue
        judge, what = partial(env.verify_many, [(problem, text)]), f"on the {name} answer to problem {problem.named}"
        [verdict] = limited(judge, f"the verifier {what}") if own_env else judge()
        finish = Finish.LENGTH if name == "truncated" else Finish.STOP
        tokens = tuple(text.encode())
        completion = Completion(text, tokens, (0.0,) * len(tokens), finish)
        started = time.perf_counter()
        pay = partial(_paid, name, reward, problem, completion, verdict)
        given = None if verdict.correct is None else limited(pay, f"the reward {what}")
        results.append(Tried(problem, name, text, verdict, given, time.perf_counter() - started))
    return results


def try_all(
    env: Environment, reward: RewardFunction, problems: Sequence[Problem], *, own_env: bool = False
) -> list[Tried]:
    """Try four answers to the first problem, then a right and two wrong ones to others as unlike as there are.

    Where the verifier is the user's own (`own_env`), one that rejects a right answer is refused: training could only
    teach what it accepts by mistake, or nothing. Slow functions are tried on fewer problems.
    """
    started, found, last = time.perf_counter(), list[Tried](), None
    for index, problem in enumerate(spread(problems)):
        if index and time.perf_counter() - started > LIMIT_S:
            break
        wanted = ("right", "wrong", NEIGHBOURS) if index else ("right", "wrong", "empty", "truncated")
        results = tried(env, reward, problem, own_env=own_env, wanted=wanted, neighbours=last)
        found += results
        right = next((one for one in results if one.name == "right"), None)
        if own_env and right is not None and right.verdict.correct is False:
            detail = f", {right.verdict.detail}" if right.verdict.detail else ""
            said = f"{right.verdict.error} (score {right.verdict.score:g}{detail})"
            what = f"environment {env.name!r} rejects its own right answer to problem {problem.named}"
            facts = f"gold gave {right.text!r:.60}, the reference is {problem.reference!r:.60}, verify said {said}"
            mend = "mend gold, verify or the row: nothing right could be rewarded"
            raise OwnCodeError(f"{what}: {facts}; {_other_kind(env, problem, right.text) or mend}")
        if own_env and right is None and index == 0 and (remedy := _other_kind(env, problem, str(problem.reference))):
            what = f"no answer to problem {problem.named} can be right for environment {env.name!r}"
            raise OwnCodeError(f"{what}: {remedy}")
        last = last if right is None else right.text
    return found


def _paid(name: str, reward: RewardFunction, problem: Problem, completion: Completion, verdict: Verdict) -> Reward:
    """As `paid`; an error says which of the answers it was."""
    try:
        return paid(reward, problem, completion, verdict)
    except OwnCodeError as error:
        raise OwnCodeError(f"on the {name} answer {completion.text!r:.60}: {error}") from error


def spread(problems: Sequence[Problem], most: int = MOST) -> list[Problem]:
    """At most so many of them: the first of each skill in each role, then others at even distances."""
    first: dict[tuple[str, str], int] = {}
    for index, problem in enumerate(problems):
        first.setdefault((problem.role, problem.skill), index)
    chosen = dict.fromkeys(list(first.values())[:most])
    even = range(0, len(problems), max(1, len(problems) // most))
    chosen |= dict.fromkeys([index for index in even if index not in chosen][: most - len(chosen)])
    return [problems[index] for index in chosen]


def _gold(env: Environment, problem: Problem) -> str | None:
    """The right answer of an environment of the user's own, which may fail, or write what is no text."""
    gold: object = limited(partial(env.gold, problem), f"gold of {env.name!r} for problem {problem.named}")
    if gold is not None and not isinstance(gold, str):
        what = f"gold of {env.name!r} gave {gold!r:.60} for problem {problem.named}"
        raise OwnCodeError(f"{what}; return a text, or None where no right answer is known")
    return gold


def _other_kind(env: Environment, problem: Problem, text: str) -> str:
    """What to do where verify accepts an answer only if the reference were text and not a number, or the reverse."""
    reference, other = problem.reference, list[object]()
    if isinstance(reference, int | float) and not isinstance(reference, bool):
        other, remedy = [str(reference)], "compare with str(problem.reference)"
    elif isinstance(reference, str):
        for kind in (int, float):
            with suppress(ValueError):
                other.append(kind(reference))
        remedy = "compare with int(problem.reference), float(…), or as texts"
    for value in other:
        items = [(problem, text), (replace(problem, reference=value), text)]
        with suppress(LabError):
            as_is, changed = limited(partial(env.verify_many, items), "verify")
            if as_is.correct is False and changed.correct is True:
                is_now = f"the reference {reference!r:.60} is {type(reference).__name__}"
                return f"{is_now}, and {text!r:.60} is accepted only where it is {type(value).__name__}; {remedy}"
    return ""


def limited(work: Callable[[], T], what: str) -> T:
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
    thread.join(LIMIT_S)
    if done:
        return done[0]
    if not failed:
        remedy = "make it quicker: every answer of every step waits for it"
        raise UserError(f"{what} took more than {LIMIT_S:g} s; {remedy}")
    if isinstance(failed[0], LabError | MemoryError):  # who has too little memory may get more and try again
        raise failed[0]
    raise OwnCodeError(f"{what} raised {told(failed[0])}") from failed[0]


def pays_backwards(paid: Sequence[Tried]) -> str:
    """In words, for which problems a wrong answer earned at least as much as a right one; empty where none did.

    Problems are looked at one by one: a reward that is upside down for half of them pays right answers as much on
    average as one that pays half.
    """
    pairs, backward = _paid_pairs(paid), backward_pairs(paid)
    if not backward:
        return ""
    if len(backward) == len(pairs):
        right, wrong = (sum(one[side].value for one in pairs) / len(pairs) for side in (0, 1))
        more = "less than" if right < wrong else "no more than"
        what = f"reward: a right answer earns {more} a wrong one ({right:g} and {wrong:g})"
        return f"{what}, so training teaches nothing that is right; mend it"
    which = f"for {len(backward)} of {len(pairs)} problems that were tried"
    what = f"reward: {which} a right answer earns no more than a wrong one"
    told = [f"{one.problem.named}: {one.text!r:.40} is right and earns {one.value:g}, "
             f"{other.text!r:.40} is wrong and earns {other.value:g}"
             for one, other in backward]  # fmt: skip
    return f"{what}, so training teaches wrong answers there; mend it: {first_few(told, BACKWARD_SHOWN, '; ')}"


class Pay(NamedTuple):
    """What one tried answer earned."""

    problem: Problem
    text: str
    value: float


def backward_pairs(paid: Sequence[Tried]) -> list[tuple[Pay, Pay]]:
    """A right and a wrong answer to each problem for which the wrong one earned at least as much."""
    return [(right, wrong) for right, wrong in _paid_pairs(paid) if right.value <= wrong.value]


def _paid_pairs(paid: Sequence[Tried]) -> list[tuple[Pay, Pay]]:
    """Of each problem the right answer and the wrong answer that earned most, where both were tried."""
    pairs = []
    for _, same in groupby(paid, key=lambda one: one.problem.id):
        earned: dict[bool, list[Pay]] = {True: [], False: []}
        for one in same:
            if one.reward is not None and one.verdict.correct is not None:
                earned[one.verdict.correct].append(Pay(one.problem, one.text, one.reward.value))
        if earned[True] and earned[False]:
            right, wrong = (max(earned[kind], key=lambda pay: pay.value) for kind in (True, False))
            pairs.append((right, wrong))
    return pairs
