"""Queues of independent runs in the studies: nothing is run twice, and nothing is begun that would not end in time."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "studies"))
from job_lines import rows_of, run_missing


def square(number: int) -> dict:
    if number < 0:
        raise ValueError(number)
    return {"number": number, "square": number**2}


def slow_square(number: int) -> dict:
    time.sleep(0.4)
    return square(number)


def name(row: dict) -> str:
    return str(row["number"])


def jobs(*numbers: int) -> dict[str, int]:
    return {str(number): number for number in numbers}


def test_a_queue_that_broke_off_goes_on_with_what_has_no_line(tmp_path: Path) -> None:
    path = tmp_path / "new" / "lines.jsonl"
    with pytest.raises(ValueError, match="-3"):
        run_missing(path, jobs(1, 2, -3), square, name, processes=1)
    assert [row["square"] for row in rows_of(path)] == [1, 4]
    assert run_missing(path, jobs(1, 2, 3), square, name, processes=1) == 0
    assert [row["square"] for row in rows_of(path)] == [1, 4, 9]


def test_no_run_is_begun_that_would_end_too_late(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    left = run_missing(path, jobs(1, 2, 3, 4, 5, 6, 7, 8), slow_square, name, processes=1, seconds=1.2)
    assert left == 8 - len(rows_of(path)) and 1 <= len(rows_of(path)) <= 2
