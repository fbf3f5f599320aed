"""Times as records and names of folders have them, and durations in words."""

from __future__ import annotations

import re

import pytest

from rlvrlab.record.files import STAMP, duration, read_time, stamp_now, utc_now


def test_what_is_written_is_read_again() -> None:
    assert re.fullmatch(STAMP, stamp_now()) and read_time(utc_now()) is not None
    assert read_time("2026-01-31T12:00:00Z") == read_time("2026-01-31T13:00:00+01:00") == read_time("2026-01-31T12:00")


def test_a_time_without_a_zone_can_be_taken_from_one_with_a_zone() -> None:
    begun, ended = read_time("2026-01-31T12:00:00"), read_time("2026-01-31T12:01:00Z")
    assert begun is not None and ended is not None and (ended - begun).total_seconds() == 60


@pytest.mark.parametrize("text", [None, "", "yesterday", 17, "2026-13-01T00:00:00Z"])
def test_what_is_no_time_is_none(text: object) -> None:
    assert read_time(text) is None


def test_durations_are_told_alike_by_runs_and_plans() -> None:
    told = [duration(seconds) for seconds in (-1, 99, 110, 5999, 6500, 100_000, 259_200)]
    assert told == ["0 s", "99 s", "2 min", "100 min", "1.8 h", "27.8 h", "3 d"]
