"""Zebra puzzles: who lives where, from clues; the answer is the whole grid as JSON.

    id         zebra:2:1f3a9c0b77d2e6a1
    prompt     There are 3 houses, numbered 1 to 3 from left to right … 1. Ada does not live in house 2. …
    completion <think>…</think>{"House 1": {"Name": "Ben", "Drink": "tea"}, "House 2": {…}, "House 3": {…}}
    reference  {"House 1": {"Name": "Ben", "Drink": "tea"}, …}
    meta       {"level": 2, "houses": 3, "attributes": 3, "clues": 6, "proof": "unique by exhaustive search"}

`score` is the share of right cells, `correct` needs all of them. With `path` the rows are ZebraLogic-shaped:
{"puzzle": …, "solution": {"header": ["House", "Name", …], "rows": [["1", "Ben", …], …]}}.

Traps: a grid that gives every house the same drink has a third of that row right, so a value used twice is refused; a
later duplicate key silently wins in JSON, so it is refused too; a value nobody has is refused, not just wrong; a deeply
nested text must not take the reader down.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from rlvrlab.envs.answer_cheats import unthought
from rlvrlab.envs.answers import KEPT, in_turn, squeezed
from rlvrlab.envs.base import Read
from rlvrlab.envs.data_files import Row
from rlvrlab.envs.data_set import DataSetEnvironment
from rlvrlab.envs.zebra.maker import SIZES, puzzles
from rlvrlab.envs.zebra.words import cheats_of, told
from rlvrlab.errors import quoted
from rlvrlab.judge.extract import SPACE, fenced
from rlvrlab.judge.thinking import after_thinking
from rlvrlab.plain_files import KeyTwice, distinct_keys
from rlvrlab.randomness import problem_name
from rlvrlab.registry import register
from rlvrlab.types import ErrorKind, Problem, Role, Verdict

Answer = dict[str, dict[str, str]]
"""Cells by house and attribute."""
LONGEST = 10_000
THINK = "\nThink first, inside <think> </think>, then give the JSON object alone."


class Refused(Exception):
    """The answer is no grid; says why."""


@register("env", "zebra")
@dataclass(frozen=True)
class Zebra(DataSetEnvironment):
    """Logic grids with one solution."""

    path: str = ""
    """A file of ZebraLogic-shaped rows; empty: puzzles are made here."""
    levels: tuple[int, ...] = (1, 2, 3)
    """1: 2 houses with 3 attributes, 2: 3x3, 3: 4x4, 4: 5x5, 5: 6x6; several alternate evenly."""
    style: Literal["plain", "think"] = "think"
    """think: the reasoning stands in <think> tags, the grid after them."""

    version = "1"

    def __post_init__(self) -> None:
        self.refuse_other("levels", SIZES, f"give distinct levels from 1 to {max(SIZES)}")
        self.refuse_other("style", ("plain", "think"))

    def made(self, role: Role, size: int, seed: int) -> list[Problem]:
        """Puzzles of maker.py, levels in turn."""
        problems = []
        for puzzle in in_turn([puzzles(level, role, seed) for level in self.levels], size):
            prompt, reference = told(puzzle)
            houses, attributes = SIZES[puzzle.level]
            meta = {"level": puzzle.level, "houses": houses, "attributes": attributes, "clues": len(puzzle.clues)}
            proved = {**meta, "proof": "unique by exhaustive search"}
            problems.append(self._problem(prompt, reference, proved, role))
        return problems

    def read_row(self, row: Row) -> Read:
        """A row of ZebraLogic: `puzzle`, and `solution` with its header and rows."""
        header, rows = row["solution"]["header"], row["solution"]["rows"]
        if header[0] != "House" or any(len(cells) != len(header) for cells in rows):
            raise ValueError("column 'solution' needs a header that begins with House and rows of its length")
        if any(cell and not cell.strip("_") for cells in rows for cell in cells):
            raise ValueError("column 'solution' is masked (___) in this copy; get one with its solutions")
        grid = {f"House {cells[0]}": dict(zip(header[1:], cells[1:], strict=True)) for cells in rows}
        meta = {"level": 0, "houses": len(grid), "attributes": len(header) - 1, "proof": "none, given"}
        return Read.by_text(row["puzzle"], lambda role: [self._problem(row["puzzle"], grid, meta, role)])

    def gold(self, problem: Problem) -> str | None:
        """The whole grid as JSON, after the thinking where the style has it."""
        return self._complete(json.dumps(problem.reference))

    def verify(self, problem: Problem, text: str) -> Verdict:
        """Read the grid strictly, then count cells; never raises on any text."""
        tail = after_thinking(text, must_think=self.style == "think")
        shown = None if tail is None else fenced(tail, ("json", "")) or tail.strip(SPACE)
        if not shown or not shown.startswith("{"):
            return _verdict(ErrorKind.FORMAT, "no JSON object after the thinking", shown)
        try:
            answer = _read(shown, problem.reference)
        except Refused as reason:
            return _verdict(ErrorKind.SYNTAX, str(reason), shown)
        cells = [(house, name) for house, row in problem.reference.items() for name in row]
        right = sum(_same(answer.get(house, {}).get(name), problem.reference[house][name]) for house, name in cells)
        if right == len(cells):
            return _verdict(ErrorKind.NONE, "", shown, right, len(cells))
        return _verdict(ErrorKind.WRONG, f"{right} of {len(cells)} cells are right", shown, right, len(cells))

    def cheats(self, problem: Problem) -> Mapping[str, str]:
        """Ways to ask for the reward without solving it."""
        grids = {name: self._complete(grid) for name, grid in cheats_of(problem.reference).items()}
        gold = json.dumps(problem.reference)
        return grids | {
            "two grids": self._complete(f"{gold} {gold}"),
            "words after it": self._complete(f"{gold} I am sure"),
            **unthought(gold, problem.prompt),
        }

    def _complete(self, answer: str) -> str:
        return f"<think>I go through the clues.</think>\n{answer}" if self.style == "think" else answer

    def _problem(self, prompt: str, reference: Answer, meta: Mapping[str, Any], role: Role) -> Problem:
        shown = prompt + (THINK if self.style == "think" else "")
        name = problem_name(f"zebra:{meta['level']}", prompt)
        return Problem(name, "zebra", "zebra", shown, reference, meta, role)


def _read(text: str, reference: Answer) -> Answer:
    """The grid a text holds: known houses, attributes and values, each value of an attribute at most once."""
    if len(text) > LONGEST:
        raise Refused(f"{len(text)} characters, at most {LONGEST}")
    try:
        answer = json.loads(text, object_pairs_hook=distinct_keys)
    except KeyTwice:
        raise Refused("a key twice") from None
    except (ValueError, RecursionError):
        raise Refused("not JSON") from None
    if set(answer) == {"solution"}:
        answer = answer["solution"]
    if not isinstance(answer, dict) or not all(isinstance(row, dict) for row in answer.values()):
        raise Refused("an object of houses with an object each was expected")
    used: set[tuple[str, str]] = set()
    for house, row in answer.items():
        if house not in reference:
            raise Refused(f"no house {quoted(house, 20)}")
        for name, value in row.items():
            if name not in reference[house]:
                raise Refused(f"no cell {quoted(house, 20)} {quoted(name, 20)}")
            if not any(_same(value, other[name]) for other in reference.values()):
                raise Refused(f"no such value in {house!r} {name!r}")
            if (name, squeezed(value)) in used:
                raise Refused(f"a value of {name!r} is used twice")
            used.add((name, squeezed(value)))
    return answer


def _same(value: object, right: str) -> bool:
    return isinstance(value, str) and squeezed(value) == squeezed(right)


def _verdict(error: ErrorKind, detail: str, answer: str | None, right: int = 0, cells: int = 1) -> Verdict:
    correct, share = error is ErrorKind.NONE, right / cells
    parts = {"format": float(error in (ErrorKind.NONE, ErrorKind.WRONG)), "cells": share, "correct": float(correct)}
    kept = answer and answer[:KEPT]
    return Verdict(
        correct, share, error, parts, passed=right, total=cells if cells > 1 else 0, answer=kept, detail=detail
    )
