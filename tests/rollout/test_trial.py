"""The trial call of a verifier and a reward of the user's own, before anything is trained."""

from __future__ import annotations

from typing import Any

import pytest

import rlvrlab
from rlvrlab.errors import OwnCodeError
from rlvrlab.rewards.function import reward_class
from rlvrlab.rollout.trial import MOST, spread, try_all
from rlvrlab.types import Problem

KINDS = ("cold", "soft", "fragile")


def rows(answer: Any = str) -> list[dict[str, Any]]:
    return [{"prompt": f"parcel {n}\n", "answer": answer(n), "skill": KINDS[n % 3]} for n in range(90)]


def attempt(table: Any = None, reward: Any = None, **functions: Any) -> None:
    """What training does first, with an environment of these functions."""
    functions = {"verify": lambda problem, text: text.strip() == problem.reference, **functions}
    env: Any = rlvrlab.environment(rows() if table is None else table, name="parcels", **functions)
    pays = reward_class("", reward or (lambda problem, completion, verdict: float(verdict.correct)))
    assert pays is not None
    try_all(env, pays(), env.asked, own_env=True)


def test_functions_that_agree_pass() -> None:
    attempt(gold=lambda problem: problem.reference)
    attempt()
    attempt(rows(int), verify=lambda problem, text: text == str(problem.reference), gold=lambda p: p.reference)
    attempt(verify=lambda problem, text: text == f"<{problem.reference}>")  # a form, which nobody can guess


def test_a_right_answer_that_is_rejected_is_refused_with_what_was_said() -> None:
    upper = [{**row, "answer": f"F{row['answer']}"} for row in rows()]
    words = (
        r"environment 'parcels' rejects its own right answer to problem parcels:\w+ \('parcel 0'\): gold gave 'f0', "
        r"the reference is 'F0', verify said wrong_answer \(score 0\); mend gold, verify or the row"
    )
    with pytest.raises(OwnCodeError, match=words):
        attempt(upper, gold=lambda problem: problem.reference.lower())
    with pytest.raises(OwnCodeError, match="rejects its own right answer"):
        attempt(verify=lambda problem, text: False, gold=lambda problem: problem.reference)


def test_what_goes_wrong_for_one_skill_only_is_found() -> None:
    def gold(problem: Problem) -> Any:
        return "?" if problem.skill == "fragile" else problem.reference

    with pytest.raises(OwnCodeError, match=r"rejects its own right answer to problem parcels:\w+ \('parcel \d+'\)"):
        attempt(gold=gold)

    def pays(problem: Problem, completion: Any, verdict: Any) -> Any:
        return None if problem.skill == "soft" else 1.0

    with pytest.raises(OwnCodeError, match=r"'pays' \(.*\) gave None for problem parcels:\w+ \('parcel \d+'\); return"):
        attempt(reward=pays)


@pytest.mark.parametrize("gold", [None, lambda problem: problem.reference])
def test_a_reference_of_the_other_kind_is_told_as_that(gold: Any) -> None:
    with pytest.raises(
        OwnCodeError, match=r"reference 0 is int, and '0' is accepted only where it is str; compare with str"
    ):
        attempt(rows(int), gold=gold)
    with pytest.raises(
        OwnCodeError, match=r"reference '0' is str, and '0' is accepted only where it is int; compare with i"
    ):
        attempt(verify=lambda problem, text: text.isdigit() and int(text) == problem.reference, gold=gold)


def test_problems_are_spread_over_skills_and_roles() -> None:
    asked = [Problem(str(n), "s", KINDS[n > 97], "p", role="dev" if n == 99 else "train") for n in range(100)]
    chosen = [int(one.id) for one in spread(asked)]
    assert chosen[:3] == [0, 98, 99] and len(chosen) == len(set(chosen)) == MOST and 40 < sorted(chosen)[MOST // 2] < 60
    assert [one.id for one in spread(asked[:3])] == ["0", "1", "2"] and spread([]) == []
    many = [Problem(str(n), "s", str(n), "p") for n in range(99)]
    assert len(spread(many)) == MOST


def test_a_slow_function_is_tried_on_fewer_problems(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def verify(problem: Problem, text: str) -> bool:
        asked.append(problem.id)
        return text == problem.reference

    monkeypatch.setattr("rlvrlab.rollout.trial.time.perf_counter", lambda: 6.0 * len(asked))
    attempt(verify=verify, gold=lambda problem: problem.reference)
    assert len(set(asked)) == 1


def test_partial_credit_is_tried_on_right_answers_to_other_problems_and_the_answer_is_named() -> None:
    """A wrong answer of the right kind is where partial credit is computed; a plainly wrong one never gets there."""

    def near(problem: Problem, completion: Any, verdict: Any) -> float:
        if not verdict.correct and completion.text.isdigit():
            return 1 / (int(completion.text) - int(completion.text))
        return float(verdict.correct)

    with pytest.raises(OwnCodeError, match=r"on the neighbour's answer '\d+': reward function .* ZeroDivisionError"):
        attempt(reward=near, gold=lambda problem: problem.reference)

    def length(problem: Problem, completion: Any, verdict: Any) -> float:
        return 1 / len(completion.text)

    with pytest.raises(OwnCodeError, match=r"on the empty answer '': reward function .* ZeroDivisionError"):
        attempt(reward=length, gold=lambda problem: problem.reference)
