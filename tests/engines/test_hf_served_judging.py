"""A server that draws is lost while verdicts are out: they are kept, and what it had not drawn is drawn later."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import needs_torch  # noqa: F401
import pytest
from local_server import LocalServer
from test_hf_served import engine, server, short_waits  # noqa: F401

from rlvrlab.engines.hf import served
from rlvrlab.envs.base import BaseEnvironment
from rlvrlab.rollout.collect import Judging, ask, collect, judged_rollouts
from rlvrlab.types import Completion, Problem, Reward, Role, Sampling, Verdict

pytestmark = pytest.mark.slow
WAIT_S = 60.0
PROBLEMS = [Problem(f"p{i}", "env", "env", f"{i} + 2 =") for i in range(5)]
HOW = {"n": 4, "sampling": Sampling(10), "key": (0, "grpo", 0)}


@dataclass(frozen=True)
class Waited(BaseEnvironment):
    """Verdicts that come when somebody says so."""

    asked: threading.Event = field(default_factory=threading.Event)
    may_answer: threading.Event = field(default_factory=threading.Event)
    seen: list[tuple[str, str]] = field(default_factory=list)
    judged_elsewhere: ClassVar[bool] = True  # type: ignore[misc]
    name: ClassVar[str] = "waited"
    version: ClassVar[str] = "1"

    def problems(self, role: Role, size: int, seed: int) -> list[Problem]:
        return PROBLEMS

    def verify(self, problem: Problem, text: str) -> Verdict:
        raise AssertionError

    def verify_many(self, items: Sequence[tuple[Problem, str]]) -> list[Verdict]:
        self.seen.extend((problem.id, text) for problem, text in items)
        self.asked.set()
        assert self.may_answer.wait(WAIT_S)
        return [Verdict(correct=len(text) % 2 == 0) for _, text in items]


def reward(problem: Problem, completion: Completion, verdict: Verdict) -> Reward:
    return Reward(float(bool(verdict.correct)))


@pytest.fixture
def missed(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set when an engine that was made after this says that it misses its server."""
    happened, say = threading.Event(), served._say

    def noticed(words: str) -> None:
        say(words)
        happened.set()

    monkeypatch.setattr(served, "_say", noticed)
    monkeypatch.setattr(served, "WAIT_S", WAIT_S)
    return happened


def lost_after(answers: int, server: LocalServer, env: Waited, missed: threading.Event) -> threading.Thread:  # noqa: F811
    """After so many more answers it hangs up; it is gone once a verdict is out, and comes back when it was missed."""
    first = len(server.asked)

    def fall() -> None:
        assert env.asked.wait(WAIT_S), "nothing is judged while the others are drawn"
        server.die()
        assert missed.wait(WAIT_S)
        server.spoil = lambda body, right, number: right
        server.mute = False
        server.revive()

    falling = threading.Thread(target=fall)

    def hangs_up(body: dict[str, object], right: dict[str, object], number: int) -> dict[str, object] | None:
        if number == first + answers:
            server.mute = True
            falling.start()
        return right if number < first + answers else None

    server.spoil = hangs_up
    return falling


@pytest.mark.parametrize("lag", [0, 1])
def test_verdicts_that_are_out_are_kept_while_the_sampler_is_waited_for(
    server: LocalServer,  # noqa: F811
    missed: threading.Event,
    lag: int,
) -> None:
    """Without lag they are verdicts on answers of the same step, with lag on those of the step before."""
    here, there, free, env = engine(), engine(server.url), Waited(), Waited()
    free.may_answer.set()
    wanted = collect(here, free, reward, PROBLEMS, **HOW)
    with Judging(env) as judging:
        if lag:
            before = ask(there, None, PROBLEMS, **HOW)
            judging.hand_in(before.items())
        falling = lost_after(2, server, env, missed)
        drawn = ask(there, None if lag else judging, PROBLEMS, **HOW)
        falling.join()
        assert env.seen and not env.may_answer.is_set(), "all this while verdicts were out"
        env.may_answer.set()
        found = judged_rollouts(judging, reward, before if lag else drawn)
    for one, other in zip(found, wanted, strict=True):
        assert (one.id, one.completion.tokens, one.verdict.correct) == (
            other.id,
            other.completion.tokens,
            other.verdict.correct,
        )
    assert [one.tokens for group in drawn.answers for one in group] == [one.completion.tokens for one in wanted]
    assert len(set(env.seen)) == len(env.seen), "each answer is judged once"
