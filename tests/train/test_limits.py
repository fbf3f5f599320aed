"""Limits that fit the problem: learnt from right answers, the same when a step is made again, honoured by the judge."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from rlvrlab.envs.code.generation import Code
from rlvrlab.train.limits import FILE, Limits
from rlvrlab.types import LIMIT, Completion, ErrorKind, Problem, Rollout, Verdict

P = [Problem(name, "env", "env", name.upper()) for name in "abc"]


def verdict(seconds: float, correct: bool | None = True) -> Verdict:
    return Verdict(correct, cost={"cpu_s": seconds})


def env_of(seconds: dict[str, float], asked: list[str] | None = None) -> Any:
    """References that take so long; a problem without one has no reference, one below 0 has a wrong one."""

    def verify_many(items: list[tuple[Problem, str]]) -> list[Verdict]:
        (asked if asked is not None else []).extend(problem.id for problem, _ in items)
        return [verdict(abs(seconds[p.id]), seconds[p.id] >= 0) for p, _ in items]

    return SimpleNamespace(gold=lambda p: "gold" if p.id in seconds else None, verify_many=verify_many)


def answered(problem: Problem, seconds: float, correct: bool | None = True) -> Rollout:
    return Rollout("r", "g", problem, (), Completion("", (), ()), verdict(seconds, correct), None)


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
