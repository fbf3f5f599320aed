"""What a 1.5B code model lost while solutions were shown: kept outcomes counted anew, without its tables."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
STUDY = ROOT / "studies" / "interference"
sys.path[:0] = [str(ROOT / "studies"), str(STUDY), str(ROOT / "tests")]
import closed_fences  # noqa: E402
import keep_exams  # noqa: E402
import qwen_shown_tables  # noqa: E402
from exam_tables import Exams  # noqa: E402
from own_statistics import Expected  # noqa: E402

from rlvrlab.envs.sql import Sql  # noqa: E402

MADE = json.loads((STUDY / "results" / "qwen_skills_6.json").read_text(encoding="utf-8"))
PAGE = (STUDY / "rounds" / "13_shown.md").read_text(encoding="utf-8")
ARMS = ("shown_2e-4", "shown_5e-4", "shown_1e-3", "shown_long")


def solved(data: str, arm: str) -> int:
    return MADE["outcomes"][data]["greedy"][arm].count("1")


def formless(arm: str) -> int:
    return sum(count for error, count in MADE["arms"][arm]["errors"].items() if error.endswith("format"))


def against_base(marks: str) -> Expected:
    before, after = (np.array([[float(mark) for mark in one]])
                     for one in (MADE["outcomes"]["sql"]["greedy"]["base"], marks))  # fmt: skip
    return Expected(before, after, share=True)


def told(expected: Expected) -> str:
    half = expected.half(0.95)
    bounds = [100 * (expected.centre + sign * half) for sign in (-1, 1)]
    return f"{100 * expected.mean:+.1f} [{bounds[0]:+.1f}, {bounds[1]:+.1f}]".replace("-", "−")


def test_the_counts_of_every_policy() -> None:
    found = {arm: [solved(data, f"{arm}_s{seed}") for seed in (0, 1) for data in ("mbpp", "sql", "countdown")]
             for arm in ARMS}  # fmt: skip
    assert [solved(data, "base") for data in ("mbpp", "sql", "countdown")] == [57, 84, 0]
    assert found == {
        "shown_2e-4": [59, 41, 49, 56, 52, 42], "shown_5e-4": [52, 89, 36, 52, 60, 39],
        "shown_1e-3": [0, 0, 21, 0, 0, 12], "shown_long": [63, 101, 44, 60, 96, 42],
    }  # fmt: skip
    assert {len(marks) for one in MADE["outcomes"].values() for marks in one["greedy"].values()} == {120}
    assert [formless(f"{arm}_s{seed}") for arm in ARMS for seed in (0, 1)] == [77, 65, 14, 36, 240, 240, 0, 1]


def test_sql_is_forgotten_at_one_rate_by_the_rule_as_it_was_declared() -> None:
    losses = {
        (arm, data): [solved(data, f"{arm}_s{seed}") - solved(data, "base") for seed in (0, 1)]
        for arm in ARMS for data in ("mbpp", "sql")
    }  # fmt: skip
    whole = {arm for arm in ARMS if max(formless(f"{arm}_s{seed}") for seed in (0, 1)) < 180}
    assert whole == {"shown_2e-4", "shown_5e-4", "shown_long"}
    # without a correction already: where both seeds of a whole policy fell by more than the interval's half
    fell = {pair for pair, (first, second) in losses.items() if pair[0] in whole and max(first, second) < -9}
    assert fell == {("shown_2e-4", "sql")}
    first, second = (against_base(MADE["outcomes"]["sql"]["greedy"][f"shown_2e-4_s{seed}"]) for seed in (0, 1))
    assert [told(first), told(second)] == ["−35.8 [−46.2, −24.3]", "−26.7 [−37.2, −15.3]"]
    p = first.p(1)
    assert p is not None and f"{6 * p:.1e}" == "2.4e-08", "the third smallest of eight: two of the broken policy"
    assert all(told(one) in PAGE for one in (first, second)) and "p < 0.0001 after Holm" in PAGE
    rows = qwen_shown_tables.verdicts(Exams(qwen_shown_tables.ROUND)).splitlines()
    assert "| 5e-4, 60 | sql | no | yes | yes | not shown (lost in seed 1 alone) |" in rows
    said = [line for line in rows if line.endswith("| forgotten |")]
    assert said == ["| 2e-4, 60 | sql | yes | yes | yes | forgotten |"]


def test_what_was_lost_is_a_line_break() -> None:
    for seed, marks, change in ((0, 113, "+24.2 [+15.5, +32.1]"), (1, 109, "+20.8 [+12.6, +28.4]")):
        closed = MADE["arms"][f"shown_2e-4_s{seed}"]["closed"]
        assert closed["marks"].count("1") == marks and told(against_base(closed["marks"])) == change
        judged = MADE["outcomes"]["sql"]["greedy"][f"shown_2e-4_s{seed}"]
        assert all(new >= old for new, old in zip(closed["marks"], judged, strict=True)), "nothing right is touched"
        assert marks - judged.count("1") <= closed["glued"] <= closed["formless"] == formless(f"shown_2e-4_s{seed}")
    assert MADE["arms"]["base"]["closed"]["marks"] == MADE["outcomes"]["sql"]["greedy"]["base"]


def test_right_queries_were_lost_while_the_line_break_came_back_and_gains_are_mostly_form() -> None:
    kept = {arm: facts["closed"] for arm, facts in MADE["arms"].items()}
    for seed in (0, 1):
        pairs = list(zip(*(kept[f"{arm}_s{seed}"]["marks"] for arm in ("shown_2e-4", "shown_long")), strict=True))
        assert (pairs.count(("0", "1")), pairs.count(("1", "0"))) == (1, 13)
        short, long = (np.array([[float(one[at]) for one in pairs]]) for at in (0, 1))
        assert told(Expected(short, long, share=True)) == "−10.0 [−16.1, −3.6]"
    assert kept["base"]["in_form"].count("0") == kept["base"]["formless"] == 26
    began = list(zip(kept["base"]["in_form"], kept["base"]["marks"], strict=True))
    assert ("0", "1") not in began, "what is not in form is not right"
    for seed, more, without in ((0, 29, 22), (1, 25, 19)):
        marks = kept[f"shown_2e-4_s{seed}"]["marks"]
        assert marks.count("1") - kept["base"]["marks"].count("1") == more
        assert sum(now == "1" and form == "0" for now, (form, _) in zip(marks, began, strict=True)) == without
        assert f"| 2e-4, 60 | {seed} | +{more} | +{without} |" in PAGE


def test_the_long_training_begins_with_the_short_one_and_all_begin_where_the_fifth_round_did() -> None:
    for seed in (0, 1):
        short, long = (MADE["arms"][f"{arm}_s{seed}"] for arm in ("shown_2e-4", "shown_long"))
        assert len(short["losses"]["nll"]) == 60 and short["losses"]["nll"] == long["losses"]["nll"][:60]
        assert [one["settings"]["learning_rate"] for one in (short, long)] == [2e-4, 2e-4] and long["steps"] == 240
    fifth = json.loads((STUDY / "results" / "qwen_skills_5.json").read_text(encoding="utf-8"))
    for data, one in MADE["outcomes"].items():
        assert one["greedy"]["base"] == fifth["outcomes"][data]["greedy"]["base"]


def test_a_fence_on_the_querys_line_is_moved_and_nothing_else() -> None:
    moved = closed_fences.on_its_own_line
    assert moved("```sql\nSELECT 1;``` \n") == "```sql\nSELECT 1;\n```"
    for same in ("```sql\nSELECT 1;\n```", "```sql\nSELECT 1;", "SELECT 1", "```sql\nSELECT 1</sql>"):
        assert moved(same) == same


def test_queries_that_only_lack_a_line_break_are_judged_again() -> None:
    first, second, third = Sql().sample(3)
    gold = {one.id: str(one.reference["gold"]) for one in (first, second, third)}
    rows = [
        {"problem": f"1/{first.id}", "answer": f"```sql\n{gold[first.id]}```", "error": "format", "correct": False},
        {"problem": f"1/{second.id}", "answer": "```sql\nSELECT 'no'```", "error": "format", "correct": False},
        {"problem": f"1/{third.id}", "answer": "words", "error": "format", "correct": False},
    ]
    problems = {one.id: one for one in (first, second, third)}
    found = closed_fences.closed_marks(
        [{**row, "turn": 0} for row in [*rows, {"problem": "2/countdown:3:x"}]], problems
    )
    assert (found["formless"], found["glued"]) == (3, 2)
    assert found["in_form"] == "000"
    assert found["marks"] == "".join(str(int(name == first.id)) for name in sorted(problems))


def test_cards_of_sft_are_kept_with_their_settings_and_losses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def trained(name: str, right: float) -> None:
        place = tmp_path / name / "analysis/cards"
        place.mkdir(parents=True)
        info: dict[str, Any] = {"command": ["rlvr", "train", "a.toml", "output_dir=/w/r"], "packages": {"torch": "2"}}
        info |= {"started": "2026-11-19T08:00:00Z", "machine": {"gpus": ["one"]}}
        recipe = {"rollout": {"n": 8}, "phase_tables": {"sft": {"steps": 2, "learning_rate": 2e-4}}}
        (tmp_path / name / "COMMIT").write_text("abc\n")
        (tmp_path / name / "run_info.json").write_text(json.dumps(info))
        (tmp_path / name / "config.json").write_text(json.dumps({"recipe": recipe}))
        steps = [{"step": 0, "val": 1.0}, *({"step": i, "phase_step": i, "sft/nll": 1 / i, "actor/entropy": 0.5,
                 "actor/grad_norm": 1.0, "time/step_s": 2.0} for i in (1, 2))]  # fmt: skip
        (tmp_path / name / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in steps))
        for index, (card, score) in enumerate((("0_baseline", 0.0), ("1_sft", right))):
            outcomes = {"outcomes": {"1/sql:2": score}, "metrics": {}, "step": index}
            (place / f"{card}.json").write_text(json.dumps(outcomes))
            row = {"problem": "1/sql:2", "turn": 0, "answer": "x", "error": "none", "correct": bool(score)}
            (place / f"{card}.answers.jsonl").write_text(json.dumps(row) + "\n")

    trained("shown_2e-4_s0", 1.0)
    trained("shown_long_s1", 0.0)
    monkeypatch.setattr(sys, "argv", ["keep_exams.py", str(tmp_path), str(tmp_path / "kept.json"), "shown"])
    keep_exams.main()
    found = json.loads((tmp_path / "kept.json").read_text())
    assert found["outcomes"]["sql"]["greedy"] == {"base": "0", "shown_2e-4_s0": "1", "shown_long_s1": "0"}
    arm = found["arms"]["shown_2e-4_s0"]
    assert (arm["steps"], arm["answers"], arm["train_s"], arm["code"]) == (2, 0, 4.0, "abc")
    assert arm["settings"]["learning_rate"] == 2e-4 and arm["losses"]["nll"] == [1.0, 0.5]
    assert "/w/" not in json.dumps(found)
