"""The style `rows`: the question holds the whole graph, references are right, and answers are read strictly."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from rlvrlab.envs.graphs.environment import GraphEnvironment
from rlvrlab.envs.graphs.rows import ATOMIC_NUMBERS, NODES, OTHERS
from rlvrlab.envs.graphs.tasks.catalogue import NP
from rlvrlab.errors import UserError
from rlvrlab.types import Problem

SMALL: dict[str, Any] = {"style": "rows", "levels": (1,), "sizes": (4, 6), "copies": 50}
ENV = GraphEnvironment(**SMALL, traces=True)


@cache
def made() -> list[Problem]:
    return ENV.problems("train", 120, 3)


def of(task: str) -> list[Problem]:
    return [problem for problem in made() if problem.skill == task]


@pytest.mark.parametrize("task", [task for task in NP if task != "TSP"])
def test_rows_read_back_are_the_graphs_of_the_reference(task: str) -> None:
    symbols = {number: symbol for symbol, number in ATOMIC_NUMBERS.items()}
    for problem in of(task):
        name, *rows = problem.prompt.rstrip("\n").split("\n")
        assert name == task
        for graph, names in zip(problem.reference["graphs"], (NODES, OTHERS), strict=False):
            mine, rows = rows[: graph["n"]], rows[graph["n"] :]
            assert [row[0] for row in mine] == list(names[: graph["n"]])
            numbers = ["".join(filter(str.isdigit, row)) for row in mine]
            assert [symbols[number] for number in numbers if number] == graph.get("labels", [])
            found = [[names.index(c.lower()) for c in row if c.isupper()] for row in mine]
            ends = sorted([u, v] for u, row in enumerate(found) for v in row)
            assert ends == sorted([*graph["edges"], *[[v, u] for u, v in graph["edges"]]])
        assert rows == []


def test_distances_are_nine_steps_each_told_once() -> None:
    for problem in of("TSP"):
        graph = problem.reference["graphs"][0]
        rows = problem.prompt.rstrip("\n").split("\n")[1:]
        told = [([u, u + 1 + i], int(c)) for u, row in enumerate(rows) for i, c in enumerate(row[1:])]
        assert told == list(zip(graph["edges"], graph["weights"], strict=True))
        assert all(1 <= step <= 9 for _, step in told)


def test_references_are_right_with_their_lines_and_without() -> None:
    bare = GraphEnvironment(**SMALL)
    for problem in made():
        gold, answer = ENV.gold(problem), bare.gold(problem)
        assert gold is not None and answer is not None and gold.split("\n")[-1] == answer
        assert ENV.verify(problem, gold).correct is True and bare.verify(problem, answer).correct is True
        assert problem.skill == "TSP" or len(gold) > len(answer)
    assert [check for check in ENV.self_check() if not check.ok] == []


@pytest.mark.parametrize("task", ["MIS", "MVC", "MCP", "GED", "MCS"])
def test_every_line_is_a_row_or_what_is_left_of_one(task: str) -> None:
    for problem in of(task):
        rows = {row[0]: row for row in problem.prompt.rstrip("\n").split("\n")[1:]}
        for line in (ENV.gold(problem) or "").split("\n")[:-1]:
            if task == "GED":
                other = next(c for c in line if c in OTHERS)
                assert line == rows[line[0]] + rows[other]
            elif task == "MCS":
                assert line == rows[line[0]]
            else:
                assert set(line) <= set(rows[line[0]])


def test_atoms_of_the_wrong_molecule_are_not_taken_for_numbers() -> None:
    for problem in of("GED"):
        gold = (ENV.gold(problem) or "").split("\n")[-1]
        assert not ENV.verify(problem, gold.translate(str.maketrans(OTHERS, NODES))).correct
    for problem in of("MCS"):
        first, second = (ENV.gold(problem) or "").split("\n")[-1].split("],[")
        assert not ENV.verify(problem, f"[{second[:-1]}],[{first[1:]}]").correct


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"sizes": ()}, "has names for 7 nodes"),
        ({"sizes": (4, 8)}, "has names for 7 nodes"),
        ({"tasks": ("Distance",)}, "style 'rows' has no task 'Distance'"),
        ({"mode": "grapharena"}, "read by mode 'strict' alone"),
    ],
)
def test_what_rows_cannot_say_is_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        GraphEnvironment(**{**SMALL, **settings})
