"""The table of guards over three testbeds: what counts as below, and that it agrees with the reports behind it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from rlvrlab.skills.pareto import Area

STUDIES = Path(__file__).parents[2] / "studies"
sys.path[:0] = [str(STUDIES), str(STUDIES / "interference")]
import guards_compared  # noqa: E402
from smollm2_report import told  # noqa: E402

RESULTS = STUDIES / "interference" / "results"


@pytest.mark.parametrize(
    ("gap", "p", "below"),
    [
        (Area(-0.2, -0.3, -0.1), 0.01, True),
        (Area(-0.2, -0.3, -0.1), 0.2, False),
        (Area(-0.2, -0.3, -0.1), None, True),
        (Area(-0.1, -0.3, 0.1), None, False),
        (Area(0.2, 0.1, 0.3), 0.01, False),
    ],
)
def test_below_is_after_correction_where_it_was_declared(gap: Area, p: float | None, below: bool) -> None:
    assert guards_compared.below(gap, p) is below


@pytest.mark.parametrize(("make", "report"), [("toy", "second_guards.md"), ("nano", "nano_opposites.md")])
def test_tested_differences_are_those_of_the_reports(make: str, report: str) -> None:
    comparison, text = getattr(guards_compared, make)(), (RESULTS / report).read_text(encoding="utf-8")
    tested = {pair: found for pair, found in guards_compared.gaps(comparison).items() if found[1] is not None}
    assert len(tested) == len(comparison.own) * len(guards_compared.FREE)
    for (one, other), (gap, p) in tested.items():
        assert f"| {one} − {other} | {told(gap, '+', 1.0, 3)} | {p:.3f} |" in text


def test_what_a_guard_cuts_loses_and_costs_is_against_plain_training() -> None:
    nano = guards_compared.nano()
    assert guards_compared.cells(nano, "l2") == ["82 %", "+1.1 %", "+6 %"]
    assert guards_compared.cells(guards_compared.smollm2(), "gem") == ["–", "–", "–"]
    assert "Plain training forgets, in points: nano pair 61.8" in guards_compared.summary([nano])
