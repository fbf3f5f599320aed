"""A plan is told in about a minute whatever the recipe asks for: what would take long is timed on a part."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rlvrlab.recipe import resolve
from rlvrlab.registry import find
from rlvrlab.train import plan
from rlvrlab.train.phases.base import StepOutcome
from rlvrlab.train.state import Memory


class Clock:
    """Work that takes `start + each * size` seconds, and what was asked of it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, start: float, each: float) -> None:
        self.now, self.start, self.each = 0.0, start, each
        self.asked: list[int] = []
        monkeypatch.setattr(plan.time, "perf_counter", lambda: self.now)

    def work(self, size: int) -> None:
        self.asked.append(size)
        self.now += self.start + self.each * size


def test_what_is_quick_is_timed_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, 0.5, 0.01)
    assert plan.seconds_of(clock.work, 32) == pytest.approx(0.82)
    assert clock.asked == [2, 2, 8, 32]


def test_what_is_long_is_taken_from_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, 0.0, 30.0)
    assert plan.seconds_of(clock.work, 32) == pytest.approx(960)
    assert clock.asked == [2], "ten minutes of a plan on two cores"


def test_parts_grow_only_as_far_as_there_is_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, 0.0, 1.0)
    assert plan.seconds_of(clock.work, 32) == pytest.approx(32)
    assert clock.asked == [2, 2, 8]


@pytest.mark.parametrize("whole", [0, 1, 3])
def test_small_work_is_timed_as_it_is(monkeypatch: pytest.MonkeyPatch, whole: int) -> None:
    clock = Clock(monkeypatch, 0.0, 0.5)
    assert plan.seconds_of(clock.work, whole) == pytest.approx(0.5 * whole)
    assert max(clock.asked) == max(1, whole)


def test_steps_are_timed_with_shorter_answers_or_smaller_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """A phase that draws answers keeps its batch and draws fewer tokens; one that imitates takes a smaller batch."""
    seen: list[tuple[str, int, int]] = []

    def note(name: str) -> Callable[..., object]:
        def step(self: Any, lab: Any, *_: object) -> StepOutcome:
            seen.append((name, self.batch_size, lab.recipe.rollout.max_tokens))
            return StepOutcome({}, Memory())

        return step

    monkeypatch.setattr(find("phase", "grpo"), "step", note("grpo"))
    monkeypatch.setattr(find("phase", "sft"), "step", note("sft"))
    tree = {"phases": ["sft", "grpo"], "data": {"train_size": 40, "dev_size": 8}, "rollout": {"max_tokens": 32},
            "sft": {"batch_size": 16}, "grpo": {"steps": 2, "batch_size": 8}}  # fmt: skip
    sft, grpo = plan.estimate(resolve(tree, {}, Path.cwd()))
    assert (sft.phase, grpo.phase) == ("sft", "grpo") and grpo.total_s >= 2 * grpo.step_s
    assert [size for name, size, tokens in seen if name == "sft" and tokens == 32] == [1, 1, 4, 16]
    assert [tokens for name, size, tokens in seen if name == "grpo" and size == 8] == [2, 2, 8, 32]
