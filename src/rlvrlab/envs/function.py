"""An environment made of a table of problems and plain functions: `rlvrlab.environment(…)`.

    rows       [{"prompt": "2+3=", "answer": "5"}, {"prompt": "2+4=", "answer": "6", "role": "dev", "skill": "add"}]
    verify     def verify(problem, text): return text.strip() == problem.reference

Bound to a name in a file, `type = "my_task.py:env"` finds it from a recipe. What the functions do (`code`) and what is
asked (`data`) is recorded with a run, and a resume with something else is refused.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, make_dataclass
from numbers import Real
from pathlib import Path
from typing import Any, ClassVar, NoReturn

import numpy as np

from rlvrlab.envs.base import BaseEnvironment, unsound
from rlvrlab.envs.data_files import bare_name
from rlvrlab.envs.own_rows import placed_rows, read_problems
from rlvrlab.errors import JudgeLost, LabError, OwnCodeError, UserError, defined_at, refuse_other_arguments, told
from rlvrlab.fingerprint import CHANGED, fingerprint, same_code
from rlvrlab.randomness import shuffled
from rlvrlab.registry import adapter, declare
from rlvrlab.types import ErrorKind, Problem, Role, Verdict, unjudged

Verifier = Callable[[Problem, str], Any]
Gold = Callable[[Problem], str | None]
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,59}")
UNNAMED = "python_env"
"""The name of an environment that nobody has named; one of a data file is then called as the file."""
BUGS = (NameError, AttributeError, TypeError, ImportError)
"""Errors that say more about a verifier than about an answer."""
REMEDY = "return True, False, a score from 0 to 1 or a Verdict"


class BadVerdict(OwnCodeError):
    """A verifier returned what is no verdict."""


def said_by(name: str, judge: Verifier, problem: Problem, text: str) -> Verdict:
    """What a plain function says about an answer, as a verdict."""
    value = judge(problem, text)
    if isinstance(value, Verdict):
        if wrong := unsound(value):
            raise BadVerdict(f"verify of {name!r} ({defined_at(judge)}) gave {wrong}, for problem {problem.named}")
        return value
    score = float(value) if isinstance(value, Real | np.bool_) else math.nan
    if not 0 <= score <= 1:
        what = f"verify of {name!r} ({defined_at(judge)}) gave {value!r:.100}"
        raise BadVerdict(f"{what} for problem {problem.named}; {REMEDY}")
    error = ErrorKind.NONE if score == 1 else ErrorKind.WRONG
    return Verdict(score == 1, score, error, {"correct": float(score == 1)}, answer=text[:200])


def all_said_by(name: str, judge: Verifier, items: Sequence[tuple[Problem, str]]) -> list[Verdict]:
    """The same for many; where the function raises, that answer stays unjudged, unless every one shows a bug."""
    verdicts, errors = [], list[Exception]()
    for problem, text in items:
        try:
            verdicts.append(said_by(name, judge, problem, text))
        except (JudgeLost, BadVerdict):
            raise
        except Exception as error:
            errors.append(error)
            verdicts.append(unjudged(f"verify raised {told(error, judge)}"))
    if errors and len(errors) == len(items) and all(isinstance(error, BUGS) for error in errors):
        often = f"raised on all {len(items)} answers:" if len(items) > 1 else "raised"
        raise BadVerdict(f"verify of {name!r} {often} {told(errors[0], judge)}") from errors[0]
    return verdicts


@dataclass(frozen=True)
class FunctionEnvironment(BaseEnvironment):
    """Base of the plug-in class that each call of `make_environment` makes."""

    code: str = ""
    """Fingerprint of the functions; given only by a run's own record."""
    data: str = ""
    """Hash of the problems; given only by a run's own record."""
    asked: ClassVar[tuple[Problem, ...]]
    left_out: ClassVar[int]
    """Rows that only repeat another one."""
    judge: ClassVar[Verifier]
    solution: ClassVar[Gold | None]
    columns: ClassVar[Mapping[str, str]]
    """What the table calls the columns with a meaning."""
    content: ClassVar[str]
    gold_remedy = "give rlvrlab.environment(…) a function gold=, and the rows their answer, or leave the phase out"
    version = ""  # the fingerprint of the functions, since these score

    def __post_init__(self) -> None:
        if not same_code(self.code, self.version):
            what = f"a function is not what it was ({self.code} → {self.version})"
            raise UserError(f"environment {self.name!r}: {what}; {CHANGED}")
        if self.data != self.content:
            again = "restore it, or start a new run"
            raise UserError(f"environment {self.name!r}: its problems are not what they were; {again}")

    def problems(self, role: Role, size: int, seed: int) -> list[Problem]:
        """Those of this role in keyed order: `size` of them, or as many as there are."""
        of_role = [problem for problem in self.asked if problem.role == role]
        if not of_role:
            which = f"none of its {len(self.asked)} problems has role {role}" if self.asked else "it has no problems"
            raise UserError(f"environment {self.name!r}: {which}; give rows with role={role!r}, or more rows")
        return shuffled(of_role, seed, self.name, role)[:size]

    def verify(self, problem: Problem, text: str) -> Verdict:
        """What the function says, as a verdict."""
        return said_by(self.name, type(self).judge, problem, text)

    def verify_many(self, items: Sequence[tuple[Problem, str]]) -> list[Verdict]:
        """Judge many; where the function raises, that answer stays unjudged, unless every one shows the same bug."""
        return all_said_by(self.name, type(self).judge, items)

    def gold(self, problem: Problem) -> str | None:
        """What the function given as `gold` says, a whole number as text; None without one."""
        solution = type(self).solution
        if solution is None:
            return None
        try:
            right: object = solution(problem)
        except LabError:
            raise
        except Exception as error:
            what = f"gold of {self.name!r} raised {told(error, solution)}"
            raise OwnCodeError(f"{what} (problem {problem.named})") from error
        if isinstance(right, int | np.integer) and not isinstance(right, bool):
            return str(right)
        if right is not None and not isinstance(right, str):
            what = f"gold of {self.name!r} ({defined_at(solution)}) gave {right!r:.60} for problem {problem.named}"
            raise OwnCodeError(f"{what}; return a text, or None where no right answer is known")
        return right


@dataclass(frozen=True)
class AbsentEnvironment(BaseEnvironment):
    """Stands for an environment of another Python process, so that such a run can still be looked at."""

    code: str = ""
    """The fingerprint on record."""
    data: str = ""
    """The hash on record."""
    version = "absent"

    def problems(self, role: Role, size: int, seed: int) -> list[Problem]:
        """Refuse: the problems exist only in the Python process that made them."""
        self.refuse()

    def verify(self, problem: Problem, text: str) -> Verdict:
        """Refuse: the verifier is gone."""
        self.refuse()

    def refuse(self) -> NoReturn:
        """Say what is missing and how to give it."""
        what = f"environment {self.name!r} was made in another Python process and is in no file"
        raise UserError(f"{what}; give it again: rlvrlab.Run(FOLDER, env=…)")


@adapter("env")
def environment_class(name: str, found: Any = None) -> type[Any] | None:
    """The plug-in class of an object from `make_environment`; for None, one that refuses every use and says why."""
    if found is None:
        return declare(make_dataclass("Absent", [], bases=(AbsentEnvironment,), frozen=True), "env", name)
    return type(found) if isinstance(found, FunctionEnvironment) else None


def make_environment(
    name: str, problems: object, verify: Verifier, gold: Gold | None = None, columns: Mapping[str, str] | None = None
) -> FunctionEnvironment:
    """An environment with these problems (rows, a data frame, a data file or None) and functions."""
    of_file = isinstance(problems, str | Path)
    if name == UNNAMED and of_file:
        of_its_file = re.sub(r"[^A-Za-z0-9_.-]", "_", bare_name(Path(str(problems))))[:60]
        name = of_its_file if NAME.fullmatch(of_its_file) else UNNAMED
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise UserError(
            f"environment: {name!r:.80} is no name; take letters, digits and . _ -, a letter first, 60 at most"
        )
    for what, function in (("verify", verify), ("gold", gold)):
        if (function is not None and not callable(function)) or (function is None and what == "verify"):
            raise UserError(f"environment {name!r}: {what} is a function, not {function!r:.60}")
    refuse_other_arguments(f"environment {name!r}: verify", verify, "problem", "text")
    if gold is not None:
        refuse_other_arguments(f"environment {name!r}: gold", gold, "problem")
    rows = [] if problems is None else placed_rows(problems)
    table = "" if of_file else f"environment {name!r}: "
    asked = read_problems(name, rows, columns or {}, table)
    content = hashlib.sha256("\n".join(f"{p.id} {p.key} {p.role}" for p in asked).encode()).hexdigest()[:16]
    code = fingerprint(verify, gold)
    inside = {
        "asked": asked,
        "left_out": len(rows) - len(asked),
        "judge": staticmethod(verify),
        "solution": staticmethod(gold) if gold else None,
        "columns": dict(columns or {}),
        "version": code,
        "content": content,
    }
    keys = [("code", str, code), ("data", str, content)]
    made = make_dataclass("PythonEnvironment", keys, bases=(FunctionEnvironment,), namespace=inside, frozen=True)
    return declare(made, "env", name)()
