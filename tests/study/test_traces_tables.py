"""Tables of the graph runs on solver traces: what time cut is shown, marked, and in no difference."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "studies"), str(ROOT / "studies" / "npg_muse")]
import keep_traces  # noqa: E402
import traces_tables  # noqa: E402
from exam_tables import Exams, difference_table  # noqa: E402

MADE = json.loads(traces_tables.TRACES.read_text(encoding="utf-8"))
EXAMS = Exams(traces_tables.TRACES)
SMALL = traces_tables.TRACES.with_name("qwen_traces_small.json")
LONG = traces_tables.TRACES.with_name("qwen_traces_long.json")


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


def test_both_rounds_are_made_by_the_same_tables_and_each_has_what_it_recorded() -> None:
    first, second = ("\n\n".join(traces_tables.tables(path)) for path in (traces_tables.TRACES, SMALL))
    assert "answers alone" in first and "effective sample size" not in first
    assert "effective sample size" in second and "answers alone" not in second, "other levels: SFT is not set beside"
    assert "(cut by time)" not in second and "+12.5, +5.8, +3.1" in second


def test_the_smallest_graphs_have_sixty_problems_of_each_task_and_only_one_level() -> None:
    made = json.loads(SMALL.read_text(encoding="utf-8"))
    skills = made["skills"]["np"]
    assert set(made["levels"]["np"]) == {1} and {skills.count(task) for task in skills} == {60} and not made["left_out"]


def test_how_far_sampler_and_trainer_were_apart_is_told_over_all_updates() -> None:
    exams = Exams(SMALL)
    found = exams.arms["grpo_s0"]["apart"]
    assert {len(column) for column in found.values()} == {60}
    line = next(line for line in traces_tables.apart(exams).splitlines() if line.startswith("| grpo 0"))
    assert f"| {sum(found['ess']) / 60:.4f} | {min(found['ess']):.4f} |" in line
    assert traces_tables.apart(EXAMS) == "", "nothing was recorded there"


def test_a_round_without_a_base_or_a_control_has_no_column_for_them() -> None:
    made = json.loads(LONG.read_text(encoding="utf-8"))
    head = traces_tables.by_level(Exams(LONG), made["levels"]["np"]).splitlines()[0]
    assert head == "| task | level | sft, 3 runs | grpo 0 | grpo 1 | grpo 2 |"


def test_neighbours_are_counted_in_lines_that_list_them_and_nowhere_else() -> None:
    text = "Ann Li: Bo Ek, Cy Fox = 2\nBo Ek: Ann Li = 1\nLeft: Ann Li 1, Bo Ek 2.\nTake Cy Fox: out go Ann Li.\n"
    atoms = "Molecule A:\n0 C: 1, 2\n1 Cl\n2 N: 0\n0 C -> 1 C, cost 1\n2, bound to 0 now 1 -> 0\n[1, 0]"
    answers = {"MIS:1:x": text, "GED:1:x": atoms, "TSP:1:x": "Tour A B C\n[A, B, C, A]"}
    rows = [{"problem": name, "answer": answer} for name, answer in answers.items()]
    assert keep_traces.neighbours_named(rows) == {"GED": 1.0, "MIS": 1.5}, "a task without such lines has no mean"
    assert traces_tables.neighbours(EXAMS) == "", "nothing was recorded there"


def test_answers_drawn_at_random_are_told_beside_the_greedy_ones() -> None:
    path = traces_tables.TRACES.with_name("qwen_traces_held.json")
    arms = json.loads(path.read_text(encoding="utf-8"))["arms"]
    gains = [arms[f"grpo_s{seed}"]["drawn"]["mean"] - arms[f"sft_s{seed}"]["drawn"]["mean"] for seed in (3, 4, 5)]
    quantile = 0.95 / np.sqrt(2 * 0.975 * 0.025)  # Student's t with two degrees of freedom has a closed form
    half = quantile * np.std(gains, ddof=1) / np.sqrt(3)
    low, high = np.mean(gains) - half, np.mean(gains) + half
    last = traces_tables.drawn(Exams(path)).splitlines()[-1]
    assert last.split(" | ")[1] == f"+{100 * np.mean(gains):.1f} [+{100 * low:.1f}, +{100 * high:.1f}]"
    assert traces_tables.drawn(EXAMS) == ""  # no answers were drawn in that round
