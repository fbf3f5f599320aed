"""rlvr credit, as a user meets it."""

from __future__ import annotations

import json

import pytest
from command_line import errors, inside, tiny

SOLUTION = """def total(x):
    s = 0
    idle = len(x)
    for v in x:
        s += v
    return s
"""
TASK = {
    "kind": "calls",
    "entry_point": "total",
    "calls": [{"arguments": [[1, 2]], "expected": 3}, {"arguments": [[]], "expected": 0}],
}


@pytest.fixture
def solution(tmp_path):
    (tmp_path / "solution.py").write_text(SOLUTION)
    (tmp_path / "task.json").write_text(json.dumps(TASK))
    return tmp_path


def test_each_line_of_a_solution_has_its_credit(solution, monkeypatch, capsys) -> None:
    words = ("credit", "solution.py", "-p", "task.json")
    done = inside(monkeypatch, capsys, *words, "--json", "--output", "heat.json", folder=solution)
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    assert data == json.loads((solution / "heat.json").read_text())
    [answer] = data["answers"]
    assert [line["credit"] for line in answer["lines"]] == [1.0, "?", 0.0, 0.5, 0.5, 1.0]
    assert answer["text"] == SOLUTION and data["label"] == "shaping" and data["cost"]["credit/verifier_calls"] == 6
    shown = inside(monkeypatch, capsys, *words, folder=solution).stdout.splitlines()
    assert shown[0] == "✓ solution.py  reward 1" and "+0.00" in shown[3] and "idle" in shown[3]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("solution.py",), "task.json"),
        (("solutoin.py",), "solutoin.py: no such file in "),
        (("solutoin.py", "-p", "task.json"), "; did you mean 'solution.py'?"),
        (("solution.py", "-p", "taks.json"), "; did you mean 'task.json'?"),
        (("nosuch",), "no run 'nosuch' and no folder experiments/ here"),
        ((".",), "config.json"),
        (("solution.py", "-p", "task.json", "--segmentation", "lines"), "segmentation"),
    ],
)
def test_mistakes_are_one_line(solution, monkeypatch, capsys, words: tuple[str, ...], says: str) -> None:
    [line] = errors(inside(monkeypatch, capsys, "credit", *words, folder=solution))
    assert says in line


def test_the_answers_of_a_run(tmp_path, monkeypatch, capsys) -> None:
    def call(*words: str):
        return inside(monkeypatch, capsys, *words, folder=tmp_path)

    assert call("train", str(tiny(tmp_path))).returncode == 0
    [run] = (tmp_path / "experiments").iterdir()
    done = call("credit", str(run), "--segmentation", "words", "--json")
    data = json.loads((run / "analysis" / "credit.json").read_text())
    assert done.returncode == 0 and data == json.loads(done.stdout) and len(data["answers"]) <= 3
    assert "recorded" in errors(call("credit", str(run), "--step", "99"))[0]
