"""From problems to judged answers, with a sampler and a verifier that fail."""

from __future__ import annotations

import math

import pytest

from rlvrlab.errors import OwnCodeError
from rlvrlab.rollout.collect import as_row, collect
from rlvrlab.types import Completion, Finish, Problem, Reward, Sampling, Verdict


class Tokenizer:
    def encode(self, text: str) -> tuple[int, ...]:
        return tuple(map(ord, text))


class Sampler:
    """Answers what it is told to; an answer of None is the sampler's failure."""

    tokenizer = Tokenizer()

    def __init__(self, *answers: str | None) -> None:
        self.answers = answers

    def sample(self, requests):
        self.keys = [request.key for request in requests]
        return [
            [Completion(a or "", (1,), (0.0,), Finish.ERROR if a is None else Finish.STOP) for a in self.answers]
            for _ in requests
        ]


class Env:
    def __init__(self) -> None:
        self.judged: list[tuple[str, str]] = []

    def verify_many(self, items):
        self.judged += [(problem.id, text) for problem, text in items]
        return [Verdict(correct=text == problem.reference, score=0.5) for problem, text in items]


PROBLEMS = [Problem("a", "env", "env", "A", "x"), Problem("b", "env", "env", "B", "")]


def run(sampler: Sampler, env: Env, reward=lambda problem, completion, verdict: Reward(float(verdict.correct))):
    return collect(sampler, env, reward, PROBLEMS, n=len(sampler.answers), sampling=Sampling(4), key=(7, "grpo", 3))


def test_a_failed_sample_stays_unjudged_even_beside_an_equal_answer() -> None:
    env = Env()
    rollouts = run(Sampler("", None, "x"), env)
    assert [r.verdict.correct for r in rollouts] == [False, None, True, True, None, False]
    assert [None if r.reward is None else r.reward.value for r in rollouts] == [0, None, 1, 1, None, 0]
    assert sorted(env.judged) == [("a", ""), ("a", "x"), ("b", ""), ("b", "x")]


def test_equal_answers_to_one_problem_are_judged_once() -> None:
    env = Env()
    assert len(run(Sampler("x", "x", "x"), env)) == 6
    assert env.judged == [("a", "x"), ("b", "x")]


def test_ids_and_keys_name_step_problem_and_sample() -> None:
    sampler = Sampler("x", "y")
    rollouts = run(sampler, Env())
    assert sampler.keys == [(7, "grpo", 3, "a"), (7, "grpo", 3, "b")]
    assert [r.id for r in rollouts] == ["7/grpo/3/a/0", "7/grpo/3/a/1", "7/grpo/3/b/0", "7/grpo/3/b/1"]
    assert rollouts[0].group_id == rollouts[1].group_id == "7/grpo/3/a" and rollouts[2].prompt_tokens == (66,)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_reward_that_is_no_number_stops_the_run(value: float) -> None:
    with pytest.raises(OwnCodeError, match="finite"):
        run(Sampler("x"), Env(), lambda *_: Reward(value))


def test_rows_hold_what_rescoring_needs() -> None:
    first, failed = (as_row(r) for r in run(Sampler("x", None), Env())[:2])
    assert (first["prompt"], first["reference"], first["completion"], first["correct"]) == ("A", "x", "x", True)
    assert (failed["reward"], failed["correct"], failed["error"], failed["finish"]) == (None, None, "infra", "error")
