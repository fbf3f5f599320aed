"""A plan is told in about a minute whatever the recipe asks for: what would take long is timed on a part."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlvrlab.recipe import resolve
from rlvrlab.train import plan


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


def test_a_step_is_timed_with_the_batch_it_is_given() -> None:
    """The estimate of a toy recipe is that of its whole step, whatever parts were tried on the way."""
    resolved = resolve(
        {"data": {"train_size": 40, "dev_size": 8}, "grpo": {"steps": 2, "batch_size": 8}}, {}, Path.cwd()
    )
    (found,) = plan.estimate(resolved)
    assert found.phase == "grpo" and found.step_s > 0 and found.total_s >= 2 * found.step_s
