"""Limits that fit the problem: learnt from right answers, the same when a step is made again, honoured by the judge."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from rlvrlab.envs.code.generation import Code
from rlvrlab.judge.finding import STOPPED_EARLY
from rlvrlab.judge.jail.limits import Limits as JobLimits
from rlvrlab.rewards.binary import Binary, BinaryFormat
from rlvrlab.rewards.pass_ratio import Accepted, PassRatio
from rlvrlab.rewards.total import asks_only_whether_right
from rlvrlab.train.limits import FILE, Limits, limit_after
from rlvrlab.types import LIMIT, ONLY_OUTCOME, Completion, ErrorKind, Problem, Rollout, Verdict

P = [Problem(name, "env", "env", name.upper()) for name in "abc"]


def verdict(seconds: float, correct: bool | None = True) -> Verdict:
    return Verdict(correct, cost={"cpu_s": seconds})


def env_of(seconds: dict[str, float], asked: list[str] | None = None) -> Any:
    """References that take so long; a problem without one has no reference, one below 0 has a wrong one."""

    def verify_many(items: list[tuple[Problem, str]]) -> list[Verdict]:
        (asked if asked is not None else []).extend(problem.id for problem, _ in items)
        return [verdict(abs(seconds[p.id]), seconds[p.id] >= 0) for p, _ in items]

    return SimpleNamespace(gold=lambda p: "gold" if p.id in seconds else None, verify_many=verify_many)


def answered(problem: Problem, seconds: float, correct: bool | None = True, text: str = "") -> Rollout:
    return Rollout("r", "g", problem, (), Completion(text, (), ()), verdict(seconds, correct), None)


def limits_of(limits: Limits, step: int) -> list[float | None]:
    return [problem.meta.get(LIMIT) for problem in limits.fitted(P, step)]


def test_ten_times_the_reference_half_a_second_at_least(tmp_path: Path) -> None:
    asked: list[str] = []
    limits = Limits(env_of({"a": 0.001, "b": 0.213, "c": -0.3}, asked), tmp_path)
    assert limits_of(limits, 0) == [0.5, 2.2, None], "a reference that fails says nothing"
    assert limits_of(limits, 1) == [0.5, 2.2, None] and asked == ["a", "b", "c"], "each is run once"


def test_accepted_answers_raise_it_for_the_steps_after(tmp_path: Path) -> None:
    limits = Limits(env_of({"a": 0.001}), tmp_path)
    assert limits_of(limits, 0) == [0.5, None, None]
    slow = [answered(P[0], 0.07), answered(P[0], 0.12), answered(P[1], 0.3, False), answered(P[1], 0.2, None)]
    limits.learn(slow, 0)
    assert limits_of(limits, 0) == [0.5, None, None], "the step itself is not judged by what it taught"
    assert limits_of(limits, 1) == [1.2, None, None], "wrong and unjudged answers teach nothing"
    limits.learn([answered(P[0], 0.01), answered(P[2], 0.02)], 1)
    assert limits_of(limits, 2) == [1.2, None, 0.5], "never lowered"


def test_a_limit_taught_by_chance_is_given_up(tmp_path: Path) -> None:
    limits = Limits(env_of({"b": 0.1}), tmp_path)
    assert limits_of(limits, 0) == [None, 1.0, None]
    lucky = [answered(problem, 0.3, text="guess") for problem in P]
    limits.learn([*lucky, answered(P[2], 0.3, False, "another")], 0)
    assert limits_of(limits, 1) == [3.0, 3.0, 3.0], "answers that never taught anything may be refused"
    again = [answered(P[0], 0.3, False, "guess"), answered(P[1], 0.3, None, "guess"), answered(P[2], 0.3, text="guess")]
    limits.learn(again, 1)
    for known in (limits, Limits(env_of({}), tmp_path)):  # and as a run that was killed reads it
        assert limits_of(known, 1) == [3.0, 3.0, 3.0], "the step itself is not judged by what it taught"
        assert limits_of(known, 2) == [None, 3.0, 3.0], "refused later, unjudged later, right again"
        known.learn([answered(P[0], 0.2, text="sure")], 2)
        assert limits_of(known, 3) == [None, 3.0, 3.0], "once given up, the fixed limit stays"


def test_the_same_program_among_other_words_is_the_same_answer(tmp_path: Path) -> None:
    limits = Limits(env_of({}), tmp_path)
    limits.learn([answered(P[0], 0.3, text="Here it is: guess")], 0)
    assert limits_of(limits, 1) == [3.0, None, None]
    refused = answered(P[0], 0.3, False, text="Sure: guess")
    limits.learn([replace(refused, verdict=replace(refused.verdict, answer="guess"))], 1)
    assert limits_of(limits, 2) == [3.0, None, None], "other programs"
    for step, correct in ((2, True), (3, False)):
        told = answered(P[1], 0.3, correct, text=f"{step}: guess")
        limits.learn([replace(told, verdict=replace(told.verdict, answer="guess"))], step)
    assert limits_of(limits, 4) == [3.0, None, None]


def test_an_answer_right_and_refused_in_one_step_teaches_nothing(tmp_path: Path) -> None:
    limits = Limits(env_of({}), tmp_path)
    limits.learn([answered(P[0], 0.3, text="guess"), answered(P[0], 0.3, False, "guess")], 0)
    assert limits_of(limits, 1) == [None, None, None]


def test_no_answer_is_out_of_time_by_the_limit_that_it_has_taught() -> None:
    for cpu, wall in ((0.003, 0.1), (0.003, 2.7), (0.003, 4.0), (0.003, 5.4), (0.01, 10.0), (0.5, 40.0), (3.0, 3.0)):
        limit = limit_after(Verdict(True, cost={"cpu_s": cpu, "wall_s": wall}))
        allowed = JobLimits(cpu_s=limit).wall_or_default_s
        assert limit >= max(0.5, 10 * cpu) and allowed >= 2 * wall
    assert limit_after(Verdict(True, cost={"cpu_s": 0.003, "wall_s": 2.7})) == 0.5, "an answer that waits a little"


def test_a_step_made_again_reads_what_was_measured_the_first_time(tmp_path: Path) -> None:
    first = Limits(env_of({"a": 0.1, "b": 0.1, "c": 0.1}), tmp_path)
    used = []
    for step in range(3):
        used.append(limits_of(first, step))
        first.learn([answered(P[step], 0.2)], step)
    slower = Limits(env_of({"a": 9.0, "b": 9.0, "c": 9.0}), tmp_path)  # a busier machine, after a kill
    for step in range(3):
        assert limits_of(slower, step) == used[step]
        slower.learn([answered(P[step], 9.0)], step)
    assert limits_of(slower, 3) == [2.0, 2.0, 2.0]
    with (tmp_path / FILE).open("ab") as file:
        file.write(b'{"step": 3, "prob')  # killed while writing
    assert limits_of(Limits(env_of({}), tmp_path), 3) == [2.0, 2.0, 2.0]


def test_the_judge_stops_an_endless_program_at_the_problems_own_limit() -> None:
    env = Code(timeout_s=6.0)
    [problem] = env.problems("train", 1, seed=0)
    name = problem.reference["entry_point"]
    endless = f"```python\ndef {name}(*a):\n    while True: pass\n```"
    quick = env.verify(replace(problem, meta={**problem.meta, LIMIT: 0.2}), endless)
    assert quick.error is ErrorKind.TIMEOUT and quick.cost["cpu_s"] < 6.0
    assert env.seconds(problem, 6.0) == 6.0 and env.seconds(replace(problem, meta={LIMIT: 60.0}), 6.0) == 6.0


def test_a_program_that_a_test_ended_is_run_on_no_other_where_only_the_outcome_counts(tmp_path: Path) -> None:
    env = Code(timeout_s=6.0)
    tests = [f"assert f({n}) == {2 * n}" for n in range(3)]
    reference = {"entry_point": "f", "tests": tests, "setup": "", "begun": "", "inprocess": False}
    right, endless = (f"```python\ndef f(n):\n    {body}\n```" for body in ("return 2 * n", "while True: pass"))
    problem = Problem("p", "code", "code", "Double it.", reference, {"solution": right})
    fitted = [
        limits.fitted([problem], 0)[0] for limits in (Limits(env, tmp_path), Limits(env, tmp_path, only_outcome=True))
    ]
    assert [one.meta.get(ONLY_OUTCOME) for one in fitted] == [None, True]
    both = env.verify_many([(replace(one, meta={**one.meta, LIMIT: 0.2}), endless) for one in fitted])
    assert [(one.correct, one.error) for one in both] == [(False, ErrorKind.TIMEOUT)] * 2
    assert both[1].cost["cpu_s"] < both[0].cost["cpu_s"] / 2
    assert STOPPED_EARLY in both[1].flags
    assert all(one.correct for one in env.verify_many([(one, right) for one in fitted]))


def test_only_rewards_that_ask_nothing_else_of_a_verdict_let_tests_be_left_out() -> None:
    class Own(Binary):
        def __call__(self, problem: Any, completion: Any, verdict: Any) -> Any:
            return super().__call__(problem, completion, verdict)._replace(value=verdict.score)

    told = [asks_only_whether_right(one) for one in (Binary(), Accepted(), PassRatio(), BinaryFormat(), Own())]
    assert told == [True, True, False, False, False]
