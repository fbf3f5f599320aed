"""rlvrlab.environment: rows, roles and what a plain verifier may return."""

from __future__ import annotations

from pathlib import Path
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
    with pytest.raises(UserError, match="verify of 'bug' raised AttributeError"):
        bug.verify_many([(problem, "x")])


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
        ("no.jsonl", "no.jsonl: no such file in /"),
        ("nowhere/no.jsonl", "no.jsonl: no such file and no folder /"),
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


def written(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n")
    return path


def test_blanks_around_a_prompt_make_no_other_problem_and_blanks_within_no_other_role(
    capsys: pytest.CaptureFixture[str],
) -> None:
    spaced = [{**row, "prompt": row["prompt"].replace("\n", " \n")} for row in ROWS]
    assert len(larger(rows=[*ROWS, *spaced]).asked) == len(ROWS)
    assert f"{len(ROWS)} of {2 * len(ROWS)} rows ask the same as another one" in capsys.readouterr().err
    with pytest.raises(UserError, match=rf"row {len(ROWS) + 1}: asks the same as row 1 with another answer"):
        larger(rows=[*ROWS, {**spaced[0], "answer": "no"}])
    near = [{**row, "prompt": row["prompt"].replace(" ", "  ").upper()} for row in ROWS]
    roles = [problem.role for problem in larger(rows=[*ROWS, *near]).asked]
    assert roles[: len(ROWS)] == roles[len(ROWS) :]


def test_a_table_has_the_same_roles_here_and_as_answers(tmp_path: Path) -> None:
    from rlvrlab.envs.own_data import Answers

    file = written(tmp_path / "t.csv", "prompt,answer", *(f"{row['prompt'].strip()},{row['answer']}" for row in ROWS))
    mine = rlvrlab.environment(file, verify=lambda problem, text: True)
    theirs = Answers(path=str(file), prompt="prompt", style="bare")
    for role in ("train", "dev", "test"):
        assert {p.prompt.strip() for p in mine.problems(role, 999, 0)} == {
            p.prompt.strip() for p in theirs.problems(role, 999, 0)
        }


def test_rows_of_a_file_are_named_by_file_and_row_and_the_environment_by_the_file(tmp_path: Path) -> None:
    file = written(tmp_path / "my parcels.csv", "prompt,answer", "a,1", "b,2", "a,3")
    with pytest.raises(UserError, match=r"^\S+/my parcels.csv:3: asks the same as \S+/my parcels.csv:1 with another"):
        rlvrlab.environment(file, verify=lambda problem, text: True)
    written(file, "prompt,answer", "a,1")
    assert rlvrlab.environment(file, verify=lambda problem, text: True).name == "my_parcels"
    assert rlvrlab.environment(str(file), verify=lambda problem, text: True, name="mine").name == "mine"
    with pytest.raises(UserError, match=r"my parcel.csv: no such file in \S+; did you mean 'my parcels.csv'\?"):
        rlvrlab.environment(tmp_path / "my parcel.csv", verify=lambda problem, text: True)


def test_columns_of_other_names_are_mapped(tmp_path: Path) -> None:
    file = written(tmp_path / "parcels.csv", "note,bay,kind,shipped_on", "red lamp,FE,fragile,may", "milk,CW,cold,june")
    with pytest.raises(UserError) as error:
        rlvrlab.environment(file, verify=lambda problem, text: True)
    words = f"{file}:1: column 'prompt' is missing; there are: note, bay, kind, shipped_on; say which is which: "
    assert str(error.value).startswith(words) and "'type': 'answers'" in str(error.value)
    columns = {"prompt": "{note}\n", "answer": "bay", "skill": "kind"}
    env = rlvrlab.environment(file, verify=lambda problem, text: True, columns=columns)
    [one, _] = env.asked
    assert (one.prompt, one.reference, one.skill) == ("red lamp\n", "FE", "fragile")
    assert dict(one.meta) == {"note": "red lamp", "shipped_on": "may"}
    with pytest.raises(UserError, match=":1: column 'noet' is missing; there are: note"):
        rlvrlab.environment(file, verify=lambda problem, text: True, columns={"prompt": "noet"})
    with pytest.raises(UserError, match="columns: unknown key 'answr'; did you mean 'answer'"):
        rlvrlab.environment(file, verify=lambda problem, text: True, columns={"prompt": "note", "answr": "bay"})


def test_gold_is_text_or_a_whole_number_and_anything_else_is_told_with_its_line() -> None:
    def env(gold: Any) -> Any:
        rows = [{"prompt": "a", "answer": 7, "role": "train"}]
        return rlvrlab.environment(rows, verify=lambda problem, text: True, gold=gold, name="g")

    def right(gold: Any) -> Any:
        made = env(gold)
        return made.gold(made.asked[0])

    assert right(lambda problem: problem.reference) == "7" and right(lambda problem: None) is None
    for value in (7.0, True, ["7"]):
        with pytest.raises(
            UserError, match=r"gold of 'g' \(.*test_env.*py:\d+\) gave .* \('a'\); return a text, or None"
        ):
            right(lambda problem, value=value: value)
    with pytest.raises(UserError, match=r"gold of 'g' raised AttributeError: .*refrence.* \(problem g:\w+ \('a'\)\)"):
        right(lambda problem: problem.refrence)
