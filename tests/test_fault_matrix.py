"""docs/faults.md names a test for each of its cases, and the tests are there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CASES = 52


def rows() -> list[list[str]]:
    lines = (ROOT / "docs" / "faults.md").read_text("utf-8").partition("## The matrix")[2].splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines if line.startswith("| ")]
    return [row for row in cells if row[-1] != "test"]


def test_every_case_of_the_matrix_is_there_once() -> None:
    numbers = [int(row[0]) for row in rows() if row[0].isdigit()]
    assert numbers == list(range(1, CASES + 1))


def test_every_case_names_tests_that_exist() -> None:
    missing = []
    for row in rows():
        named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", row[-1])
        assert named, f"no test for {row[:-1]}"
        assert len(named) == row[-1].count("`tests/"), f"not file.py::name: {row[-1]}"
        for file, name in named:
            text = (ROOT / file).read_text("utf-8") if (ROOT / file).is_file() else ""
            if not re.search(rf"^\s*def {name}\(", text, re.MULTILINE):
                missing.append(f"{file}::{name}")
    assert missing == []
