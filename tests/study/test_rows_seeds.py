"""studies/npg_muse/rows_seeds.py: changes by seed, and of the problems that nobody had looked at alone."""

from __future__ import annotations

import runpy
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
script = runpy.run_path(str(ROOT / "studies" / "npg_muse" / "rows_seeds.py"))


def kept(sft: str, grpo: str, drawn: tuple[float, float] = (0.25, 0.5)) -> dict:
    """A run with two cards."""
    return {"cards": [{"phase": phase, "outcomes": marks, "metrics": {"mean_at_n": share, "problems": len(marks)}}
                      for phase, marks, share in (("sft", sft, drawn[0]), ("grpo", grpo, drawn[1]))]}  # fmt: skip


def test_problems_that_were_looked_at_are_left_out_where_that_is_asked() -> None:
    runs = [kept("0000", "1100"), kept("0001", "1101")]
    assert script["greedy_row"]("all", runs).startswith("| all | 4 | +50.0, +50.0 | +50.0 [")
    assert script["greedy_row"]("new", runs, "1101").startswith("| new | 1 | +0.0, +0.0 | +0.0 [")
    assert script["greedy_row"]("old", runs, "1101", wanted="1").startswith("| old | 3 | +66.7, +66.7 | +66.7 [")


def test_drawn_answers_have_students_interval_over_seeds() -> None:
    runs = [kept("00", "00", (0.3, share)) for share in (0.34, 0.35, 0.36)]
    assert script["drawn_row"](runs) == "| drawn at T = 1, new seeds | 2 | +4.0, +5.0, +6.0 | +5.0 [+2.5, +7.5] |"


def test_tasks_stand_in_the_order_of_their_ids() -> None:
    rows = script["task_rows"]({7: kept("100000", "110000")})
    assert rows[:3] == [
        "| GED | 100.0 → 100.0 | +0.0 |",
        "| MCP | 0.0 → 100.0 | +100.0 |",
        "| MCS | 0.0 → 0.0 | +0.0 |",
    ]
    assert script["without"]("MCP", 12) == "001100000000"
