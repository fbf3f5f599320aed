"""What the fan-out does when workers misbehave, with a stand-in for Ray: no cluster, no waiting."""

from __future__ import annotations

import re
import time
from types import SimpleNamespace
from typing import Any

import pytest
from scripted import Scripted, Sums, answer, right

from rlvrlab.engines.openai import ModelChanged
from rlvrlab.errors import InfrastructureError, JudgeLost, UserError
from rlvrlab.evals.answering import Ask
from rlvrlab.evals.evaluate import evaluate
from rlvrlab.evals.protocol import eval_at_1
from rlvrlab.scale.code_version import code_version
from rlvrlab.scale.examiner import Examiner, _facts, raise_told
from rlvrlab.scale.fan_out import RayAnswerer


class RayError(Exception): ...


class RayTaskError(RayError): ...


class Streamed:
    """A worker's method: gives a stream, as Ray's streaming generators do."""

    def __init__(self, method: Any) -> None:
        self._method = method

    def options(self, **_: Any) -> Streamed:
        return self

    def remote(self, *given: Any) -> Any:
        return self._method(*[list(one) for one in given])  # a worker has a copy


class Standin:
    """Ray's verbs, done at once in this process."""

    exceptions = SimpleNamespace(RayError=RayError, RayTaskError=RayTaskError)

    def wait(self, streams: list[Any], num_returns: int) -> Any:
        return streams[:num_returns], streams[num_returns:]

    def get(self, told: Any, timeout: float | None = None) -> Any:
        if isinstance(told, Exception):
            raise told
        return told

    def cancel(self, stream: Any) -> None: ...

    def kill(self, worker: Any) -> None: ...


def fan_out(answers: Any, workers: int = 2) -> RayAnswerer:
    made = RayAnswerer(lambda request: None, {})  # type: ignore[arg-type, return-value]
    made._ray = Standin()
    made._new_worker = lambda: SimpleNamespace(answer=Streamed(answers))  # type: ignore[method-assign]
    made._workers = [made._new_worker() for _ in range(workers)]
    made._identity = {"kind": "standin"}
    return made


def examiner(reply: Any = right) -> Any:
    one = Examiner(None, {}, {}, ".")
    one._opened, one._answerer, one._env = object(), Scripted(reply), Sums()
    return one


def test_a_question_that_kills_workers_stays_unjudged_and_the_rest_is_right() -> None:
    def answers(asks: list[Ask]) -> Any:
        for ask in asks:
            if ask.problem.id == "s7":
                yield RayError("died")
                return
            yield from examiner().answer([ask])

    env = Sums()
    spread = fan_out(answers)
    found = evaluate(spread, env, env.problems("test", 20), eval_at_1())
    verdicts = {one.problem.id: one.verdict.correct for one in found.judged}
    assert verdicts.pop("s7") is None and set(verdicts.values()) == {True} and len(verdicts) == 19
    assert env.judged == 0, "the workers judge, not the driver"
    assert spread.replaced <= 3 + 2  # halves, until it is alone
    assert "3 Ray workers died over it" in next(one.answer.error for one in found.judged if one.problem.id == "s7")


@pytest.mark.parametrize("others", [[], ["9.9.9"], [code_version().partition("+")[0] + "+000000000000"]])
def test_workers_with_other_code_are_refused_before_anything_is_asked(others: list[str]) -> None:
    """Also where the version number is the same: an edited copy may score in another way."""
    spread = fan_out(None)
    told = [{"version": version, "identity": {"kind": "toy"}} for version in [code_version(), *others]]
    spread._workers = [SimpleNamespace(introduce=SimpleNamespace(remote=lambda one=one: one)) for one in told]
    if not others:
        assert spread._first_words() == {"kind": "toy"}
        return
    with pytest.raises(UserError, match=f"run rlvrlab {re.escape(others[0])}; here it is .*same code on all machines"):
        spread._first_words()


def test_a_bug_in_a_worker_is_said_and_not_retried() -> None:
    def answers(asks: list[Ask]) -> Any:
        yield RayTaskError("traceback …\nKeyError: 'target'")

    env = Sums()
    with pytest.raises(InfrastructureError, match="KeyError: 'target'"):
        evaluate(fan_out(answers), env, env.problems("test", 4), eval_at_1())


@pytest.mark.parametrize("error", [JudgeLost("no judge"), UserError("no such key"), InfrastructureError("no server")])
def test_deliberate_errors_arrive_as_what_they_were(error: Exception) -> None:
    def raising(ask: Ask) -> Any:
        raise error

    env = Sums()
    with pytest.raises(type(error), match=str(error)):
        evaluate(fan_out(lambda asks: examiner(raising).answer(asks)), env, env.problems("test", 4), eval_at_1())


def test_a_changed_model_is_dated_on_this_machines_clock() -> None:
    with pytest.raises(InfrastructureError, match="never mixed") as raised:
        raise_told({"error": _facts(ModelChanged("http://a", time.monotonic() - 5, "other weights"))})
    assert raised.value.server == "http://a"  # type: ignore[attr-defined]
    assert time.monotonic() - raised.value.since == pytest.approx(5, abs=1)  # type: ignore[attr-defined]


def test_what_could_not_be_judged_there_is_asked_again_here() -> None:
    env, spread = Sums(), fan_out(lambda asks: examiner(lambda ask: answer("broken")).answer(asks))
    found = evaluate(spread, env, env.problems("test", 3), eval_at_1())
    assert [one.verdict.correct for one in found.judged] == [None] * 3 and env.judged == 0
