"""Zebra puzzles: the solver against brute force, uniqueness, grids read strictly, cells counted."""

from __future__ import annotations

import json
from itertools import permutations, product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvrlab.envs.zebra import Zebra
from rlvrlab.envs.zebra.maker import SIZES, canonical, other_solution, puzzles
from rlvrlab.envs.zebra.solver import RELATIONS, Clue, solutions
from rlvrlab.errors import UserError
from rlvrlab.types import ErrorKind, Problem

SOLUTION = {
    "House 1": {"Name": "Ada", "Drink": "tea"},
    "House 2": {"Name": "Ben", "Drink": "milk"},
    "House 3": {"Name": "Cleo", "Drink": "hot cocoa"},
}
PROBLEM = Problem("p", "zebra", "zebra", "", SOLUTION)


def brute_force(houses: int, attributes: int, clues: list[Clue]) -> set[tuple[int, ...]]:
    grids = (sum(rows, ()) for rows in product(permutations(range(houses)), repeat=attributes))
    return {grid for grid in grids if all(clue.holds(grid) for clue in clues)}


def clues_of(houses: int, attributes: int) -> st.SearchStrategy[Clue]:
    values = st.integers(0, houses * attributes - 1)
    pairs = st.tuples(values, values).filter(lambda pair: pair[0] != pair[1])
    placed = st.builds(Clue, st.sampled_from(["at", "not_at"]), values, st.integers(0, houses - 1))
    related = st.builds(lambda kind, pair: Clue(kind, *pair), st.sampled_from(sorted(RELATIONS)), pairs)
    return placed | related


@given(st.data(), st.sampled_from([(2, 2), (2, 3), (3, 2), (3, 3), (4, 2)]))
def test_the_solver_finds_exactly_what_brute_force_finds(data: st.DataObject, size: tuple[int, int]) -> None:
    clues = data.draw(st.lists(clues_of(*size), max_size=6))
    found = list(solutions(*size, clues))
    assert len(found) == len(set(found))
    assert set(found) == brute_force(*size, clues)


@pytest.mark.parametrize(
    "level", [1, 2, 3, pytest.param(4, marks=pytest.mark.slow), pytest.param(5, marks=pytest.mark.slow)]
)
def test_puzzles_have_one_solution_and_hardly_a_spare_clue(level: int) -> None:
    houses, attributes = SIZES[level]
    stream = puzzles(level, "test", 0)
    for _ in range(8):
        puzzle = next(stream)
        assert list(solutions(houses, attributes, puzzle.clues)) == [puzzle.grid]
        needed = list(puzzle.clues)
        if other_solution(houses, attributes, needed[:-1], puzzle.grid) is None:
            needed.pop()  # the one clue that moves a puzzle to its role
        for clue in needed:
            rest = [one for one in needed if one != clue]
            assert other_solution(houses, attributes, rest, puzzle.grid) is not None


def test_small_puzzles_are_unique_by_brute_force() -> None:
    for level in (1, 2):
        stream = puzzles(level, "train", 4)
        for _ in range(5):
            puzzle = next(stream)
            assert brute_force(*SIZES[level], list(puzzle.clues)) == {puzzle.grid}


def test_no_content_crosses_roles_even_where_there_is_little() -> None:
    streams = {role: puzzles(1, role, 0) for role in ("train", "dev", "test")}  # type: ignore[arg-type]
    found = {role: {canonical(next(stream)) for _ in range(60)} for role, stream in streams.items()}
    assert not found["train"] & found["dev"] and not found["train"] & found["test"] and not found["dev"] & found["test"]


def test_renaming_does_not_change_the_content() -> None:
    puzzle = next(puzzles(3, "train", 0))
    renamed = puzzle._replace(attributes=tuple("ABCD"), values=tuple(tuple("wxyz") for _ in range(4)))
    reordered = puzzle._replace(clues=puzzle.clues[::-1])
    assert canonical(puzzle) == canonical(renamed) == canonical(reordered)
    assert canonical(puzzle._replace(clues=puzzle.clues[1:])) != canonical(puzzle)


def swapped_attributes(clue: Clue, houses: int) -> Clue:
    def move(value: int) -> int:
        attribute, index = divmod(value, houses)
        return {0: 1, 1: 0}.get(attribute, attribute) * houses + index

    return clue._replace(left=move(clue.left), right=clue.right if clue.kind in ("at", "not_at") else move(clue.right))


def test_swapping_attributes_does_not_change_the_content() -> None:
    puzzle = next(puzzles(3, "train", 1))
    grid = puzzle.grid[4:8] + puzzle.grid[:4] + puzzle.grid[8:]
    other = puzzle._replace(clues=tuple(swapped_attributes(clue, 4) for clue in puzzle.clues), grid=grid)
    assert all(clue.holds(grid) for clue in other.clues)
    assert canonical(other) == canonical(puzzle)


@pytest.mark.parametrize(
    ("what", "answer", "cells", "error"),
    [
        ("right", SOLUTION, 6, ErrorKind.NONE),
        ("wrapped", {"solution": SOLUTION}, 6, ErrorKind.NONE),
        ("other case and spaces", json.dumps(SOLUTION).replace("hot cocoa", " Hot  Cocoa "), 6, ErrorKind.NONE),
        ("in a block", f"Here:\n```json\n{json.dumps(SOLUTION)}\n```", 6, ErrorKind.NONE),
        (
            "two swapped",
            {**SOLUTION, "House 1": SOLUTION["House 2"], "House 2": SOLUTION["House 1"]},
            2,
            ErrorKind.WRONG,
        ),
        ("house missing", {house: row for house, row in SOLUTION.items() if house != "House 2"}, 4, ErrorKind.WRONG),
        ("one cell", {"House 1": {"Name": "Ada"}}, 1, ErrorKind.WRONG),
        ("nothing", {}, 0, ErrorKind.WRONG),
        ("value twice", {**SOLUTION, "House 2": {"Name": "Ada", "Drink": "milk"}}, 0, ErrorKind.SYNTAX),
        ("value of another attribute", {**SOLUTION, "House 1": {"Name": "tea"}}, 0, ErrorKind.SYNTAX),
        ("house more", {**SOLUTION, "House 4": {"Name": "Ada"}}, 0, ErrorKind.SYNTAX),
        ("number of a house", {"1": SOLUTION["House 1"]}, 0, ErrorKind.SYNTAX),
        ("list in a cell", {"House 1": {"Name": ["Ada"]}}, 0, ErrorKind.SYNTAX),
        ("key twice", '{"House 1": {"Name": "Ben"}, "House 1": {"Name": "Ada"}}', 0, ErrorKind.SYNTAX),
        ("words after it", json.dumps(SOLUTION) + " done", 0, ErrorKind.SYNTAX),
        ("list", "[]", 0, ErrorKind.FORMAT),
        ("words", "Ada drinks tea", 0, ErrorKind.FORMAT),
    ],
)
def test_grids(what: str, answer: Any, cells: int, error: ErrorKind) -> None:
    text = answer if isinstance(answer, str) else json.dumps(answer)
    verdict = Zebra(style="plain").verify(PROBLEM, text)
    assert (verdict.error, verdict.passed) == (error, cells), verdict.detail
    assert verdict.score == verdict.parts["cells"] == pytest.approx(cells / 6)
    assert verdict.correct is (cells == 6)


def test_given_rows(tmp_path: Path) -> None:
    path = tmp_path / "zebra_test.jsonl"
    row = {"puzzle": "Two houses …", "solution": {"header": ["House", "Name"], "rows": [["1", "Ada"], ["2", "Ben"]]}}
    path.write_text(json.dumps(row))
    env = Zebra(path=str(path), style="plain")
    problem = env.problems("test", 1, 0)[0]
    assert problem.reference == {"House 1": {"Name": "Ada"}, "House 2": {"Name": "Ben"}}
    assert env.verify(problem, env.gold(problem) or "").correct is True
    broken = tmp_path / "broken.jsonl"
    broken.write_text(json.dumps({"puzzle": "?", "solution": {"header": ["Name"], "rows": []}}))
    with pytest.raises(UserError, match=r"broken\.jsonl:1: column 'solution'"):
        Zebra(path=str(broken)).problems("test", 1, 0)
