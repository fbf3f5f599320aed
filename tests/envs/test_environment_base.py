"""What the base class gives every environment, and the example in the documentation."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from rlvrlab.envs.base import BaseEnvironment
from rlvrlab.envs.function import BadVerdict, said_by
from rlvrlab.errors import UserError
from rlvrlab.registry import find, name_own
from rlvrlab.types import ErrorKind, Problem, Role, Verdict

PAGE = Path(__file__).parents[2] / "docs" / "environments.md"


class Fragile(BaseEnvironment):
    """Raises on one text, accepts all others: the worst of both."""

    version = "1"

    def problems(self, role: Role, size: int, seed: int) -> list[Problem]:
        return [Problem(str(index), "fragile", "fragile", "?", role=role) for index in range(size)]

    def gold(self, problem: Problem) -> str:
        return "right"

    def cheats(self, problem: Problem) -> dict[str, str]:
        return {"anything": "cheat", "poison": "raise"}

    def verify(self, problem: Problem, text: str) -> Verdict:
        if text == "raise":
            raise RuntimeError("broken")
        return Verdict(True, 1.0)


def test_a_verifier_that_raises_leaves_the_answer_unjudged() -> None:
    problem = Fragile().problems("train", 1, 0)[0]
    before, failed, after = Fragile().verify_many([(problem, "a"), (problem, "raise"), (problem, "b")])
    assert before.correct is after.correct is True
    assert failed.correct is None and failed.error is ErrorKind.INFRA
    assert failed.detail == "Fragile.verify raised RuntimeError: broken"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (Verdict(True, math.nan), "the score nan; a score is a number from 0 to 1"),
        (Verdict(False, math.inf), "the score inf;"),
        (Verdict(True, 7.0), "the score 7.0;"),
        (Verdict(False, -0.5), "the score -0.5;"),
        (Verdict(True, "1"), "the score '1';"),
        (Verdict(True, 1.0, parts={"speed": math.nan}), "the part 'speed' as nan; a part is a finite number"),
        (0.5, "float, not a Verdict"),
    ],
)
def test_a_verdict_that_would_spoil_every_mean_leaves_its_answer_unjudged(given, words: str) -> None:
    class Odd(Fragile):
        def verify(self, problem: Problem, text: str) -> Verdict:
            return given

    [verdict] = Odd().verify_many([(Odd().problems("train", 1, 0)[0], "a")])
    assert verdict.correct is None and verdict.error is ErrorKind.INFRA and words in verdict.detail
    if isinstance(given, Verdict):
        with pytest.raises(BadVerdict, match="gave the"):
            said_by("own", lambda problem, text: given, Odd().problems("train", 1, 0)[0], "a")


def test_self_check_reports_accepted_cheats_and_a_raising_verifier() -> None:
    by_name = {check.name: check for check in Fragile().self_check()}
    assert by_name["gold"].ok
    assert not by_name["cheat: anything"].ok
    assert not by_name["cheat: poison"].ok


def test_the_example_in_the_documentation_works(tmp_path: Path) -> None:
    example = re.search(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert example is not None and len(example[1].splitlines()) <= 40
    (tmp_path / "parity.py").write_text(example[1])
    name_own("parity.py:Parity", tmp_path)
    env = find("env", "parity.py:Parity", tmp_path)()
    checks = env.self_check()
    assert len(checks) > 6 and all(check.ok for check in checks)
    ids = [{problem.id for problem in env.problems(role, 20, seed=0)} for role in ("train", "dev", "test")]
    assert len(set().union(*ids)) == 60
    with pytest.raises(UserError):
        env.problems("test", 10**6, seed=0)
