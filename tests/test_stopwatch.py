"""Seconds are counted once, under the innermost name, and only while somebody watches."""

from __future__ import annotations

import pytest

from rlvrlab import notes
from rlvrlab.notes import timed, watching


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(notes.time, "perf_counter", found)
    return found


def test_parts_add_up_to_the_whole(clock) -> None:
    with watching() as spent:
        with timed("credit"):
            clock.now += 1
            with timed("judge"):
                clock.now += 2
            with timed("judge"):
                clock.now += 4
            clock.now += 8
        with timed("update"):
            clock.now += 16
    assert spent == {"credit": 9, "judge": 6, "update": 16}


def test_a_failure_is_timed_too_and_the_next_watch_starts_at_nothing(clock) -> None:
    with watching() as spent, pytest.raises(ValueError, match="x"), timed("judge"):
        clock.now += 1
        raise ValueError("x")
    with timed("judge"):
        clock.now += 5
    with watching() as later, timed("judge"):
        clock.now += 2
    assert (spent, later) == ({"judge": 1}, {"judge": 2})
