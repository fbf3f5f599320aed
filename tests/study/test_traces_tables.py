"""Tables of the graph runs on solver traces: what time cut is shown, marked, and in no difference."""

from __future__ import annotations

import json
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "studies"), str(ROOT / "studies" / "npg_muse")]
import traces_tables  # noqa: E402
from exam_tables import Exams, difference_table  # noqa: E402

MADE = json.loads(traces_tables.TRACES.read_text(encoding="utf-8"))
EXAMS = Exams(traces_tables.TRACES)


def test_trainings_that_time_cut_are_marked_and_in_no_difference() -> None:
    assert EXAMS.whole("grpo") == ["grpo_s0"] and len(EXAMS.whole("more_sft")) == 3
    line = next(line for line in difference_table(EXAMS).splitlines() if "grpo − sft" in line)
    assert line.count(",") == 1 and line.endswith("problems only |"), "one seed, and its interval says so"
    for table in (traces_tables.training(EXAMS), traces_tables.by_tens(EXAMS), traces_tables.errors(EXAMS)):
        assert table.count("(cut by time)") == 2


def test_every_task_and_level_has_thirty_problems_and_they_make_up_the_score() -> None:
    places = list(zip(EXAMS.skills["np"], MADE["levels"]["np"], strict=True))
    assert len(set(places)) == 12 and all(places.count(place) == 30 for place in places)
    rows = [line.split(" | ") for line in traces_tables.by_level(EXAMS, MADE["levels"]["np"]).splitlines()[2:]]
    mean = sum(float(row[5]) for row in rows) / len(rows)
    assert abs(mean - 100 * EXAMS.scores("np", "greedy", "grpo_s0").mean()) < 0.1


def test_a_stretch_without_updates_is_a_dash() -> None:
    cut = next(line for line in traces_tables.by_tens(EXAMS).splitlines() if line.startswith("| grpo 1"))
    assert cut.endswith("| – |") and "nan" not in traces_tables.by_tens(EXAMS)
