"""What every environment shares, so that a new one stays one short file.

An environment brings `problems`, `verify`, `gold` and `cheats`; judging many and the self-check follow from these.
With `read_row` (or `problems_in_folder`) it can also take problems from published data: `rlvr data prepare` asks it.
A bad answer is data: `verify` returns a verdict for any text whatever. If it raises all the same, that is the
verifier's failure and not the answer's, so the answer stays unjudged instead of scoring 0.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from rlvrlab.envs.answers import as_seen
from rlvrlab.envs.split import role_of_question
from rlvrlab.errors import JudgeLost, UserError
from rlvrlab.types import Check, Environment, Problem, Role, Verdict, unjudged

if TYPE_CHECKING:
    from rlvrlab.envs.data_files import Row

CHECKED_PROBLEMS = 6


@dataclass(frozen=True)
class Read:
    """A row of a published data set that an environment has understood."""

    content: str
    """Equal for rows that ask the same: they never stand in two roles, and only one of them is kept."""
    problems: Callable[[Role], list[Problem]]
    """What becomes of the row once its role is known."""
    role: Role
    """Where the content alone would put it; used where a data set has no split for it."""

    @staticmethod
    def by_text(text: str, problems: Callable[[Role], list[Problem]]) -> Read:
        """A row that asks what its text says, however it is spelt."""
        return Read(as_seen(text), problems, role_of_question(text))


@runtime_checkable
class GivesFeedback(Protocol):
    """An environment that can ask again after a failed answer."""

    def second_turn(self, problem: Problem, text: str, verdict: Verdict) -> str:
        """The prompt of another try; tells nothing about hidden tests."""


@runtime_checkable
class GivesFeedbackTogether(Protocol):
    """An environment that judges many failed tries in one call to tell what went wrong."""

    def second_turns(self, tries: Sequence[tuple[Problem, str, Verdict]]) -> list[str]:
        """The prompt of another try for each."""


@runtime_checkable
class ShowsTurns(Protocol):
    """An environment whose reference answers take several turns, with results of tools between them."""

    def gold_turns(self, problem: Problem) -> Sequence[str]:
        """What a good policy says turn by turn: its calls, then the answer."""


class Followed(NamedTuple):
    """What a program did on the tests of its problem; it stays with who trains, and is never shown to a policy."""

    program: str
    """As it was run."""
    calls: Sequence[Sequence[tuple[int, Mapping[str, int]]]]
    """Of each test, state after state: the line that was run, and check sums of the variables after it."""


@runtime_checkable
class FollowsPrograms(Protocol):
    """An environment that can tell what a program does statement by statement."""

    def follow(self, items: Sequence[tuple[Problem, str]]) -> list[Followed | None]:
        """Of each answer; None where it is no program, or could not be followed."""


class BaseEnvironment(ABC):
    """Derive a frozen dataclass from this and give it a name with @register("env", …)."""

    name: str
    """Set by @register."""
    version: str
    """Set it in the class, and change it whenever the scoring or the problems it makes change."""
    style: str = ""
    """How prompts ask for an answer, where there is a choice; kept in manifests, so that prompts and recipe agree."""
    runs_answers: bool = False
    """Whether answers are programs or queries that are executed; only then is it told how many ran to their end."""
    uses_tools: bool = False
    """Whether answers are episodes with calls of tools in between."""
    gold_remedy: str = "leave the phase out"
    """What to do where a phase needs reference answers and `gold` has none."""

    def refuse_other(self, key: str, allowed: Collection[object], remedy: str = "") -> None:
        """UserError unless a key is one of those allowed; a list, unless it has some of them, each once."""
        value = getattr(self, key)
        given = list(value) if isinstance(value, tuple) else [value]
        if not given or any(one not in allowed for one in given) or len(set(given)) < len(given):
            shown = given if isinstance(value, tuple) else repr(value)
            names = ", ".join(f'"{name}"' for name in allowed)
            raise UserError(f"{self.name}: {key} = {shown}: {remedy or f'allowed: {names}'}")

    @property
    def judged_elsewhere(self) -> bool:
        """Does `verify_many` wait for other processes, and may several threads call it?"""
        return False

    @abstractmethod
    def problems(self, role: Role, size: int, seed: int) -> list[Problem]:
        """`size` distinct problems of that role, deterministic; roles never share a problem."""

    @abstractmethod
    def verify(self, problem: Problem, text: str) -> Verdict:
        """Judge one completion's text."""

    def gold(self, problem: Problem) -> str | None:
        """A completion that scores 1, or None when there is none to show."""
        return None

    def bad_tasks(self, problems: Sequence[Problem]) -> dict[str, str]:
        """Problems that cannot be judged whatever is answered: id -> reason. Asked when data is prepared."""
        return {}

    def refuse_judge(self, problems: Sequence[Problem]) -> None:
        """JudgeLost where the servers that are to judge may not judge these problems; asked before any is answered."""
        del problems

    def cheats(self, problem: Problem) -> Mapping[str, str]:
        """Completions, by name, that must never be judged correct."""
        return {}

    def read_row(self, row: Row) -> Read | None:
        """What a row of a published data set asks; None when it cannot be judged and is left out.

        A column that is missing or wrong raises KeyError, ValueError or TypeError; the caller names the place.
        """
        raise UserError(f"environment {self.name!r} makes its problems itself and reads no rows; try `rlvr data make`")

    def problems_in_folder(self) -> dict[Role, list[Problem]]:
        """All problems by role, of an environment whose data set is a folder of its own kind."""
        raise UserError(f"environment {self.name!r} reads rows, not a folder")

    def judge_of(self, problem: Problem) -> Environment | None:
        """The environment that judges a problem which was read from a file: itself, one of its parts, or none here."""
        own = {vars(cls)["name"] for cls in type(self).__mro__ if "name" in vars(cls)}
        return self if problem.source in own else None

    def adopted(self, problem: Problem) -> Problem:
        """A problem that was read from a file and that it judges, as one of its own."""
        return problem

    def in_proportion(self, problems: Sequence[Problem], size: int | None) -> list[Problem]:
        """At most `size` problems of several files, all where it is None; a mixture keeps its ratios."""
        return list(problems)[:size]

    def verify_many(self, items: Sequence[tuple[Problem, str]]) -> list[Verdict]:
        """Judge many, in order; a verifier that raises leaves its answer unjudged."""
        return [self._verify_safely(problem, text) for problem, text in items]

    def self_check(self) -> list[Check]:
        """Gold must be correct and every cheat must not, on a few problems of the environment's own making."""
        return self.checked(self.problems("train", CHECKED_PROBLEMS, seed=0))

    def checked(self, problems: Sequence[Problem]) -> list[Check]:
        """The verdicts on gold and on every cheat of these problems."""
        tries = self._tries(problems)
        return [Check(name, text, right, self._verify_safely(problem, text)) for name, right, problem, text in tries]

    def _tries(self, problems: Sequence[Problem]) -> list[tuple[str, bool, Problem, str]]:
        """What a check tries: name, whether it must be accepted, problem and text of gold and of every cheat."""
        tried: list[tuple[str, bool, Problem, str]] = []
        for problem in problems:
            gold = self.gold(problem)
            tried += [] if gold is None else [("gold", True, problem, gold)]
            tried += [(f"cheat: {name}", False, problem, text) for name, text in self.cheats(problem).items()]
        return tried

    def _verify_safely(self, problem: Problem, text: str) -> Verdict:
        try:
            verdict = self.verify(problem, text)
        except JudgeLost:  # no answer can be judged any more: stop instead of masking them all
            raise
        except (Exception, SystemExit) as error:
            return unjudged(f"{type(self).__name__}.verify raised {type(error).__name__}: {error}")
        wrong = unsound(verdict)
        return unjudged(f"{type(self).__name__}.verify gave {wrong}") if wrong else verdict


def unsound(verdict: object) -> str:
    """What no mean may be taken over, in words: one such number would spoil those of all answers. Empty where sound."""
    if not isinstance(verdict, Verdict):
        return f"{type(verdict).__name__}, not a Verdict"
    if not _is_number(verdict.score) or not 0 <= verdict.score <= 1:
        return f"the score {verdict.score!r}; a score is a number from 0 to 1"
    odd = next((name for name, value in verdict.parts.items() if not _is_number(value)), None)
    return "" if odd is None else f"the part {odd!r} as {verdict.parts[odd]!r}; a part is a finite number"


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and math.isfinite(value)


class JudgesTogether(BaseEnvironment):
    """An environment that judges many answers in one go; a single one is a short list of them."""

    def verify(self, problem: Problem, text: str) -> Verdict:
        """Judge one completion's text."""
        return self.verify_many([(problem, text)])[0]

    @abstractmethod
    def verify_many(self, items: Sequence[tuple[Problem, str]]) -> list[Verdict]:
        """Judge many, in order."""


def style_of(env: Environment) -> str:
    """The style that an environment's prompts ask for; empty where there is only one."""
    return env.style if isinstance(env, BaseEnvironment) else ""
