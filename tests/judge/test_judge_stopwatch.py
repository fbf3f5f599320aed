"""The judge's stopwatch: percentiles of the latest checks, in bounded memory."""

from __future__ import annotations

import sys

from rlvrlab.judge.statistics import DURATIONS_KEPT, Stopwatch


def test_a_stopwatch_stays_small_and_speaks_of_the_latest_checks() -> None:
    watch = Stopwatch()
    for number in range(3 * DURATIONS_KEPT):
        watch.note(0.001 if number < 2 * DURATIONS_KEPT else 0.002, f"check {number}", "none", judged=True)
    told = watch.summary()
    assert told.checks == 3 * DURATIONS_KEPT and told.p50_ms == 2.0
    assert DURATIONS_KEPT // 2 <= len(watch.durations_ms) <= DURATIONS_KEPT
    assert sys.getsizeof(watch.durations_ms) < 10 * DURATIONS_KEPT, "eight bytes each, and little more"
