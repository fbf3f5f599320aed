"""NLGraph: its labels are proved again, and a broken row is named."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from rlvrlab.envs.graphs.nlgraph import NLGraph
from rlvrlab.errors import UserError
from rlvrlab.registry import find

ROW = {
    "question": "In an undirected graph, (i,j) means that node i and node j are connected with an undirected edge.\n"
    "The nodes are numbered from 0 to 3, and the edges are: (0,1) (1,2) (2,0)\nQ: Is there a cycle in this graph?\nA:",
    "answer": "Yes, there is a cycle in this graph.",
    "difficulty": "easy",
}


def write(folder: Path, rows: Any, name: str = "cycle") -> NLGraph:
    (folder / name).mkdir()
    (folder / name / "test.json").write_text(rows if isinstance(rows, str) else json.dumps(rows))
    return NLGraph(str(folder), (name,))


def test_every_label_is_reproduced(nlgraph_folder: Path) -> None:
    env = NLGraph(str(nlgraph_folder))
    problems = env.problems("test", 1000, seed=0)
    assert all(env.verify(p, env.gold(p) or "").correct for p in problems)
    counts = Counter(p.skill.removeprefix("nlgraph_") for p in problems)
    assert counts.pop("GNN") == 39 and sum(counts.values()) == 961
    assert all(check.ok for check in env.self_check())
    assert {p.id for p in env.problems("test", 1000, seed=1)} == {p.id for p in problems}
    with pytest.raises(UserError, match="1001 test problems asked for"):
        env.problems("test", 1001, seed=0)


def test_a_row_becomes_a_problem(tmp_path: Path) -> None:
    env = write(tmp_path, {"0": ROW})
    (made,) = env.problems("test", 1, seed=0)
    assert made.reference["graphs"] == [{"n": 4, "edges": [[0, 1], [1, 2], [0, 2]]}]
    assert made.prompt.endswith("Is there a cycle in this graph?\nFinish with ### followed by Yes or No.")
    assert (made.reference["optimum"], made.skill, made.meta["difficulty"]) == (True, "nlgraph_cycle", "easy")
    assert env.verify(made, "### yes").correct is True and env.verify(made, "### no").correct is False
    assert find("env", "nlgraph") is NLGraph


@pytest.mark.parametrize(
    ("rows", "named"),
    [
        ({"7": {**ROW, "answer": "No, there is no cycle in this graph."}}, "row '7': column 'answer' says False"),
        ({"7": {"answer": "Yes"}}, "row '7': column 'question' is missing"),
        ({"7": {**ROW, "answer": 1}}, "row '7': column 'answer' is missing or not text"),
        ({"7": {**ROW, "question": "?"}}, "row '7': column 'question': no graph found"),
        ("{", "test.json is not a JSON object of rows"),
        ([1], "test.json is not a JSON object of rows"),
    ],
)
def test_a_broken_row_is_named(tmp_path: Path, rows: Any, named: str) -> None:
    with pytest.raises(UserError, match=named):
        write(tmp_path, rows).problems("test", 1, seed=0)


def test_missing_files_and_unknown_tasks(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no file .*test\.json; point folder"):
        NLGraph(str(tmp_path)).problems("test", 1, seed=0)
    with pytest.raises(UserError, match="did you mean 'cycle'"):
        NLGraph(tasks=("cycles",))
