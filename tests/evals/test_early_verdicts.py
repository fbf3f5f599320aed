"""An evaluation's answers are judged while others are drawn and scored, and nothing but the time depends on it."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import pytest
from scripted import Sums

from rlvrlab.cli.eval import AnswersBar
from rlvrlab.errors import JudgeLost
from rlvrlab.evals.answering import EngineAnswerer
from rlvrlab.evals.evaluate import Evaluation, evaluate
from rlvrlab.evals.protocol import eval_at_1
from rlvrlab.notes import ANSWERS, counted, counting, made
from rlvrlab.types import Completion, Finish, Problem, Verdict

WAIT_S = 20


class Elsewhere(Sums):
    """Judges as if in other processes, and remembers who asked for which verdict."""

    judged_elsewhere = True

    def __init__(self, lost: bool = False) -> None:
        super().__init__()
        self.first, self.lost = threading.Event(), lost
        self.asked: list[tuple[str, str]] = []
        self.threads: set[str] = set()

    def verify_many(self, items: Any) -> list[Verdict]:
        self.asked += [(problem.id, text) for problem, text in items]
        self.threads.add(threading.current_thread().name)
        self.first.set()
        if self.lost:
            raise JudgeLost("gone")
        return [self.verify(problem, text) for problem, text in items]


class Tokenizer:
    def encode(self, text: str) -> tuple[int, ...]:
        return tuple(map(ord, text))


@dataclass
class Plain:
    """Answers every sum rightly; scoring waits until somebody has judged, where that is to be seen."""

    env: Elsewhere
    waits: bool = False
    name: ClassVar[str] = "plain"
    tokenizer: ClassVar[Tokenizer] = Tokenizer()
    drawn: list[Completion] = field(default_factory=list)

    def sample(self, requests: Any) -> list[list[Completion]]:
        sums = ["".join(map(chr, request.tokens)).split(" + ") for request in requests]
        self.drawn = [Completion(str(int(a) + int(b)), (1,), (0.0,), Finish.STOP) for a, b in sums]
        self.drawn[1:2] = [Completion("", (), (), Finish.ERROR)]
        return [[one] for one in self.drawn]

    def logprobs(self, batch: Any, policy: str = "current") -> tuple[Any, Any]:
        assert not self.waits or self.env.first.wait(WAIT_S), "no answer was judged before all were scored"
        return np.zeros(batch.tokens_BT.shape), np.ones(batch.tokens_BT.shape)


class Streaming(Plain):
    """Tells of answers one by one; before the last it waits until the first has been judged."""

    def sample_streaming(self, requests: Any, told: Any) -> list[list[Completion]]:
        groups = self.sample(requests)
        for i, (one,) in enumerate(groups):
            last = i == len(groups) - 1
            assert not (last and self.waits) or self.env.first.wait(WAIT_S), "none was judged before the last was drawn"
            told([(i, 0, one)])
        told([(0, 0, groups[0][0])])  # once more, as after running out of memory
        return groups


def examined(kind: type[Plain], env: Elsewhere, problems: list[Problem], **settings: Any) -> Evaluation:
    return evaluate(EngineAnswerer(kind(env, **settings), entropy=True), env, problems, eval_at_1(8))  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [Plain, Streaming])
def test_the_first_answer_is_judged_before_the_last_is_drawn_or_scored(kind: type[Plain]) -> None:
    env = Elsewhere()
    problems = env.problems("test", 4)
    found = examined(kind, env, problems, waits=True)
    assert [one.verdict.correct for one in found.judged] == [True, None, True, True]
    assert sorted(env.asked) == [(p.id, str(p.reference)) for i, p in enumerate(problems) if i != 1], "each once"


def test_a_verifier_in_this_process_is_asked_by_it_alone_and_nothing_is_streamed() -> None:
    class Here(Elsewhere):
        judged_elsewhere = False

    class Refusing(Streaming):
        def sample_streaming(self, requests: Any, told: Any) -> list[list[Completion]]:
            raise AssertionError("nobody can judge early here")

    env = Here()
    assert [one.verdict.correct for one in examined(Refusing, env, env.problems("test", 2)).judged] == [True, None]
    assert env.threads == {threading.current_thread().name}


@pytest.mark.parametrize("elsewhere", [True, False])
def test_who_counts_hears_of_every_answer_as_it_is_drawn(elsewhere: bool) -> None:
    heard: list[tuple[str, int, int]] = []
    at_judging: list[int] = []

    class Env(Elsewhere):
        judged_elsewhere = elsewhere

        def verify_many(self, items: Any) -> list[Verdict]:
            at_judging.append(len(heard))
            return super().verify_many(items)

    env = Env()
    with counting(lambda *told: heard.append(told)):
        examined(Streaming, env, env.problems("test", 3), waits=elsewhere)
    assert heard == [(ANSWERS, 1, 3), (ANSWERS, 2, 3), (ANSWERS, 3, 3), (ANSWERS, 3, 3)], (
        "the one told twice is no fourth"
    )
    assert at_judging[0] in ((1, 2) if elsewhere else (4,))


def test_the_bar_says_how_many_of_the_next_answers_are_drawn_and_that_is_no_silence() -> None:
    signs: list[int] = []
    with AnswersBar(10, True, lambda: signs.append(1)) as bar:
        with counted("train problems", 10):
            made(4)
        assert not signs, "problems are no answers"
        with counted(ANSWERS, 5):
            made(2)
        assert bar._bars.tasks[0].fields["facts"] == "2 of the next 5 drawn" and len(signs) == 1
        env = Elsewhere()
        bar.observe(list(examined(Plain, env, env.problems("test", 4)).judged))
        with counted(ANSWERS, 5):
            made(3)
        assert bar._bars.tasks[0].fields["facts"] == "accepted 100.0 %  unjudged 1  3 of the next 5 drawn"
    with counted(ANSWERS, 5):
        made(4)
    assert "3 of the next 5" in bar._bars.tasks[0].fields["facts"], "nobody listens behind the bar"


def test_answers_to_problems_with_tools_are_not_judged_before_their_tools_have_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    env = Elsewhere()
    problems = [replace(problem, meta={"tools": []}) for problem in env.problems("test", 2)]

    def whole(engine: Any, problems: Any, requests: Any, groups: Any) -> list[list[Completion]]:
        return [[Completion("7", (1,), (0.0,), Finish.STOP)] for _ in groups]

    monkeypatch.setattr("rlvrlab.rollout.episodes.with_tools", whole)
    examined(Streaming, env, problems)
    assert env.asked == [("s0", "7"), ("s1", "7")]


def test_a_judge_that_is_lost_while_answers_are_drawn_ends_the_evaluation() -> None:
    env = Elsewhere(lost=True)
    with pytest.raises(JudgeLost, match="gone"):
        examined(Streaming, env, env.problems("test", 3), waits=True)


def test_seconds_of_judging_are_told_although_nobody_waited_for_them() -> None:
    class Slow(Elsewhere):
        def verify_many(self, items: Any) -> list[Verdict]:
            time.sleep(0.05 * len(items))
            return super().verify_many(items)

    env = Slow()
    found = examined(Streaming, env, env.problems("test", 3), waits=True)
    assert [one.judge_s > 0.04 for one in found.judged] == [True, False, True]
