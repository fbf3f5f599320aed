"""`rlvr new task` on rows of programs: tests decide, and the recipe that is written runs as it is written."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
from command_line import errors, inside

from rlvrlab.data.guesses import guessed, look_at


def code_rows(size: int, one_text: bool = False) -> list[dict[str, Any]]:
    """Functions that add a number, with two asserts and a solution each."""
    asserts = [[f"assert add{i}(1) == {1 + i}", f"assert add{i}(0) == {i}"] for i in range(size)]
    return [
        {
            "question": f"Write add{i}(a), which returns a plus {i}.",
            "tests": "\n".join(tests) if one_text else tests,
            "solution": f"def add{i}(a):\n    return a + {i}",
        }
        for i, tests in enumerate(asserts)
    ]


def write_rows(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize("one_text", [False, True])
@pytest.mark.parametrize("called", ["tests", "checks", "test_list"])
def test_rows_with_tests_are_judged_by_them_and_not_by_the_text_of_a_solution(one_text, called, tmp_path) -> None:
    rows = [{called if key == "tests" else key: value for key, value in row.items()} for row in code_rows(8, one_text)]
    keys = look_at(write_rows(tmp_path / "rows.jsonl", rows)).keys
    assert keys == {"prompt": "question", "answer": called, "matcher": "code"}
    last_first = [dict(reversed(row.items())) for row in rows]
    assert guessed(last_first, {}) == keys, "whatever the order of the columns"


def test_asserts_in_questions_and_solutions_are_no_tests(tmp_path) -> None:
    told = [{**row, "question": f"{row['question']}\n{row['tests'][0]}"} for row in code_rows(4)]
    assert guessed(told, {})["answer"] == "tests"
    bare = [{"question": row["question"], "answer": "a"} for row in told]
    assert guessed(bare, {}) == {"prompt": "question", "answer": "answer", "matcher": "exact"}
    tried = [{**row, "solution": f"{row['solution']}\n{row['tests'][0]}"} for row in code_rows(4)]
    assert guessed([{"solution": row.pop("solution"), **row} for row in tried], {})["answer"] == "tests"


def test_what_is_said_about_the_answer_goes_before_a_column_of_tests() -> None:
    assert guessed(code_rows(4), {"answer": "solution"})["matcher"] == "exact"
    assert guessed(code_rows(4), {"matcher": "exact"})["answer"] == "solution"
    assert guessed(code_rows(4), {"matcher": "code"})["answer"] == "tests"


def test_one_broken_row_does_not_turn_tests_into_texts() -> None:
    rows = code_rows(4, one_text=True)
    rows[2]["tests"] = "assert add2(1 == 3"
    assert guessed(rows, {})["answer"] == "tests", "the row is named when it is read"


@pytest.mark.parametrize("tests", ["def test_it():\n    assert add(1) == 2", "M = {}\ndef check(f):\n    assert f(1)"])
def test_tests_that_nothing_calls_are_refused(tests, tmp_path, monkeypatch, capsys) -> None:
    rows = [{"question": f"{i}: add one", "tests": tests, "solution": "def add(a): return 7"} for i in range(40)]
    write_rows(tmp_path / "rows.jsonl", rows)
    words = ("check", "env", "answers", "path=rows.jsonl", "answer=tests", "matcher=code")
    (line,) = errors(inside(monkeypatch, capsys, *words, folder=tmp_path))
    assert "rows.jsonl:1: column 'tests': no test runs, since all stand inside functions" in line


def made_recipe(folder: Path, monkeypatch, capsys, *words: str) -> dict[str, Any]:
    done = inside(monkeypatch, capsys, "new", "task", "mine", "--data", "rows.jsonl", *words, folder=folder)
    assert done.returncode == 0, done.stderr
    return tomllib.loads((folder / "mine.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("said", [(), ("matcher=code", "answer=tests")])
def test_the_recipe_of_a_code_task_and_its_check_run_as_they_are_written(said, tmp_path, monkeypatch, capsys) -> None:
    write_rows(tmp_path / "rows.jsonl", code_rows(80))
    recipe = made_recipe(tmp_path, monkeypatch, capsys, *said)
    assert "style" not in recipe["env"] and recipe["env"]["matcher"] == "code"
    longest = len("```python\ndef add79(a):\n    return a + 79\n```\n")
    assert longest < recipe["rollout"]["max_tokens"] <= longest + 8, "the longest solution fits, with its block"
    line = next(line for line in (tmp_path / "mine.py").read_text().splitlines() if "rlvr check reward" in line)
    done = inside(monkeypatch, capsys, *shlex.split(line)[1:], folder=tmp_path)
    assert done.returncode == 0 and "style" not in line, done.stderr
    done = inside(monkeypatch, capsys, "check", "recipe", "mine.toml", folder=tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("solution", [{}, {"solution": ""}])
def test_a_file_without_solutions_makes_a_recipe_without_sft(solution, tmp_path, monkeypatch, capsys) -> None:
    rows = [{"prompt": row["question"], "tests": row["tests"], **solution} for row in code_rows(80)]
    write_rows(tmp_path / "rows.jsonl", rows)
    recipe = made_recipe(tmp_path, monkeypatch, capsys)
    assert recipe["phases"] == ["grpo"] and "sft" not in recipe
    assert "# no sft: there are no right answers to show" in (tmp_path / "mine.toml").read_text()
    done = inside(monkeypatch, capsys, "check", "recipe", "mine.toml", folder=tmp_path)
    assert done.returncode == 0, done.stderr


def test_check_recipe_refuses_phases_that_training_refuses(tmp_path, monkeypatch, capsys) -> None:
    rows = [{"prompt": row["question"], "tests": row["tests"]} for row in code_rows(80)]
    write_rows(tmp_path / "rows.jsonl", rows)
    made_recipe(tmp_path, monkeypatch, capsys)
    refused = "sft: environment 'answers' has no reference answers; leave the phase out"
    for verb in (("check", "recipe"), ("train",)):
        done = inside(monkeypatch, capsys, *verb, "mine.toml", "phases=['sft', 'grpo']", folder=tmp_path)
        assert done.returncode and refused in done.stderr and "fine" not in done.stdout.split(" ")
    monkeypatch.setattr("rlvrlab.train.lookups.MOST_S", 0.0)
    words = ("check", "recipe", "mine.toml", "phases=['sft', 'grpo']", "reward.type=binary")
    done = inside(monkeypatch, capsys, *words, folder=tmp_path)
    assert re.search(r"phases: not checked: all problems take about \d+ s to draw; a run checks", done.stdout)


def test_check_recipe_counts_problems_and_warns_of_too_few(tmp_path, monkeypatch, capsys) -> None:
    write_rows(tmp_path / "rows.jsonl", code_rows(40))
    made_recipe(tmp_path, monkeypatch, capsys)
    told = json.loads(inside(monkeypatch, capsys, "check", "recipe", "mine.toml", "--json", folder=tmp_path).stdout)
    train, dev, test = (told["problems"][role] for role in ("train", "dev", "test"))
    assert train + dev + test == 40 and 0 < dev < 20 and 0 < test < 20
    done = inside(monkeypatch, capsys, "check", "recipe", "mine.toml", folder=tmp_path)
    assert f"env, dev problems: found: {dev} of answers (all that there are, of the 50 asked for)" in done.stdout
    assert f"env, test problems: found: {test} of answers" in done.stdout and done.returncode == 0
    few = [f"warning: {count} {role} problems: on fewer than 20 hardly any" for role, count in told["problems"].items()]
    assert [line.partition(" gain")[0] for line in done.stderr.splitlines()] == few[1:]
    assert done.stderr.count("add rows") == 2
    write_rows(tmp_path / "rows.jsonl", code_rows(400))
    done = inside(monkeypatch, capsys, "check", "recipe", "mine.toml", "data.dev_size=4", folder=tmp_path)
    (line,) = done.stderr.splitlines()
    assert "4 dev problems" in line and "raise data.dev_size" in line
