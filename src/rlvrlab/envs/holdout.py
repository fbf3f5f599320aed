"""holdout: another environment whose reward is paid by a few of its tests, while the others only watch.

    [env]
    type = "holdout"
    paid = 2
    of = { type = "minicode", skills = ["gen"], levels = [1] }

    reference  as the other environment's, with `paid` tests in place, and "held_back": […] the rest
    parts      as the other environment's, and {"proxy": share of paid tests passed, "hidden": share of the rest}

A control: with weak tests a policy may learn to pass them without solving the task. The verdict is that of the paid
tests; `hack/proxy_gap`, in the metrics of training and evaluation, is proxy − hidden and shows it.

Traps: both parts are judged in full, so a test costs the same wherever it stands; a problem with too few tests cannot
be split and is refused, not passed on with nothing to watch it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from rlvrlab.envs.base import BaseEnvironment, GivesFeedback, JudgesTogether
from rlvrlab.errors import UserError
from rlvrlab.recipe.remedies import first_words
from rlvrlab.recipe.schema import instantiate
from rlvrlab.registry import register
from rlvrlab.types import Count, Environment, Problem, Role, Verdict

TESTS = ("hidden", "tests")
"""Where references of the code environments keep their tests."""


@register("env", "holdout")
@dataclass(frozen=True)
class Holdout(JudgesTogether):
    """Some tests pay, the others watch."""

    of: dict[str, Any] = field(default_factory=lambda: {"type": "minicode", "skills": ["gen"]}, hash=False)
    """The environment whose tests are split, as its own recipe table."""
    paid: Count = 2
    """Tests that pay, the first ones; all others are held back."""

    version = "1"

    def __post_init__(self) -> None:
        if not isinstance(self.of.get("type"), str) or self.of["type"] == "holdout":
            raise UserError('holdout: of needs a type, e.g. of = { type = "minicode" }')

    @property
    def inner(self) -> Environment:
        """The other environment, built from its table."""
        return _built(json.dumps(self.of, sort_keys=True))

    @property
    def runs_answers(self) -> bool:  # type: ignore[override]
        """As the other environment."""
        return isinstance(self.inner, BaseEnvironment) and self.inner.runs_answers

    def problems(self, role: Role, size: int, seed: int) -> list[Problem]:
        """The other environment's, with their tests split."""
        problems = []
        for problem in self.inner.problems(role, size, seed):
            tests = problem.reference.get(_key(problem), ()) if isinstance(problem.reference, Mapping) else ()
            if len(tests) <= self.paid:
                few = f"{problem.id} has {len(tests)} tests, paid = {self.paid}"
                raise UserError(f"holdout: {few}: give an environment with more tests")
            split = _with(problem, tests[: self.paid])
            held_back = list(tests[self.paid :])
            problems.append(replace(split, reference={**split.reference, "held_back": held_back}))
        return problems

    def gold(self, problem: Problem) -> str | None:
        """The other environment's answer, which passes all of its tests."""
        return self.inner.gold(problem)

    def verify_many(self, items: Sequence[tuple[Problem, str]]) -> list[Verdict]:
        """Judge paid and held-back tests in one call; `proxy` and `hidden` are there only where both were judged."""
        watching = [(_with(problem, problem.reference["held_back"]), text) for problem, text in items]
        verdicts = self.inner.verify_many([*items, *watching])
        joined = []
        for paid, watched in zip(verdicts[: len(items)], verdicts[len(items) :], strict=True):
            if paid.correct is not None and watched.correct is not None:
                paid = replace(paid, parts={**paid.parts, "proxy": paid.score, "hidden": watched.score})
            joined.append(paid)
        return joined

    def refuse_judge(self, problems: Sequence[Problem]) -> None:
        """As the other environment."""
        if isinstance(self.inner, BaseEnvironment):
            self.inner.refuse_judge(problems)

    def second_turn(self, problem: Problem, text: str, verdict: Verdict) -> str:
        """The other environment's feedback, where it gives any."""
        if not isinstance(self.inner, GivesFeedback):
            raise UserError(f"holdout: environment {self.of['type']!r} gives no feedback for a second turn")
        return self.inner.second_turn(problem, text, verdict)


@lru_cache(maxsize=8)
def _built(table: str) -> Environment:
    try:
        env: Environment = instantiate("env", json.loads(table), Path())
    except ValidationError as error:
        raise UserError(f"holdout: of.{first_words(error)}") from None
    return env


def _key(problem: Problem) -> str:
    return next((key for key in TESTS if key in problem.reference), TESTS[0])


def _with(problem: Problem, tests: Sequence[Any]) -> Problem:
    return replace(problem, reference={**problem.reference, _key(problem): list(tests)})
