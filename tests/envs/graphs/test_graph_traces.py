"""Solver traces: every line is true, the answer is what they come to, and it is proved best."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from instances import USERS, problem

from rlvrlab.envs.base import FollowsPrograms
from rlvrlab.envs.graphs.environment import GraphEnvironment
from rlvrlab.envs.graphs.tasks.catalogue import NP
from rlvrlab.errors import UserError
from rlvrlab.types import Problem

LEVELS = (1, 2)
PROBLEMS = 40
LONGEST = {"TSP": 650, "GED": 700, "MCP": 1500, "MIS": 1900, "MVC": 1950, "MCS": 600}
ON_AVERAGE = 1300
Told = tuple[Problem, list[str], str]


@cache
def told(task: str, level: int) -> list[Told]:
    """Problems with the lines of their traces and the answers after them."""
    env = GraphEnvironment(tasks=(task,), levels=(level,), traces=True)
    return [split(made, env.gold(made)) for made in env.problems("train", PROBLEMS, seed=1)]


def split(made: Problem, gold: str | None) -> Told:
    found = re.fullmatch(r"<think>\n(.*)\n</think>\n(.*)", gold or "", re.DOTALL)
    assert found, gold
    return made, found[1].split("\n"), found[2]


def all_told(*tasks: str) -> Iterator[tuple[Any, dict[str, set[str]], list[str], str]]:
    for task in tasks:
        for level in LEVELS:
            for made, lines, answer in told(task, level):
                yield (
                    made.reference,
                    neighbours(made.reference["graphs"][0], made.reference.get("names")),
                    lines,
                    answer,
                )


def neighbours(graph: Any, names: list[str] | None = None) -> dict[str, set[str]]:
    """Of every node by name, from the edges alone."""
    called = names or [str(v) for v in range(graph["n"])]
    rows: dict[str, set[str]] = {name: set() for name in called}
    for u, v in graph["edges"]:
        rows[called[u]].add(called[v])
        rows[called[v]].add(called[u])
    return rows


def listed(text: str) -> list[str]:
    return [] if text in ("nobody", "none") else text.split(", ")


def in_brackets(answer: str) -> list[list[str]]:
    return [one.split(", ") for one in re.findall(r"\[(.*?)\]", answer)]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("task", NP)
def test_references_are_right_short_and_the_same_again(task: str, level: int) -> None:
    env = GraphEnvironment(tasks=(task,), levels=(level,), traces=True)
    tagged = GraphEnvironment(tasks=(task,), levels=(level,), traces=True, style="think")
    lengths = []
    for made, lines, answer in told(task, level):
        gold = env.gold(made)
        assert gold is not None and gold == "\n".join(["<think>", *lines, "</think>", answer])
        verdict = env.verify(made, gold)
        assert verdict.correct is True and verdict.parts["repeat"] == 0 and verdict.answer == answer
        assert not set("[]<#") & set("".join(lines))
        assert tagged.gold(made) == gold.replace(answer, f"<answer>{answer}</answer>")
        lengths.append(len(gold))
    assert max(lengths) <= LONGEST[task] and sum(lengths) / len(lengths) <= ON_AVERAGE, lengths


def test_neighbours_come_first_and_are_all_there() -> None:
    for _, rows, lines, _ in all_told("MIS", "MVC", "MCP"):
        heads = [re.fullmatch(r"(.+?): (.+) = (\d+)", line) for line in lines[: len(rows)]]
        assert [head[1] for head in heads if head] == list(rows)
        for head in heads:
            assert head and set(listed(head[2])) == rows[head[1]] and len(listed(head[2])) == int(head[3])


def test_whoever_is_taken_is_left_and_the_neighbours_go_out() -> None:
    for reference, rows, lines, answer in all_told("MIS", "MVC"):
        left, taken, out = set(rows), [], []
        fewest = {name: len(rows[name]) for name in rows}
        cover = reference["task"] == "MVC"
        assert (lines[-1] == "The cover is all who went out.") is cover
        for line in lines[len(rows) : len(lines) - cover]:
            if line.startswith("Left: "):
                fewest = counted(line, left, rows)
                continue
            step = re.fullmatch(r"Take (.+?)(?:: out go (.+))?\.", line)
            assert step and step[1] in left
            assert fewest[step[1]] <= max(1, min(fewest.values())), "by the rule, which always reached the optimum here"
            gone = set(listed(step[2])) if step[2] else set()
            assert gone == rows[step[1]] & left
            left -= gone | {step[1]}
            taken.append(step[1])
            out += listed(step[2]) if step[2] else []
        assert not left and in_brackets(answer) == [out if cover else taken]
        assert len(out if cover else taken) == reference["optimum"]


def test_candidates_of_a_clique_are_the_common_neighbours() -> None:
    for reference, rows, lines, answer in all_told("MCP"):
        left, taken = set(rows), []
        for line in lines[len(rows) :]:
            if line.startswith("Left: "):
                counted(line, left, rows)
                continue
            step = re.fullmatch(r"Take (.+)\.", line)
            assert step and step[1] in left
            left &= rows[step[1]]
            taken.append(step[1])
        assert not left and in_brackets(answer) == [taken] and len(taken) == reference["optimum"]


def counted(line: str, left: set[str], rows: dict[str, set[str]]) -> dict[str, int]:
    """Who a line says is left, with how many neighbours left, in whole names; all of it must be so."""
    counts = {}
    for entry in listed(line.removeprefix("Left: ").removesuffix(".")):
        called, _, count = entry.rpartition(" ")
        (name,) = [name for name in rows if called == name or called == name.split()[0]]
        counts[name] = int(count)
    assert counts == {name: len(rows[name] & left) for name in left}
    return counts


def test_a_tour_grows_by_true_distances_on_the_cheaper_side() -> None:
    against_the_rule = 0
    for reference, _, lines, answer in all_told("TSP"):
        names, graph = reference["names"], reference["graphs"][0]
        km = {frozenset((names[u], names[v])): w for (u, v), w in zip(graph["edges"], graph["weights"], strict=True)}
        tours = [line.removeprefix("Tour ").split() for line in lines[::2]] + [in_brackets(answer)[0][:-1]]
        assert len(lines) == 2 * (len(names) - 3) and all(tour[0] == names[0] for tour in tours)
        for before, line, after in zip(tours, lines[1::2], tours[1:], strict=False):
            step = re.fullmatch(r"Add (\w+) near (\w+): (.+), (.+)", line)
            assert step and [city for city in after if city != step[1]] == before and step[1] not in before
            assert step[2] == min(before, key=lambda city: km[frozenset((city, step[1]))])
            extra = {}
            for side in (step[3], step[4]):
                place = re.fullmatch(r"(\w+) (\w+) (\d+)\+(\d+)-(\d+)=(-?\d+)", side)
                assert place and step[2] in place.groups()[:2]
                a, b = place[1], place[2]
                assert before[(before.index(a) + 1) % len(before)] == b
                legs = [km[frozenset(pair)] // 100 for pair in ((a, step[1]), (step[1], b), (a, b))]
                assert [int(n) for n in place.groups()[2:5]] == legs and int(place[6]) == legs[0] + legs[1] - legs[2]
                extra[a] = int(place[6])
            against_the_rule += after[after.index(step[1]) - 1] != min(extra, key=lambda a: extra[a])
        tour = in_brackets(answer)[0]
        assert sum(km[frozenset(leg)] for leg in pairwise(tour)) == reference["optimum"]
    assert against_the_rule <= 5


def molecules(reference: Any, lines: list[str]) -> tuple[list[dict[str, set[str]]], list[str]]:
    """Both molecules' neighbours, which the first lines must tell, and the lines after them."""
    rows = [neighbours(graph) for graph in reference["graphs"]]
    for letter, graph, row in zip("AB", reference["graphs"], rows, strict=True):
        labels = [f" {label}" for label in graph.get("labels", [])] or [""] * graph["n"]
        assert lines[0] == f"Molecule {letter}:"
        atoms = [line.split(": ") for line in lines[1 : graph["n"] + 1]]
        assert {head: set(listed(tail)) for head, tail in atoms} == {f"{v}{labels[int(v)]}": row[v] for v in row}
        lines = lines[graph["n"] + 1 :]
    return rows, lines


def mapped(line: str, now: dict[str, str], row: dict[str, set[str]]) -> tuple[str, str]:
    """An atom and its place; the line must name its earlier neighbours and where they went."""
    step = re.fullmatch(r"(\d+)(?: \w+)?(?:, bound to (.+))? -> (\w+).*", line)
    assert step and step[1] not in now and (step[3] == "none" or step[3] not in now.values())
    bound = dict(pair.split(" now ") for pair in listed(step[2] or "none"))
    assert bound == {u: v for u, v in now.items() if u in row[step[1]] and v != "none"}
    return step[1], step[3]


def test_the_cost_of_an_edit_is_told_as_it_grows() -> None:
    for reference, _, lines, answer in all_told("GED"):
        (row, other), steps = molecules(reference, lines)
        labels = [graph["labels"] for graph in reference["graphs"]]
        now: dict[str, str] = {}
        cost = 0
        for line in steps:
            a, b = mapped(line, now, row)
            cost += sum((u in row[a]) != (v in other[b]) for u, v in now.items())
            cost += labels[0][int(a)] != labels[1][int(b)]
            assert line.startswith(f"{a} {labels[0][int(a)]}")
            assert line.endswith(f"-> {b} {labels[1][int(b)]}, cost {cost}")
            now[a] = b
        assert cost == reference["optimum"] and in_brackets(answer) == [[now[v] for v in row]]


def test_shared_atoms_have_the_same_bonds() -> None:
    for reference, _, lines, answer in all_told("MCS"):
        (row, other), steps = molecules(reference, lines)
        now: dict[str, str] = {}
        for line in steps:
            a, b = mapped(line, now, row)
            if b != "none":
                assert all((u in row[a]) == (v in other[b]) for u, v in now.items() if v != "none")
            now[a] = b
        pairs = [(a, b) for a, b in now.items() if b != "none"]
        assert set(now) == set(row) and len(pairs) == reference["optimum"]
        assert in_brackets(answer) == [[a for a, _ in pairs], [b for _, b in pairs]]


def test_where_the_rule_misses_the_proved_answer_leads() -> None:
    """A star of four beside a triangle: most links first begins in the middle of the star and ends with two."""
    edges = [[0, 1], [0, 2], [0, 3], [0, 4], [5, 6], [5, 7], [6, 7]]
    names = [f"{name} X" for name in "ABCDEFGH"]
    reference = {"graphs": [{"n": 8, "edges": edges}], "names": names, "optimum": 3, "answer": "[G X, F X, H X]"}
    made = Problem("MCP:1:0", "graph", "MCP", "", {"task": "MCP", **reference}, {}, "train")
    gold = GraphEnvironment(tasks=("MCP",), traces=True).gold(made)
    assert gold and gold.endswith(
        "Take F X.\nLeft: G 1, H 1.\nTake G X.\nLeft: H 0.\nTake H X.\n</think>\n[F X, G X, H X]"
    )


@pytest.mark.parametrize("task", NP)
def test_large_sizes_have_traces_too(task: str) -> None:
    env = GraphEnvironment(tasks=(task,), levels=(4,), traces=True)
    for made in env.problems("train", 3, seed=2):
        assert env.verify(made, env.gold(made) or "").correct is True


def test_without_traces_references_are_as_before() -> None:
    made = problem("MIS")
    made = Problem(
        made.id, made.source, made.skill, made.prompt, {**made.reference, "answer": f"[{USERS[0]}]"}, {}, "train"
    )
    assert GraphEnvironment().gold(made) == f"<think>\nI compare.\n</think>\n[{USERS[0]}]"
    assert GraphEnvironment(style="think").gold(made) == f"<think>\nI compare.\n</think>\n<answer>[{USERS[0]}]</answer>"
    assert GraphEnvironment(style="bare").gold(made) == f"[{USERS[0]}]"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"tasks": ("MIS", "Distance")}, "no traces of task 'Distance'; allowed: TSP, GED"),
        ({"tasks": ("GED_random",)}, "no traces of task 'GED_random'"),
        ({"style": "bare"}, "style 'bare' shows no traces"),
    ],
)
def test_traces_that_do_not_exist_are_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words) as refusal:
        GraphEnvironment(**settings, traces=True)
    assert "\n" not in str(refusal.value)


def lengths_of(task: str) -> str:
    """Mean and longest reference of both levels in characters, as the page has them."""
    levels = [
        ["\n".join(["<think>", *lines, "</think>", answer]) for _, lines, answer in told(task, n)] for n in LEVELS
    ]
    means = [sum(map(len, golds)) / len(golds) for golds in levels]
    return f"{means[0]:.0f}, {means[1]:,.0f} ({max(map(len, levels[1])):,})"


def test_the_lengths_of_the_documentation_are_those_of_the_traces() -> None:
    page = (Path(__file__).parents[3] / "docs" / "graphs.md").read_text(encoding="utf-8")
    rows = page.split("| task | rule |", 1)[1].split("\n\n", 1)[0].splitlines()[2:]
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    assert {row[0]: row[-1] for row in cells} == {task: lengths_of(task) for task in NP}


def test_traces_of_a_solver_are_no_traces_of_programs() -> None:
    """Credit by execution asks environments whether they follow programs: a key of this name must not say yes."""
    assert not isinstance(GraphEnvironment(traces=True), FollowsPrograms)
