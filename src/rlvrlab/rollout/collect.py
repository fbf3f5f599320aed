"""Put problems to a policy, sample its answers, have them judged, turn verdicts into rewards.

Where a problem has tools, an answer is a whole episode (episodes.py).

Answers are judged while others are still being drawn. A step waits only for verdicts that are missing when its last
answer is drawn, so one endless program no longer holds up everything behind it. What is judged does not depend on this:
every answer is judged by itself, and a verdict that failed to come raises where it is asked for, as if it had been
asked for there. Only environments that say `judged_elsewhere` are asked early: their verifier waits for other
processes, while one that computes in this process would take the time from the sampler.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from rlvrlab.envs.base import BaseEnvironment
from rlvrlab.notes import timed
from rlvrlab.rewards.total import paid
from rlvrlab.rollout.prompts import prompt_tokens
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
    StreamingSampler,
    Verdict,
    unjudged,
)

if TYPE_CHECKING:
    from rlvrlab.credit.base import Shape

THREADS = 32
"""Calls of the verifier that may wait abreast; the judge itself decides how many programs run."""
Item = tuple[Problem, str]


class Asked(NamedTuple):
    """Groups of answers that have been drawn, not yet judged."""

    groups: Sequence[tuple[str, Problem]]
    """(group id, problem)."""
    prompts: Sequence[tuple[int, ...]]
    answers: Sequence[Sequence[Completion]]

    def items(self) -> list[tuple[Problem, str]]:
        """What there is to judge: an answer that the sampler failed to produce is not, and equal ones are once."""
        both = zip(self.groups, self.answers, strict=True)
        texts = [(p, one.text) for (_, p), answers in both for one in answers if one.finish is not Finish.ERROR]
        return list({(problem.id, text): (problem, text) for problem, text in texts}.values())


class Judging(AbstractContextManager["Judging"]):
    """The answers handed in so far; use it as a context, which gives up what nobody waited for."""

    def __init__(self, env: Environment) -> None:
        self.env = env
        self.early = isinstance(env, BaseEnvironment) and env.judged_elsewhere
        """Does handing in early save time?"""
        self._threads = ThreadPoolExecutor(THREADS, "rlvr-verdicts") if self.early else None
        self._coming: dict[tuple[str, str], tuple[Future[list[Verdict]], int]] = {}

    def __exit__(self, *_: object) -> None:
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)

    def hand_in(self, items: Sequence[Item]) -> None:
        """Have these judged in the background; equal answers to one problem are judged once."""
        fresh = {(p.id, text): (p, text) for p, text in items if (p.id, text) not in self._coming}
        if self._threads is None or not fresh:
            return
        future = self._threads.submit(self._verified, list(fresh.values()))
        self._coming |= {key: (future, place) for place, key in enumerate(fresh)}

    def _verified(self, items: Sequence[Item]) -> list[Verdict]:
        """Their verdicts; where the judge does not tell what one cost, it has its share of the time that all took."""
        started = time.perf_counter()
        verdicts = self.env.verify_many(items)
        each = (time.perf_counter() - started) / len(items)
        return [one if "wall_s" in one.cost else replace(one, cost={**one.cost, "wall_s": each}) for one in verdicts]

    def verdicts(self, items: Sequence[Item]) -> list[Verdict]:
        """The verdicts, in order; what was not handed in is judged now."""
        missing = {(p.id, text): (p, text) for p, text in items if (p.id, text) not in self._coming}
        now = dict(zip(missing, self.env.verify_many(list(missing.values())), strict=True)) if missing else {}
        found = []
        for problem, text in items:
            key = problem.id, text
            if key in now:
                found.append(now[key])
            else:
                future, place = self._coming[key]
                found.append(future.result()[place])
        return found


def collect(
    sampler: Sampler,
    env: Environment,
    reward: RewardFunction,
    problems: Sequence[Problem],
    *,
    n: int,
    sampling: Sampling,
    key: tuple[Any, ...],
    shape: Shape | None = None,
) -> list[Rollout]:
    """`n` judged answers to each problem, grouped by problem, in order; on a tree where its `shape` is given."""
    with Judging(env) as judging:
        asked = ask(sampler, judging, problems, n=n, sampling=sampling, key=key, shape=shape)
        return judged_rollouts(judging, reward, asked)


def ask(
    sampler: Sampler,
    judging: Judging | None,
    problems: Sequence[Problem],
    *,
    n: int,
    sampling: Sampling,
    key: tuple[Any, ...],
    shape: Shape | None = None,
) -> Asked:
    """`n` answers to each problem; they are handed in while they are being drawn, where that saves time.

    With a `shape` they grow on trees, and are handed in when they are complete.
    """
    prompts = [prompt_tokens(sampler.tokenizer, problem.prompt) for problem in problems]
    requests = [Request(tokens, n, (*key, p.id), sampling) for tokens, p in zip(prompts, problems, strict=True)]
    prefix = "/".join(str(part) for part in key)
    groups = [(f"{prefix}/{problem.id}", problem) for problem in problems]
    with timed("sample"):
        if shape is not None and shape.boundary == "turns":
            from rlvrlab.rollout.episodes import grow_episodes

            return Asked(groups, prompts, grow_episodes(sampler, problems, requests, shape))
        if shape is not None:
            from rlvrlab.rollout.tree import grow

            return Asked(groups, prompts, grow(sampler, requests, shape))
        answers = drawn(sampler, requests, problems, judging)
        if any("tools" in problem.meta for problem in problems):
            from rlvrlab.rollout.episodes import with_tools

            answers = with_tools(sampler, problems, requests, answers)
        return Asked(groups, prompts, answers)


def drawn(
    sampler: Sampler, requests: Sequence[Request], problems: Sequence[Problem], judging: Judging | None
) -> list[list[Completion]]:
    """The sampler's answers; those to problems that are judged elsewhere are handed in as soon as they are complete."""
    if judging is None or not judging.early or not isinstance(sampler, StreamingSampler):
        return sampler.sample(requests)

    def told(complete: Sequence[tuple[int, int, Completion]]) -> None:
        whole = [(problems[i], one) for i, _, one in complete if "tools" not in problems[i].meta]  # others go on
        judging.hand_in([(problem, one.text) for problem, one in whole if one.finish is not Finish.ERROR])

    return sampler.sample_streaming(requests, told)


def judged_rollouts(judging: Judging, reward: RewardFunction, asked: Asked) -> list[Rollout]:
    """Drawn answers with their verdicts and rewards."""
    flat = [
        (group, problem, prompt, sample, completion)
        for (group, problem), prompt, answers in zip(*asked, strict=True)
        for sample, completion in enumerate(answers)
    ]
    wanted = asked.items()
    with timed("judge"):
        found = judging.verdicts(wanted)
    verdicts = {(problem.id, text): verdict for (problem, text), verdict in zip(wanted, found, strict=True)}
    rollouts = []
    with timed("reward"):
        for group, problem, prompt, sample, completion in flat:
            sampled = completion.finish is not Finish.ERROR
            verdict = verdicts[problem.id, completion.text] if sampled else unjudged("the sampler failed")
            given = None if verdict.correct is None else paid(reward, problem, completion, verdict)
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
    if completion.branches:
        row["branches"] = [branch._asdict() for branch in completion.branches]
    return row if steps is None else {**row, "steps": list(steps)}
