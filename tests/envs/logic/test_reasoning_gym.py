"""reasoning-gym: its scorers only in the jail; what evaluates answers is refused."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from rlvrlab.envs.reasoning_gym import EXECUTING, MISSING, ReasoningGym
from rlvrlab.errors import UserError
from rlvrlab.registry import find
from rlvrlab.types import ErrorKind, Problem

INSTALLED = importlib.util.find_spec("reasoning_gym") is not None
needs_package = pytest.mark.skipif(not INSTALLED, reason="needs reasoning-gym: pip install reasoning-gym")


@pytest.fixture(autouse=True)
def _foreign_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the package's own, not ours
        yield


def test_scorers_that_evaluate_answers_are_refused() -> None:
    for name in EXECUTING:
        with pytest.raises(UserError, match="could forge"):
            ReasoningGym(dataset=name)
    assert ReasoningGym(dataset="countdown", allow_executing=True).dataset == "countdown"


@pytest.mark.skipif(INSTALLED, reason="reasoning-gym is there")
def test_without_the_package_nothing_is_wrong_only_unjudged() -> None:
    env = find("env", "reasoning_gym")()
    with pytest.raises(UserError, match="pip install reasoning-gym"):
        env.problems("train", 1, 0)
    reference = {"dataset": "gcd", "settings": {}, "seed": 1, "index": 0, "answer": "3"}
    problem = Problem("p", "reasoning_gym", "gcd", "", reference)
    verdict = env.verify(problem, "<answer>3</answer>")
    assert (verdict.correct, verdict.detail) == (None, MISSING)
    assert env.verify(problem, "3").error is ErrorKind.FORMAT


@needs_package
@pytest.mark.slow
def test_self_check() -> None:
    checks = ReasoningGym().self_check()
    assert [check for check in checks if not check.ok] == []
    assert len({check.name for check in checks if not check.expected}) >= 12
    assert {check.verdict.isolation for check in checks if check.name == "gold"} == {"landlock"}


@needs_package
@pytest.mark.slow
@pytest.mark.parametrize(
    "dataset", ["gcd", "chain_sum", "word_sorting", "knights_knaves", "mini_sudoku", "number_sorting"]
)
def test_gold_is_accepted_and_roles_are_disjoint(dataset: str) -> None:
    env = ReasoningGym(dataset=dataset)
    problems = {role: env.problems(role, 5, 0) for role in ("train", "dev", "test")}  # type: ignore[arg-type]
    prompts = [problem.prompt for found in problems.values() for problem in found]
    assert len(set(prompts)) == 15
    items = [(problem, env.gold(problem) or "") for problem in problems["train"]]
    assert [verdict.correct for verdict in env.verify_many(items)] == [True] * 5
    assert env.problems("train", 3, 0) == problems["train"][:3]


@needs_package
@pytest.mark.slow
def test_code_in_an_answer_reaches_nothing(tmp_path: Path) -> None:
    env = ReasoningGym(dataset="countdown", allow_executing=True)
    problem = env.problems("train", 1, 0)[0]
    target = tmp_path / "reached"
    verdict = env.verify(problem, f"<answer>__import__('os').system('touch {target}')</answer>")
    assert verdict.correct is False and "integrity_weak" in verdict.flags
    assert not target.exists()


@needs_package
def test_unknown_names_and_settings_are_named() -> None:
    with pytest.raises(UserError, match="did you mean 'gcd'"):
        ReasoningGym(dataset="gdc").problems("train", 1, 0)
    with pytest.raises(UserError, match="settings of gcd"):
        ReasoningGym(dataset="gcd", settings={"nonsense": 1}).problems("train", 1, 0)
