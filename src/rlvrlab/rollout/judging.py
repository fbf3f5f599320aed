"""Verdicts on their way: answers are judged while others are still being drawn.

A step waits only for verdicts that are missing when its last answer is drawn, so one endless program no longer holds up
everything behind it. What is judged does not depend on this: every answer is judged by itself, and a verdict that
failed to come raises where it is asked for, as if it had been asked for there.

Only environments that say `judged_elsewhere` are asked early: their verifier waits for other processes, while one that
computes in this process would take the time from the sampler.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Self

from rlvrlab.envs.base import BaseEnvironment
from rlvrlab.types import Completion, Environment, Finish, Problem, Request, Sampler, StreamingSampler, Verdict

THREADS = 32
"""Calls of the verifier that may wait abreast; the judge itself decides how many programs run."""
Item = tuple[Problem, str]


class Judging:
    """The answers handed in so far; use it as a context, which gives up what nobody waited for."""

    def __init__(self, env: Environment) -> None:
        self.env = env
        self.early = isinstance(env, BaseEnvironment) and env.judged_elsewhere
        """Does handing in early save time?"""
        self._threads = ThreadPoolExecutor(THREADS, "rlvr-verdicts") if self.early else None
        self._coming: dict[tuple[str, str], tuple[Future[list[Verdict]], int]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)

    def hand_in(self, items: Sequence[Item]) -> None:
        """Have these judged in the background; equal answers to one problem are judged once."""
        fresh = {(p.id, text): (p, text) for p, text in items if (p.id, text) not in self._coming}
        if self._threads is None or not fresh:
            return
        future = self._threads.submit(self.env.verify_many, list(fresh.values()))
        self._coming |= {key: (future, place) for place, key in enumerate(fresh)}

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
