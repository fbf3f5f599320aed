"""code_reasoning: which results can be asked for, and when an answer says them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from rlvrlab.envs.code.reasoning import CodeReasoning

RESULTS = ("{'a': True}", "[{'a': (False,)}]", "{True}", "{True: 2}", repr(list(range(900))), "1e999", "-1e999", "[3]")


@pytest.fixture
def env(tmp_path: Path) -> CodeReasoning:
    rows = [
        {"task_id": number, "text": "Say it.", "code": f"def f():\n    return {result}",
         "test_list": [f"assert f() == {result}"] * 3, "test_setup_code": "", "split": "train"}
        for number, result in enumerate(RESULTS)
    ]  # fmt: skip
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return CodeReasoning(path=str(path))


def test_what_no_answer_can_say_is_not_asked(env: CodeReasoning) -> None:
    """Right answers to such a question were refused, and wrong ones stayed unjudged."""
    problems = env.problems("train", 5, 0)
    assert {problem.reference["result"] for problem in problems} == {*RESULTS[:4], "[3]"}
    for problem in problems:
        assert env.verify(problem, problem.reference["result"]).correct is True
        for other in ("1", "'x'", "[]", "{1: 2, 3: 4}", "1e999"):
            assert env.verify(problem, other).correct is False


@pytest.mark.parametrize(
    ("result", "wrong"),
    [("{'a': True}", "{'a': 1}"), ("[{'a': (False,)}]", "[{'a': (0,)}]"), ("{True}", "{1}"), ("{True: 2}", "{1: 2}")],
)
def test_one_is_no_yes_at_any_depth(env: CodeReasoning, result: str, wrong: str) -> None:
    problem = next(one for one in env.problems("train", 5, 0) if one.reference["result"] == result)
    assert env.verify(problem, wrong).correct is False


def test_a_row_without_an_example_is_left_out(env: CodeReasoning) -> None:
    row = env.shaped_row(
        {"task_id": 1, "text": "Say it.", "code": "def f():\n    return 1", "test_list": ["assert f() == 1"]}
    )
    assert row is not None
    assert (
        env.problems_of(replace(row, examples=()), "train")
        == env.problems_of(replace(row, solution=None), "train")
        == []
    )
