"""A plain function as a reward: `type = "my_reward.py:bonus"` in a recipe, `train(…, reward=bonus)` in Python.

    def bonus(problem, completion, verdict):
        return {"correct": float(verdict.correct), "short": 0.1 * (len(completion.tokens) < 8)}

It returns a number, or named parts that add up to the reward. What the function does is recorded with the run as its
fingerprint (key `code`), and a resume with another one is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, make_dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from rlvrlab.errors import LabError, OwnCodeError, UserError, defined_at, refuse_other_arguments, told
from rlvrlab.fingerprint import CHANGED, fingerprint, same_code
from rlvrlab.registry import adapter, declare
from rlvrlab.rewards.total import AbsentReward, judged, total
from rlvrlab.types import Completion, Problem, Reward, Verdict

RewardPart = Callable[[Problem, Completion, Verdict], Any]
REMEDY = "return a finite number, or a dict of named ones"
_classes: dict[tuple[int, str], type[Any]] = {}
"""By the function, which its class keeps alive, and its fingerprint: an object that is called may change."""


@dataclass(frozen=True)
class FunctionReward:
    """Base of the plug-in class that each function becomes."""

    code: str = ""
    """The function's fingerprint; given only by a run's own record."""
    function: ClassVar[RewardPart]
    name: ClassVar[str]
    actual: ClassVar[str]
    """The fingerprint of the function that is there now."""

    def __post_init__(self) -> None:
        if not same_code(self.code, self.actual):
            raise UserError(f"function {self.name!r} is not what it was ({self.code} → {self.actual}); {CHANGED}")

    def __call__(self, problem: Problem, completion: Completion, verdict: Verdict) -> Reward:
        """What the function says, checked."""
        judged(verdict)
        try:
            value = type(self).function(problem, completion, verdict)
        except LabError:
            raise
        except Exception as error:
            what = f"reward function {self.name!r} raised {told(error, type(self).function)}"
            raise OwnCodeError(f"{what} (problem {problem.named})") from error
        if isinstance(value, Reward):
            value = value.parts or value.value
        parts = value if isinstance(value, Mapping) else {self.name: value}
        numbers = [isinstance(part, Real | np.bool_) and math.isfinite(part) for part in parts.values()]
        if not parts or not all(numbers) or not all(isinstance(name, str) for name in parts):
            what = f"reward function {self.name!r} ({defined_at(type(self).function)}) gave {value!r:.100}"
            raise OwnCodeError(f"{what} for problem {problem.named}; {REMEDY}")
        return total({name: float(part) for name, part in parts.items()})


@adapter("reward")
def reward_class(name: str, function: Any = None) -> type[Any] | None:
    """The plug-in class of a function; for None, one that refuses to pay and says why; for anything else, None."""
    if function is None:
        return declare(make_dataclass("Absent", [], bases=(AbsentReward,), frozen=True), "reward", name)
    if not callable(function) or isinstance(function, type):
        return None
    code = fingerprint(function)
    if (id(function), code) not in _classes:
        name = getattr(function, "__name__", type(function).__name__).strip("<>")  # <lambda>
        refuse_other_arguments(f"reward function {name!r}", function, "problem", "completion", "verdict")
        inside = {"function": staticmethod(function), "actual": code}
        made = make_dataclass(name, [("code", str, code)], bases=(FunctionReward,), namespace=inside, frozen=True)
        _classes[id(function), code] = declare(made, "reward", name)
    return _classes[id(function), code]
