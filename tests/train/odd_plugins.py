"""Plug-ins that misbehave, named in recipes as `odd_plugins.py:Class`."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from rlvrlab.engines.toy.engine import Toy, ToyEngine
from rlvrlab.envs.countdown import Countdown
from rlvrlab.recipe.schema import Optimizer
from rlvrlab.registry import register
from rlvrlab.types import Completion, Finish, Problem, Reward, Verdict


@register("engine", "nan")
@dataclass(frozen=True)
class NanEngine(Toy):
    """Its gradient is NaN while the policy version is in [bad_from, bad_until)."""

    bad_from: int = 0
    bad_until: int = 0

    def build(self, optimizer: Optimizer) -> ToyEngine:
        return _Nan(self, optimizer)


class _Nan(ToyEngine):
    def gradient(self, batch: Any, objective: Any) -> Any:
        vector, value, metrics = super().gradient(batch, objective)
        if self.config.bad_from <= self.version < self.config.bad_until:
            vector = vector * np.nan
        return vector, value, metrics


@register("engine", "unreliable")
@dataclass(frozen=True)
class UnreliableSampler(Toy):
    """Every third answer of a group is lost."""

    def build(self, optimizer: Optimizer) -> ToyEngine:
        return _Unreliable(self, optimizer)


class _Unreliable(ToyEngine):
    def sample(self, requests: Any) -> list[list[Completion]]:
        lost = Completion("", (), (), Finish.ERROR, self.version)
        return [[lost if i % 3 == 2 else c for i, c in enumerate(group)] for group in super().sample(requests)]


@register("env", "always_wrong")
@dataclass(frozen=True)
class AlwaysWrong(Countdown):
    """Nothing that a policy writes is ever right: it may not write as many tokens as a right answer has blanks."""

    padding = " " * 40

    def gold(self, problem: Problem) -> str | None:
        return f"{super().gold(problem)}{self.padding}"

    def verify(self, problem: Problem, text: str) -> Verdict:
        verdict = super().verify(problem, text)
        return verdict if text.endswith(self.padding) else replace(verdict, correct=False, score=0.0)


@register("env", "broken_judge")
@dataclass(frozen=True)
class BrokenJudge(Countdown):
    """Cannot judge answers whose length is a multiple of `fails`."""

    fails: int = 1

    def verify(self, problem: Problem, text: str) -> Verdict:
        if len(text) % self.fails == 0:
            raise OSError("the judge fell over")
        return super().verify(problem, text)


@register("reward", "nan_reward")
@dataclass(frozen=True)
class NanReward:
    """Not a number, but for the made-up answers of the trial call, whose log-probabilities are all 0."""

    def __call__(self, problem: Problem, completion: Completion, verdict: Verdict) -> Reward:
        return Reward(float("nan") if any(completion.logprobs) else 0.0)


@register("reward", "crash")
@dataclass(frozen=True)
class Crash:
    """A bug in the user's own code that the trial call does not meet."""

    def __call__(self, problem: Problem, completion: Completion, verdict: Verdict) -> Reward:
        if not any(completion.logprobs):
            return Reward(0.0)
        raise ZeroDivisionError("a bug of mine")


@register("reward", "pays_the_wrong")
@dataclass(frozen=True)
class PaysTheWrong:
    """A mistake in a sign; it does not call itself a control."""

    def __call__(self, problem: Problem, completion: Completion, verdict: Verdict) -> Reward:
        return Reward(float(not verdict.correct), {"wrong": float(not verdict.correct)})


@register("sink", "flaky")
@dataclass(frozen=True)
class Flaky:
    """Writes what it gets beside the run, and fails at step 3, or already on opening where FLAKY_OPEN is set."""

    def open(self, folder: Path, name: str, config: dict[str, Any]) -> None:
        if os.environ.get("FLAKY_OPEN"):
            raise ConnectionError("nobody answers")
        object.__setattr__(self, "_file", folder / "artifacts" / "flaky")

    def log(self, step: int, metrics: dict[str, float]) -> None:
        if step == 3:
            raise ConnectionError("line is dead")
        with self._file.open("a") as file:
            file.write(f"{step}\n")

    def close(self) -> None:
        raise ConnectionError("still dead")


@register("sink", "missing")
@dataclass(frozen=True)
class Missing(Flaky):
    """Its package is not installed."""

    def open(self, folder: Path, name: str, config: dict[str, Any]) -> None:
        raise ImportError("no module named tracker")
