"""What a record says where nothing was said: plug-ins and stored files rely on it."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from rlvrlab.types import Check, Completion, Sampling, Turn, Verdict


def test_a_verdict_claims_nothing_that_was_not_found() -> None:
    assert asdict(Verdict(correct=False)) == {
        "correct": False, "score": 0.0, "error": "none", "parts": {}, "passed": 0, "total": 0, "answer": None,
        "detail": "", "isolation": "none", "flags": (), "cost": {},
    }  # fmt: skip


def test_plain_sampling_is_the_policy_itself() -> None:
    plain = Sampling()
    assert (plain.temperature, plain.top_p, plain.stop) == (1.0, 1.0, ())


def test_only_what_tools_wrote_was_given() -> None:
    turns = (Turn("policy", "a", (0, 2)), Turn("tool", "b", (2, 5), "calculator"), Turn("policy", "c", (5, 6)))
    assert Completion("abc", (1, 2, 3, 4, 5, 6), (0.0,) * 6, turns=turns).given == [(2, 5)]


@pytest.mark.parametrize(
    ("correct", "expected", "ok"), [(True, True, True), (False, True, False), (None, False, False)]
)
def test_an_answer_that_could_not_be_judged_passes_no_check(correct: bool | None, expected: bool, ok: bool) -> None:
    assert Check("gold", "answer", expected, Verdict(correct)).ok is ok
