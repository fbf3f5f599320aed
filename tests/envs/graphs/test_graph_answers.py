"""Graph answers: the table of verdicts on hostile answers, and laws that hold for any text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from instances import REFERENCES, USERS, problem
from texts import any_text

from rlvrlab.envs.graphs.environment import GraphEnvironment
from rlvrlab.envs.graphs.graph import Graph
from rlvrlab.envs.graphs.tasks.base import Instance
from rlvrlab.envs.graphs.tasks.catalogue import TASKS
from rlvrlab.envs.graphs.verdicts import judge
from rlvrlab.types import ErrorKind

GOLDEN = Path(__file__).with_name("graph_answers.jsonl")
ROWS = [json.loads(line) for line in GOLDEN.read_text().splitlines()]


def text_of(answer: str | list[list[Any]]) -> str:
    return answer if isinstance(answer, str) else "".join(piece * times for piece, times in answer)


@pytest.mark.parametrize("row", ROWS, ids=[f"{row['task']}: {row['what']}" for row in ROWS])
def test_table_of_verdicts(quickly: Any, row: dict[str, Any]) -> None:
    text = text_of(row["answer"])
    env = GraphEnvironment(style=row.get("style", "plain"))
    asked = problem(row["task"])
    verdict = quickly(0.05, lambda: env.verify(asked, text))
    assert verdict.error.value == row["error"], verdict.detail
    assert verdict.correct is {"none": True, "infra": None}.get(row["error"], False)
    if row["error"] == "infra":
        assert verdict.flags == ("better_than_optimum",)
        return
    good, known = row["error"] == "none", row["error"] in ("none", "wrong_answer")
    assert verdict.score == verdict.parts["quality"] == pytest.approx(row.get("quality", float(good)))
    assert verdict.parts["feasible"] == float(known)
    assert verdict.parts["format"] >= verdict.parts["feasible"] >= verdict.parts["quality"] >= verdict.parts["correct"]
    assert verdict.parts["repeat"] == row.get("repeat", verdict.parts["repeat"])
    assert bool(verdict.detail) is not good
    assert verdict.detail.isascii() and len(verdict.detail) < 200


def test_table_is_complete() -> None:
    assert len(ROWS) >= 180
    assert len({(row["task"], row["what"], row.get("style")) for row in ROWS}) == len(ROWS)
    assert {row["error"] for row in ROWS} == {"none", "format", "syntax", "rule", "wrong_answer", "infra"}
    assert {row["task"] for row in ROWS} == set(REFERENCES)


WORDS = st.sampled_from(
    [*USERS, "[", "]", ",", "<think>", "</think>", "### ", "Yes", "No", "0", "1", "2", "Nobody", " or "]
)


@given(st.lists(WORDS, max_size=25).map("".join) | any_text(max_size=80), st.sampled_from(sorted(REFERENCES)))
def test_any_text_gets_a_verdict_whose_parts_are_in_order(text: str, key: str) -> None:
    for style in ("plain", "think"):
        verdict = GraphEnvironment(style=style).verify(problem(key), text)  # type: ignore[arg-type]
        if key == "alarm" and verdict.correct is None:
            continue
        assert verdict.correct is (verdict.error is ErrorKind.NONE)
        order = [verdict.parts[name] for name in ("format", "feasible", "quality", "correct")]
        assert order == sorted(order, reverse=True) and min(order) >= 0 and max(order) <= 1


@given(st.lists(st.integers(0, 4), min_size=1, max_size=6))
def test_sets_are_judged_by_their_definition(nodes: list[int]) -> None:
    text = f"[{', '.join(USERS[v] for v in nodes)}]"
    chosen = set(nodes)
    path = [(0, 1), (1, 2), (2, 3), (3, 4)]
    verdicts = {task: GraphEnvironment().verify(problem(task), text) for task in ("MIS", "MVC")}
    if len(chosen) < len(nodes):
        assert {v.error for v in verdicts.values()} == {ErrorKind.SYNTAX}
        return
    independent = not any(u in chosen and v in chosen for u, v in path)
    covering = all(u in chosen or v in chosen for u, v in path)
    assert verdicts["MIS"].parts["feasible"] == float(independent)
    assert verdicts["MVC"].parts["feasible"] == float(covering)
    assert verdicts["MIS"].score == pytest.approx(len(chosen) / 3 * independent)
    assert verdicts["MVC"].score == pytest.approx(2 / len(chosen) * covering)


@pytest.mark.parametrize("end", [", ,", ",,", ", ，", ",\n,"])
def test_a_list_that_ends_in_two_commas_has_an_empty_place(end: str) -> None:
    """One comma too many is how people write; with two, a list short of a node passed for one of all nodes."""
    apart = Instance((Graph(3, ((1, 0),), directed=True),))
    two = Graph(3, ((0, 1),), labels=("C", "C", "O"))
    for task, instance, best in (("topology", apart, 1), ("GED", Instance((two, two)), 0)):
        answers = {text: judge(TASKS[task], instance, best, f"### [{text}]", "plain") for text in ("1, 0", "0, 1")}
        assert not any(verdict.correct for verdict in answers.values())
        for text in answers:
            verdict = judge(TASKS[task], instance, best, f"### [{text}{end}]", "plain")
            assert (verdict.correct, verdict.error) == (False, ErrorKind.SYNTAX), (task, text)
    assert judge(TASKS["topology"], apart, 1, "### [1, 2, 0,]", "plain").correct is True
