"""EvalPlus' sets after training: what is kept of made-up examinations, and what tables say where arms are missing."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from test_kept_exams import arm, exam

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "studies"), str(ROOT / "studies" / "qwen_coder_mbpp")]
import keep_exams  # noqa: E402
import plus_tables  # noqa: E402

PLUS = [f"Mbpp/{number}" for number in range(2, 42)]  # 31 of the test split, 9 others
HE = [f"HumanEval/{number}" for number in range(40)]


def marks(problems: list[str], right: int) -> dict[str, Any]:
    return exam(problems, [int(index < right) for index in range(len(problems))])


def examined(right: int, *, old: bool = False) -> dict[str, Any]:
    """Every set with the same first problems right, MBPP+ by base inputs with two more."""
    sets = {"mbpp": ["MBPP/11", "MBPP/12"], "he": HE, "heplus": HE, "mbppplus": PLUS}
    made = {name: marks(problems, right) for name, problems in sets.items()}
    made["mbppplus_base"] = marks(PLUS, right + 2)
    if old:
        made |= {"mbppplus_old": marks(PLUS, 24), "mbppbase_old": marks(PLUS, 5)}
    return made


def kept(raw: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    for name, form in (("plus", "plus"), ("mbppplus_old", "mbppplus_old")):
        monkeypatch.setattr(sys, "argv", ["keep_exams.py", str(raw), str(raw / f"{name}.json"), form])
        keep_exams.main()
    return dict(plus_tables.tables(raw))


def row(table: str, *begins: str) -> list[str]:
    (found,) = (line for line in table.splitlines() if line.startswith(f"| {' | '.join(begins)} |"))
    return found.strip("| ").split(" | ")


def test_mbpp_plus_is_kept_in_two_parts_and_whole_by_all_and_by_base_inputs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arm(tmp_path / "base", examined(20, old=True))
    arm(tmp_path / "grpo_s2", examined(30), steps=2)
    kept(tmp_path, monkeypatch)
    made = json.loads((tmp_path / "plus.json").read_text())
    base = {data: one["greedy"]["base"] for data, one in made["outcomes"].items()}
    assert list(base) == list(keep_exams.PLUS_SETS) and not made["left_out"]
    sizes = {data: (len(one), one.count("1")) for data, one in base.items() if data.startswith("mbpp+")}
    assert sizes == {
        "mbpp+ of the test split": (31, 11), "mbpp+, others": (9, 9), "mbpp+, whole": (40, 20),
        "mbpp+ of the test split, base inputs": (31, 13), "mbpp+, others, base inputs": (9, 9),
        "mbpp+, whole, base inputs": (40, 22),
    }  # fmt: skip


def test_two_seeds_answer_by_two_and_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arm(tmp_path / "base", examined(20, old=True))
    arm(tmp_path / "grpo_s2", examined(30), steps=2)
    arm(tmp_path / "grpo_s3", examined(31), steps=2)
    told = kept(tmp_path, monkeypatch)
    declared = row(told["What was declared"], "humaneval+")
    assert declared[1:3] == ["40", "2 of 3"] and declared[3].startswith("+26.2 [+") and declared[4:] == ["yes", "yes"]
    changes = told["Differences, in points"]
    cells = row(changes, "mbpp+, whole: greedy", "grpo − untrained")
    assert cells[2].startswith("+25.0 [+") and cells[3].startswith("+27.5 [+") and cells[4] == "–"
    assert cells[5].startswith("+26.2 [") and "floor" not in changes
    old = told["The untrained model on MBPP+ v0.1.0"]
    assert row(old, "MBPP+ v0.1.0")[1:] == ["24 of 40", "60.0 [44.6, 73.7]", "59.4", "yes"]
    assert row(old, "its base inputs")[1] == "5 of 40" and row(old, "its base inputs")[-1] == "no"


def test_a_loss_is_neither_raised_nor_not_lower(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arm(tmp_path / "base", examined(20))
    for seed in (2, 3, 4):
        arm(tmp_path / f"grpo_s{seed}", examined(4 + seed), steps=2)
    arm(tmp_path / "floor_s2", examined(21), steps=2)
    monkeypatch.setattr(sys, "argv", ["", str(tmp_path), str(tmp_path / "plus.json"), "plus"])
    keep_exams.main()
    told = dict(plus_tables.tables(tmp_path))
    assert row(told["What was declared"], "mbpp+ of the test split")[2] == "3 of 3"
    assert row(told["What was declared"], "mbpp+ of the test split")[4:] == ["no", "no"]
    floor = row(told["Differences, in points"], "humaneval: greedy", "floor − untrained")
    assert floor[2].startswith("+2.5 [") and floor[3:5] == ["–", "–"] and floor[5].endswith("problems only")
    assert "The untrained model on MBPP+ v0.1.0" not in told


def test_a_seed_that_was_cut_or_lacks_a_set_is_in_no_difference_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arm(tmp_path / "base", examined(20, old=True))
    arm(tmp_path / "grpo_s2", examined(30), steps=2)
    without = {name: one for name, one in examined(31).items() if not name.startswith("mbppplus")}
    arm(tmp_path / "grpo_s3", without, steps=2)
    arm(tmp_path / "grpo_s4", examined(1), steps=1)
    info = tmp_path / "grpo_s4" / "run_info.json"
    info.write_text(json.dumps(json.loads(info.read_text()) | {"status": "preempted"}))
    told = kept(tmp_path, monkeypatch)
    assert row(told["What was declared"], "humaneval+")[2] == "2 of 3"
    assert row(told["What was declared"], "mbpp+ of the test split")[2:] == [
        "1 of 3", "–", "not answered", "not answered",
    ]  # fmt: skip
    assert row(told["Examined after the last update, in %"], "grpo 4 (cut by time)")[1] == "1"
    assert row(told["Differences, in points"], "humaneval: greedy", "grpo − untrained")[4] == "–"


def test_a_set_that_nobody_was_asked_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arm(tmp_path / "base", {"he": marks(HE, 3)})
    monkeypatch.setattr(sys, "argv", ["", str(tmp_path), str(tmp_path / "plus.json"), "plus"])
    keep_exams.main()
    assert list(json.loads((tmp_path / "plus.json").read_text())["outcomes"]) == ["humaneval"]
    told = dict(plus_tables.tables(tmp_path))
    assert row(told["What was declared"], "humaneval+")[1:4] == ["0", "0 of 3", "–"]
    monkeypatch.setattr(sys, "argv", ["", str(tmp_path), str(tmp_path / "old.json"), "mbppplus_old"])
    with pytest.raises(SystemExit, match="no arm of this form"):
        keep_exams.main()


def test_the_committed_round_says_what_its_page_says() -> None:
    made = json.loads((plus_tables.ROUND / "plus.json").read_text())
    greedy = {data: one["greedy"] for data, one in made["outcomes"].items()}
    gains = {
        data: [100 * (one[f"grpo_s{s}"].count("1") - one["base"].count("1")) / len(one["base"]) for s in (2, 3, 4)]
        for data, one in greedy.items()
    }
    assert {data: [f"{gain:+.1f}" for gain in gains[data]] for data in plus_tables.DECIDES} == {
        "humaneval+": ["+6.1", "+4.9", "+7.9"], "mbpp+ of the test split": ["+4.0", "+2.2", "+4.0"],
    }  # fmt: skip
    assert {data: len(one["base"]) for data, one in greedy.items() if "base inputs" not in data} == {
        "humaneval+": 164, "mbpp+ of the test split": 224, "mbpp+, others": 154, "mbpp+, whole": 378,
    }  # fmt: skip
    assert [data for data, one in greedy.items() if "floor_s2" not in one] == ["humaneval+"] and not made["left_out"]
    examined = {arm: facts["examined"] for arm, facts in made["arms"].items()}
    assert {arm: one["mbppplus"]["errors"]["timeout"] for arm, one in examined.items()} == {
        "base": 3, "floor_s2": 8, "grpo_s2": 11, "grpo_s3": 9, "grpo_s4": 9,
    }  # fmt: skip
    every, few = greedy["mbpp+, whole"], greedy["mbpp+, whole, base inputs"]
    assert {arm: few[arm].count("1") - every[arm].count("1") for arm in examined} == {
        "base": 36, "floor_s2": 44, "grpo_s2": 48, "grpo_s3": 50, "grpo_s4": 55,
    }  # fmt: skip
    old = json.loads((plus_tables.ROUND / "mbppplus_old.json").read_text())["outcomes"].values()
    assert [(one["greedy"]["base"].count("1"), len(one["greedy"]["base"])) for one in old] == [(232, 398), (272, 398)]
