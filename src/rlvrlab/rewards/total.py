"""What rewards share: the value is the sum of the parts, added from left to right, and only judged answers have one."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, NoReturn

from rlvrlab.errors import LabError, OwnCodeError, UserError, defined_at, told
from rlvrlab.registry import find
from rlvrlab.types import Completion, Problem, Reward, RewardFunction, Verdict


@dataclass(frozen=True)
class Around:
    """What a reward around another one has in common with its kin."""

    of: str = "binary"
    """The reward inside."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Its own keys."""

    @cached_property
    def inner(self) -> RewardFunction:
        """The reward inside, built."""
        return find("reward", self.of)(**self.options)


class PartialCredit:
    """Base of rewards that are 1 for a right answer and between 0 and 1 for any other: their mean is an accuracy."""

    @abstractmethod
    def __call__(self, problem: Problem, completion: Completion, verdict: Verdict) -> Reward:
        """The reward of a judged answer."""


class AllOrNothing(PartialCredit):
    """Base of rewards that ask of a verdict whether the answer is right and nothing else."""

    part: ClassVar[str]
    """What the one part is called."""

    def __call__(self, problem: Problem, completion: Completion, verdict: Verdict) -> Reward:
        """1 for a right answer, 0 for any other."""
        return total({self.part: float(judged(verdict))})


def asks_only_whether_right(reward: RewardFunction) -> bool:
    """Can no reward change when the tests behind the one that ended a program are left out?"""
    return isinstance(reward, AllOrNothing) and type(reward).__call__ is AllOrNothing.__call__


class Control:
    """Base of rewards that must not teach the task: that right answers earn no more is what they are for."""


def is_control(reward: RewardFunction) -> bool:
    """Whether a reward is a control arm, or is wrapped around one."""
    return isinstance(reward, Control) or (isinstance(reward, Around) and is_control(reward.inner))


def total(parts: Mapping[str, float]) -> Reward:
    """A reward whose parts add up to its value; plain additions, whose rounding is the same in every Python."""
    parts = {name: part + 0.0 for name, part in parts.items()}  # + 0.0 turns -0.0 into 0.0, which reads better
    value = 0.0
    for part in parts.values():
        value += part
    return Reward(value, parts)


@dataclass(frozen=True)
class AbsentReward:
    """Stands for a function of another Python process, so that such a run can still be looked at and evaluated."""

    code: str = ""
    """The fingerprint on record."""
    name: ClassVar[str]

    def refuse(self) -> NoReturn:
        """Say what is missing and how to give it."""
        what = f"reward {self.name!r} was a function of another Python process and is in no file"
        raise UserError(f"{what}; give it again: rlvrlab.Run(FOLDER).resume(reward=…)")

    def __call__(self, problem: Problem, completion: Completion, verdict: Verdict) -> Reward:
        """Refuse: there is nothing to pay by."""
        self.refuse()


def paid(reward: RewardFunction, problem: Problem, completion: Completion, verdict: Verdict) -> Reward:
    """What a reward says about a judged answer; one of the user's own that fails is named with file and line."""
    try:
        given = reward(problem, completion, verdict)
    except (LabError, MemoryError):  # who has too little memory may get more and try again
        raise
    except Exception as error:
        if type(reward).__module__.startswith(__name__.partition(".")[0] + "."):
            raise  # a fault of ours, whose traceback is wanted
        what = f"reward {type(reward).__name__!r} raised {told(error, reward)}"
        raise OwnCodeError(f"{what} (problem {problem.named})") from error
    if not isinstance(given, Reward) or not math.isfinite(given.value):
        shown = given.value if isinstance(given, Reward) else given
        what = f"reward of problem {problem.named} is {shown!r:.100} ({defined_at(reward)})"
        raise OwnCodeError(f"{what}; a reward must be a finite number, in a Reward")
    return given


def judged(verdict: Verdict) -> bool:
    """Whether the answer is right; one that could not be judged is masked and never gets here."""
    assert verdict.correct is not None, "an unjudged answer has no reward; mask it"
    return verdict.correct
