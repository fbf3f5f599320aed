"""Answers are judged while others are still being drawn, and nothing but the time depends on it."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import ClassVar

import pytest

from rlvrlab.envs.base import BaseEnvironment
from rlvrlab.errors import JudgeLost
from rlvrlab.rollout.collect import collect
from rlvrlab.types import Completion, Finish, Problem, Reward, Sampling, Verdict

PROBLEMS = [Problem("a", "env", "env", "A", "right"), Problem("b", "env", "env", "B", "right")]


class Tokenizer:
    def encode(self, text: str) -> tuple[int, ...]:
        return tuple(map(ord, text))


@dataclass
class Stream:
    """Tells of one answer after the other; before the last one it waits until the first has been judged."""

    texts: tuple[str, ...]
    judged: threading.Event
    tokenizer: ClassVar[Tokenizer] = Tokenizer()

    def sample(self, requests):
        raise AssertionError("it can stream")

    def sample_streaming(self, requests, told):
        failed = Finish.ERROR
        out = [[Completion(t, (1,), (0.0,), Finish.STOP if t else failed) for t in self.texts] for _ in requests]
        last = (len(requests) - 1, len(self.texts) - 1)
        for i, group in enumerate(out):
            for sample, completion in enumerate(group):
                if (i, sample) == last:
                    assert self.judged.wait(20), "the first answer was not judged before the last was drawn"
                told([(i, sample, completion)])
        told([(0, 0, out[0][0])])  # once more, as after running out of memory
        return out


@dataclass(frozen=True)
class Elsewhere(BaseEnvironment):
    judged: threading.Event
    seen: list[tuple[str, str]] = field(default_factory=list)
    raises: type[Exception] | None = None
    judged_elsewhere: ClassVar[bool] = True  # type: ignore[misc]
    name: ClassVar[str] = "elsewhere"
    version: ClassVar[str] = "1"

    def problems(self, role, size, seed):
        return PROBLEMS

    def verify(self, problem, text):
        raise AssertionError

    def verify_many(self, items):
        self.seen.extend((problem.id, text) for problem, text in items)
        self.judged.set()
        if self.raises:
            raise self.raises("gone")
        return [Verdict(correct=text == problem.reference) for problem, text in items]


def reward(problem, completion, verdict):
    return Reward(float(verdict.correct))


def run(texts, env):
    return collect(Stream(texts, env.judged), env, reward, PROBLEMS, n=len(texts), sampling=Sampling(4), key=(1,))


def test_the_first_answer_is_judged_before_the_last_is_drawn() -> None:
    env = Elsewhere(threading.Event())
    rollouts = run(("right", "wrong", "", "right"), env)
    assert [r.verdict.correct for r in rollouts] == [True, False, None, True] * 2
    assert [r.reward and r.reward.value for r in rollouts] == [1.0, 0.0, None, 1.0] * 2
    assert sorted(env.seen) == [(p, t) for p in "ab" for t in ("right", "wrong")], "each answer once"


def test_a_judge_lost_on_the_way_ends_the_collection() -> None:
    with pytest.raises(JudgeLost, match="gone"):
        run(("right", "wrong"), Elsewhere(threading.Event(), raises=JudgeLost))


def test_a_verifier_in_this_process_is_not_asked_by_threads() -> None:
    class Here(Elsewhere):
        judged_elsewhere = False
        callers: ClassVar[set[str]] = set()

        def verify_many(self, items):
            self.callers.add(threading.current_thread().name)
            return super().verify_many(items)

    class Plain(Stream):
        def sample(self, requests):
            self.judged.set()
            return self.sample_streaming(requests, lambda complete: None)

    env = Here(threading.Event())
    rollouts = collect(Plain(("right", "wrong"), env.judged), env, reward, PROBLEMS, n=2, sampling=Sampling(4), key=())
    assert [r.verdict.correct for r in rollouts] == [True, False] * 2
    assert env.callers == {threading.current_thread().name}
