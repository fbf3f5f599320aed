"""rlvrlab.environment: rows, roles and what a plain verifier may return."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from largest import ROWS, larger

import rlvrlab
from rlvrlab import UserError, Verdict


def judged(value: Any) -> Verdict:
    env = rlvrlab.environment(ROWS, verify=lambda problem, text: value, name="fixed")
    return env.verify_many([(env.problems("train", 1, 0)[0], "7")])[0]


def test_roles_come_from_content_and_never_share_a_problem() -> None:
    env = larger()
    by_role = {role: env.problems(role, 1000, 0) for role in ("train", "dev", "test")}
    keys = [problem.key for problems in by_role.values() for problem in problems]
    assert len(keys) == len(set(keys)) == len(ROWS)
    assert len(by_role["train"]) > 6 * len(by_role["dev"]) > 0 < len(by_role["test"])
    assert env.problems("train", 5, 1) == larger().problems("train", 5, 1) != env.problems("train", 5, 2)
    assert all(check.ok for check in env.self_check())


def test_explicit_roles_ids_and_columns_of_a_data_frame() -> None:
    import pandas as pd  # takes half a second, and every worker collects this file

    rows = pd.DataFrame(
        [
            {"prompt": "a", "reference": 1, "role": "dev", "id": "one", "skill": "x", "level": 3},
            {"prompt": "b", "reference": 2, "role": "train", "id": "two", "skill": None},
            {"prompt": "b", "reference": 2, "role": "train", "id": "twice"},
        ]
    )
    env = rlvrlab.environment(rows, verify=lambda problem, text: True, name="frame")
    (one,), (two,) = env.problems("dev", 9, 0), env.problems("train", 9, 0)
    assert (one.id, one.skill, one.reference, one.meta["level"]) == ("one", "x", 1, 3)
    assert (two.id, two.skill, dict(two.meta)) == ("two", "frame", {})
    with pytest.raises(UserError, match="none of its 2 problems has role test; give rows with role='test'"):
        env.problems("test", 9, 0)


@pytest.mark.parametrize(
    ("value", "correct", "score"),
    [(True, True, 1), (False, False, 0), (np.bool_(True), True, 1), (0.25, False, 0.25), (1, True, 1),
     (np.float32(0.5), False, 0.5), (Verdict(None), None, 0)],
)  # fmt: skip
def test_verdicts_of_plain_values(value: Any, correct: bool | None, score: float) -> None:
    verdict = judged(value)
    assert verdict.correct is correct and verdict.score == score


@pytest.mark.parametrize("value", [None, "yes", 1.5, -1, float("nan"), [True]])
def test_a_bad_verdict_names_problem_value_and_remedy(value: Any) -> None:
    with pytest.raises(
        UserError, match=r"verify of 'fixed' \(.*:\d+\) gave .* for problem fixed:.*; return True, False, a score"
    ):
        judged(value)


def test_a_verifier_that_sometimes_raises_leaves_answers_unjudged_but_a_bug_is_said() -> None:
    env = rlvrlab.environment(ROWS, verify=lambda problem, text: int(text) == int(problem.reference), name="ints")
    problem = env.problems("train", 1, 0)[0]
    right, garbage = env.verify_many([(problem, problem.reference), (problem, "x")])
    assert right.correct is True and garbage.correct is None and "ValueError" in garbage.detail
    assert env.verify_many([(problem, "x")])[0].correct is None
    bug = rlvrlab.environment(ROWS, verify=lambda problem, text: problem.answr == text, name="bug")
    with pytest.raises(UserError, match="raised on all 2 answers: AttributeError"):
        bug.verify_many([(problem, "x"), (problem, "y")])


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([{"question": "a", "answer": 1}], "row 1: column 'prompt' is missing; there are: question, answer"),
        ([{"prompt": "a"}, {"prompt": None}], "row 2: column 'prompt' is empty; fill it in or leave out the row"),
        ([{"prompt": "a", "answer": 1}, {"prompt": "b", "answer": None}], "row 2: column 'answer' is empty"),
        ([{"prompt": "a", "reference": 1}, {"prompt": "b"}], "row 2: column 'reference' is empty"),
        (
            [{"prompt": "a", "answer": 1}, {"prompt": "b", "answer": 1}, {"prompt": "a", "answer": 2}],
            r"'largest': row 3: asks the same as row 1 with another answer \(1 there, 2 here\); keep one",
        ),
        ([{"prompt": "a", "target": 1}, {"prompt": "a", "target": 2}], "row 2: asks the same as row 1 with another"),
        ([{"prompt": "a"}, {"prompt": 3}], "row 2: prompt is a text, not 3"),
        ([{"prompt": "a", "answer": 1, "reference": 1}], "mean the same"),
        ([{"prompt": "a", "role": "valid"}], "role is one of train, dev, test, not 'valid'"),
        ([{"prompt": "a", "id": 1}, {"prompt": "b", "id": 1}], "id '1' is there twice"),
        (["a"], "a list of dicts, a data frame or a data file"),
        (7, "a list of dicts, a data frame or a data file, not int"),
        ("no.jsonl", "no.jsonl: no such file"),
    ],
)
def test_bad_rows_are_named(rows: Any, words: str) -> None:
    with pytest.raises(UserError, match=words):
        larger(rows=rows)


def test_rows_that_repeat_another_are_left_out_with_a_word_and_never_in_two_roles(
    capsys: pytest.CaptureFixture[str],
) -> None:
    larger()
    assert capsys.readouterr().err == ""
    learnt = [{"prompt": "a", "answer": 1, "role": "train"}, {"prompt": "b", "answer": 2, "role": "train"}]
    env = larger(rows=[*learnt, {"prompt": "b", "answer": 2, "role": "test"}])
    assert [p.prompt for p in env.problems("train", 9, 0)] == ["a"]
    assert [p.prompt for p in env.problems("test", 9, 0)] == ["b"]
    words = "environment 'largest': 1 of 3 rows ask the same as another one and are left out"
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "words"),
    [({"name": "a b"}, "is no name"), ({"verify": None}, "verify is missing"), ({"gold": 3}, "gold is a function")],
)
def test_bad_arguments(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        rlvrlab.environment(**{"problems": ROWS, "verify": lambda problem, text: True, **options})
