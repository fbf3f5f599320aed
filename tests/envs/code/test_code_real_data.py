"""Real data sets: every reference accepted, every bug refused, nothing hidden in a prompt."""

from __future__ import annotations

from typing import Any

import pytest
from code_data import data_file

from rlvrlab.envs.code import Code, CodeReasoning, CodeRefactor, CodeRepair
from rlvrlab.types import Problem

HUMANEVAL, MBPP = "humaneval/HumanEval.jsonl.gz", "mbpp/mbpp.jsonl.gz"
FIX, QUIX = "humanevalpack/humanevalpack.jsonl.gz", "humanevalpack/quixbugs_python.jsonl"


def everything(env: Any, role: str) -> list[Problem]:
    return [problem for row in env.rows() for problem in env.problems_of(row, role)]


def refused(env: Any, problems: list[Problem]) -> list[str]:
    """Problems whose own reference is not accepted."""
    verdicts = env.verify_many([(problem, env.gold(problem)) for problem in problems])
    return [f"{p.id}: {v.detail}" for p, v in zip(problems, verdicts, strict=True) if v.correct is not True]


def unchanged_accepted(env: Any, problems: list[Problem]) -> list[str]:
    texts = [f"```python\n{problem.reference['given']}\n# the same\n```" for problem in problems]
    verdicts = env.verify_many(list(zip(problems, texts, strict=True)))
    return [p.id for p, v in zip(problems, verdicts, strict=True) if v.correct is not False]


@pytest.mark.slow
def test_some_references_are_accepted() -> None:
    env = Code(path=data_file(HUMANEVAL))
    assert refused(env, env.problems("test", 8, 0)) == []
    env = Code(path=data_file(MBPP), role_of="dev")
    assert refused(env, env.problems("dev", 8, 0)) == []


def test_some_bugs_are_refused_and_repairs_accepted() -> None:
    env = CodeRepair(path=data_file(FIX), timeout_s=2.0)
    problems = env.problems("test", 12, 0)
    assert refused(env, problems) == [] and unchanged_accepted(env, problems) == []


def test_sizes_of_the_data_sets() -> None:
    assert len(Code(path=data_file(HUMANEVAL)).rows()) == 164
    mbpp = Code(path=data_file(MBPP), role_of="dev", inprocess=True)
    assert len(mbpp.rows()) == 974
    assert {row.id for row in mbpp.rows() if row.inprocess} == {"MBPP/367", "MBPP/533", "MBPP/601", "MBPP/927"}
    assert len(CodeRepair(path=data_file(FIX)).rows()) == 164
    assert len(CodeRepair(path=data_file(QUIX), role_of="test", inprocess=True).rows()) == 40


def test_no_prompt_shows_a_hidden_test() -> None:
    for env, role in (
        (Code(path=data_file(HUMANEVAL)), "test"),
        (CodeRepair(path=data_file(FIX)), "test"),
        (Code(path=data_file(MBPP), role_of="dev"), "dev"),
    ):
        for problem in everything(env, role):
            for test in problem.reference["tests"]:
                asserts = [line.strip() for line in test.splitlines() if line.strip().startswith("assert")]
                shown = {example.strip() for example in problem.meta["examples"]}
                hidden = [line for line in asserts if line not in shown]
                assert not any(line in problem.prompt for line in hidden if "(" in line), problem.id


@pytest.mark.long
@pytest.mark.slow
def test_all_references_are_accepted() -> None:
    for env, role in (
        (Code(path=data_file(HUMANEVAL)), "test"),
        (Code(path=data_file(MBPP), role_of="dev", inprocess=True), "dev"),
        (Code(path=data_file("mbpp/sanitized-mbpp.json"), role_of="dev", inprocess=True), "dev"),
        (CodeRepair(path=data_file(FIX)), "test"),
        (CodeRepair(path=data_file(QUIX), role_of="test", inprocess=True), "test"),
        (CodeRefactor(path=data_file(HUMANEVAL)), "test"),
        (CodeReasoning(path=data_file(HUMANEVAL)), "test"),
        (CodeReasoning(path=data_file(MBPP), role_of="train"), "train"),
    ):
        assert refused(env, everything(env, role)) == [], env


@pytest.mark.slow
def test_all_bugs_are_refused() -> None:
    fix = CodeRepair(path=data_file(FIX), timeout_s=3.0)
    assert unchanged_accepted(fix, everything(fix, "test")) == []
    quix = CodeRepair(path=data_file(QUIX), role_of="test", inprocess=True, timeout_s=3.0)
    assert unchanged_accepted(quix, everything(quix, "test")) == []
