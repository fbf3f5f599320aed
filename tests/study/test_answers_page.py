"""docs/answers.md is what its script makes of the kept answers, with credit over code and traces of graph tasks."""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "studies" / "npg_muse"))
import keep_answers  # noqa: E402


def test_the_page_is_what_the_script_makes_of_the_kept_files(tmp_path: Path, monkeypatch) -> None:
    kept = ROOT / "studies/coding_five_phase/results/qwen_answers.jsonl"
    monkeypatch.setattr(sys, "argv", ["make_answers.py", str(kept), str(tmp_path / "page.md")])
    runpy.run_path(str(ROOT / "docs/make_answers.py"), run_name="__main__")
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert page == (ROOT / "docs/answers.md").read_text(encoding="utf-8")
    assert page.count("    # <- blamed\n") == 4, "one statement of each program"
    assert "## Graph tasks: wrong after SFT, right after GRPO" in page


def answered(problem: str, correct: bool, answer: str = "[1]") -> dict:
    """One line of a card's answers."""
    prompt = f"You are asked.\n\n{keep_answers.ASKED}\n\nthe graph of {problem}"
    return {"problem": problem, "prompt": prompt, "answer": answer, "correct": correct, "error": "", "detail": ""}


def test_traces_are_of_problems_that_changed_sides_each_task_once_and_short() -> None:
    names = [f"{task}:1:{i}" for task in ("MIS", "MVC", "TSP", "GED") for i in range(3)]
    before = [answered(name, correct=name.startswith("GED")) for name in names]
    long = "x" * (keep_answers.LONGEST + 1)
    after = [answered(name, not name.startswith("GED"), long if name == "GED:1:0" else "[2]") for name in names]
    steady = [answered("MCP:1:0", correct=True)]
    kept = list(keep_answers.pairs(before + steady, after + steady))
    right = [row for row in kept if row["kind"] == "became right"]
    assert sorted(row["problem"][:3] for row in right) == ["MIS", "MVC", "TSP"] and {row["of"] for row in right} == {9}
    wrong = [row for row in kept if row["kind"] == "became wrong"]
    assert len(wrong) == 1 and wrong[0]["problem"] in ("GED:1:1", "GED:1:2") and wrong[0]["of"] == 3
    assert right[0]["question"] == f"the graph of {right[0]['problem']}"
    assert [answer["correct"] for answer in right[0]["answers"]] == [False, True] and json.dumps(kept)
