"""Answers to test problems on a run's page: before training and after each phase, with what became of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gathered import line_of, sections
from run_folders import lines, made_run

from rlvrlab.report.gather import gather
from rlvrlab.report.gather import rollouts as on_page

BASE, SFT = "test, before training", "test, after sft"


def made_card(
    folder: Path, index: int, phase: str, right: str, more: list[dict[str, Any]] | None = None, **facts: Any
) -> None:
    """A card over problems a to d, of which those in `right` were solved."""
    cards = folder / "analysis" / "cards"
    cards.mkdir(parents=True, exist_ok=True)
    outcomes = {problem: float(problem in right) for problem in "abcd"}
    card = {"phase": phase, "step": 10 * index, "metrics": {"accepted_at_1": 0.5}, "outcomes": outcomes, **facts}
    (cards / f"{index}_{phase}.json").write_text(json.dumps(card))
    rows = [answered(problem, problem in right, f"{phase} says {problem}") for problem in "abcd"]
    (cards / f"{index}_{phase}.answers.jsonl").write_text(lines([*rows, *(more or [])]))


def answered(problem: str, correct: bool, answer: str, turn: int = 0) -> dict[str, Any]:
    asked = f"solve {problem}" if turn <= 0 else f"no, solve {problem} again"
    return {"problem": problem, "turn": turn, "prompt": asked, "answer": answer, "correct": correct, "error": "none"}


def shown(folder: Path) -> dict[str, dict[str, Any]]:
    """The answers on the page by id, with their texts."""
    data = sections(gather(folder))["rollouts"]
    texts, columns = data["texts"], data["columns"]
    told = ("id", "side", "problem", "completion", "change", "previous", "file")
    rows = zip(*(columns[name] for name in (*told, "line")), strict=True)
    found = [dict(zip((*told, "line"), row, strict=True)) for row in rows]
    as_text = {name: lambda one: texts[one] if one >= 0 else "" for name in told[1:]}
    named = [{name: as_text[name](value) if name in as_text else value for name, value in row.items()} for row in found]
    assert len({row["id"] for row in named}) == len(named), "every answer has an id of its own"
    return {row["id"]: row for row in named}


def test_each_answer_says_what_became_of_it_since_its_phase_began(tmp_path: Path) -> None:
    folder = made_run(tmp_path, "run")
    made_card(folder, 0, "baseline", "a")
    made_card(folder, 1, "sft", "ab")
    made_card(folder, 2, "random", "", control=True)
    made_card(folder, 3, "grpo", "bcd")
    rows = shown(folder)
    change = {row["id"]: row["change"] for row in rows.values() if row["change"]}
    assert change == {
        f"{SFT}/b/0": "became right",
        "test, after random/a/0": "became wrong",
        "test, after random/b/0": "became wrong",
        "test, after grpo/a/0": "became wrong",  # the control arm led nowhere: GRPO started from SFT
        "test, after grpo/c/0": "became right",
        "test, after grpo/d/0": "became right",
    }
    assert rows["test, after grpo/c/0"]["previous"] == f"{SFT}/c/0" and f"{SFT}/c/0" in rows
    assert rows[f"{BASE}/a/0"]["previous"] == ""
    for row in rows.values():
        assert row["completion"] == line_of(folder, row)["answer"]
    steps = sections(gather(folder))["phases"]["steps"]
    assert [one["became"] for one in steps] == [
        {"side": SFT, "became right": 1, "became wrong": 0},
        {"side": "test, after random", "became right": 0, "became wrong": 2},
        {"side": "test, after grpo", "became right": 2, "became wrong": 1},
    ]


def test_second_tries_stand_beside_what_they_mend(tmp_path: Path) -> None:
    folder = made_run(tmp_path, "run")
    tries = [answered("a", True, "mended", 1), answered("b", False, "again wrong", 1), answered("b", True, "lucky", -1)]
    made_card(folder, 0, "baseline", "cd", tries)
    rows = shown(folder)
    told = {name: (row["change"], row["previous"]) for name, row in rows.items() if row["previous"]}
    assert told == {
        f"{BASE}/a/0/try 2": ("mended", f"{BASE}/a/0"),
        f"{BASE}/b/0/try 2": ("", f"{BASE}/b/0"),
        f"{BASE}/b/0/blind try": ("mended blind", f"{BASE}/b/0"),
    }


def test_where_not_all_fit_problems_that_changed_are_shown_and_each_with_all_its_answers(tmp_path, monkeypatch) -> None:
    folder = made_run(tmp_path, "run")
    made_card(folder, 0, "baseline", "ab")
    made_card(folder, 1, "sft", "abd", [answered("c", True, "mended", 1)])
    monkeypatch.setattr("rlvrlab.report.gather.card_answers.MOST", 10)  # half of it: two answers to d, three to c
    rows = shown(folder)
    assert sorted(row["problem"] for row in rows.values()) == ["c", "c", "c", "d", "d"]
    [note] = sections(gather(folder))["rollouts"]["notes"]
    assert note.startswith("answers to 2 of 4 test problems are shown, those that changed first")


def test_cards_without_answers_or_with_damaged_ones_cost_nothing_else(tmp_path: Path) -> None:
    folder = made_run(tmp_path, "run")
    made_card(folder, 0, "baseline", "a")
    made_card(folder, 1, "sft", "ab")
    (folder / "analysis/cards/0_baseline.answers.jsonl").unlink()
    rows = shown(folder)
    assert {row["side"] for row in rows.values()} == {SFT} and rows[f"{SFT}/b/0"]["change"] == "became right"
    assert {row["previous"] for row in rows.values()} == {""}, "the answers before are not there to be read"
    (folder / "analysis/cards/1_sft.answers.jsonl").write_text('{"problem": 3}\n[]\n{"pro')
    document = gather(folder)
    assert len(sections(document)["phases"]["steps"]) == 1
    assert sum("1_sft.answers.jsonl" in one["what"] for one in document["missing"]) == 2


def test_odd_answers_are_first_answers_with_ids_of_ours(tmp_path: Path) -> None:
    folder = made_run(tmp_path, "run")
    odd = [
        answered("e", True, "half", 1.5),
        answered({"a": 1}, True, "table"),
        {**answered("f", True, "x"), "id": "me"},
    ]  # type: ignore[arg-type]
    made_card(
        folder, 0, "baseline", "a", [*odd, {**answered("g", True, "y"), "previous": "me", "steps": [{"kind": "x"}]}]
    )
    rows = shown(folder)
    assert {f"{BASE}/e/0", f"{BASE}/f/0", f"{BASE}/g/0"} < set(rows) and "me" not in rows
    assert {row["change"] for row in rows.values()} == {row["previous"] for row in rows.values()} == {""}


def test_an_answer_that_is_too_long_hides_no_other(tmp_path: Path, monkeypatch) -> None:
    folder = made_run(tmp_path, "run")
    made_card(folder, 0, "baseline", "b", [answered("long", True, "x" * 5000)])
    monkeypatch.setattr("rlvrlab.report.gather.card_answers.CHARACTERS", 2000)
    assert {row["problem"] for row in shown(folder).values()} == set("abcd")


def test_a_run_that_was_trained_shows_the_answers_of_its_cards(records: Path) -> None:
    columns = sections(gather(records / "run"))["rollouts"]
    kept = sorted((records / "run/analysis/cards").glob("*.answers.jsonl"))
    rows = [line for path in kept for line in path.read_text().splitlines()]
    files = [columns["texts"][file] for file in columns["columns"]["file"]]
    assert rows and sum(file.endswith(".answers.jsonl") for file in files) == len(rows) <= on_page.MOST // 2


def test_a_click_on_what_became_right_reads_it_beside_what_was_wrong(tmp_path: Path, show) -> None:
    folder = made_run(tmp_path, "run")
    made_card(folder, 0, "baseline", "a")
    made_card(folder, 1, "sft", "abc", [answered("d", True, "mended", 1)])
    one = show(gather(folder))
    at = one.page
    at.locator("#phases table a").first.click()
    assert at.locator("#rollouts .count").inner_text().startswith("2 of 9 answers") and "became+right" in at.url
    assert at.locator("#rollouts .item .second").first.inner_text().startswith("⇄ became right")
    beside = at.locator("#rollouts .detail pre").all_inner_texts()
    assert [text.strip() for text in beside] == ["solve b", "baseline says b", "sft says b"]
    at.locator("#rollouts label", has_text="change").locator("select").select_option("mended")
    beside = at.locator("#rollouts .detail pre").all_inner_texts()
    assert [text.strip() for text in beside] == ["no, solve d again", "sft says d", "mended"]
    at.evaluate("location.hash = 'rollouts?change=mended+blind'")
    assert at.locator("#rollouts .count").inner_text().startswith("0 of 9"), "what no answer is, is none's"
    assert one.failed() == []
