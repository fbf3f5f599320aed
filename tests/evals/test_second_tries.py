"""Second tries in evaluations: recovery of any policy, engine or server, beside its blind control."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripted import Scripted, Sums, answer, right

from rlvrlab.errors import UserError
from rlvrlab.evals.answering import BLIND, Ask
from rlvrlab.evals.evaluate import evaluate
from rlvrlab.evals.kept import evaluate_into
from rlvrlab.evals.protocol import eval_at_1, eval_at_k, named_protocol
from rlvrlab.types import Problem, Verdict

TWICE = named_protocol("@1", tries=2)


class Patient(Sums):
    """Says what was wrong."""

    def second_turn(self, problem: Problem, text: str, verdict: Verdict) -> str:
        return f"{problem.prompt}; {text} is wrong"


def mends_the_even(ask: Ask):
    """Wrong at first; after feedback right for even numbers; blind tries are right for number 0 alone."""
    number = int(ask.problem.id[1:])
    if ask.turn == 1:
        assert ask.prompt == f"{ask.problem.prompt}; 99 is wrong"
    good = (ask.turn == 1 and number % 2 == 0) or (ask.turn == BLIND and number == 0)
    return answer(str(ask.problem.reference) if good else "99")


def test_failed_first_answers_are_tried_again_and_counted_beside_blind_tries() -> None:
    env = Patient()
    problems = env.problems("test", 4)
    policy = Scripted(mends_the_even)
    metrics = evaluate(policy, env, problems, TWICE).metrics()
    assert metrics["accepted_at_1"] == 0 and metrics["samples"] == 4, "first tries alone"
    assert metrics["recovery_rate"] == pytest.approx(0.5) and metrics["blind_recovery_rate"] == pytest.approx(0.25)
    assert metrics["accepted_after_repair"] == pytest.approx(0.5)
    assert metrics["cost_per_solved_tokens"] == pytest.approx(4 * 8 / 2), "blind tries are nobody's cost"
    assert "recovery_rate" not in evaluate(Scripted(right), env, problems, TWICE).metrics(), "nothing to mend"


def test_an_interrupted_second_try_is_gone_on_with(tmp_path: Path) -> None:
    env = Patient()
    problems = env.problems("test", 4)
    whole = evaluate_into(tmp_path / "whole", Scripted(mends_the_even), env, problems, TWICE)
    evaluate_into(tmp_path / "half", Scripted(mends_the_even), env, problems, TWICE)
    samples = tmp_path / "half" / "samples.jsonl"
    lines = samples.read_bytes().splitlines(keepends=True)
    samples.write_bytes(b"".join(lines[:7]) + lines[7][:20])
    again = Scripted(mends_the_even)
    half = evaluate_into(tmp_path / "half", again, env, problems, TWICE)
    assert len(again.asked) == 12 - 7
    names = ("recovery_rate", "blind_recovery_rate", "accepted_at_1")
    assert [half.metrics[name] for name in names] == [whole.metrics[name] for name in names]


def test_second_tries_need_feedback_and_leave_the_hash_of_first_tries_alone() -> None:
    with pytest.raises(UserError, match="no feedback"):
        evaluate(Scripted(mends_the_even), Sums(), Sums().problems("test", 2), TWICE)
    assert eval_at_1().hash == named_protocol("@1").hash != TWICE.hash
    assert "tries" not in eval_at_k().facts()
    with pytest.raises(UserError, match="1 under EVAL@budget"):
        named_protocol("@budget", budget="tokens=5", tries=2)
