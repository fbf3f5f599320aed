"""Zebra puzzles in words, and wrong grids that look right."""

from __future__ import annotations

import json

from rlvrlab.envs.zebra.maker import Puzzle
from rlvrlab.envs.zebra.solver import PLACED

SENTENCES = {
    "at": "{one} lives in house {house}.",
    "not_at": "{one} does not live in house {house}.",
    "same": "{one} is {other}.",
    "apart": "{one} is not {other}.",
    "left": "{one} lives directly to the left of {other}.",
    "before": "{one} lives somewhere to the left of {other}.",
    "beside": "{one} and {other} live next to each other.",
    "one_between": "There is exactly one house between {one} and {other}.",
}
ENDING = (
    "Answer with the whole grid as one JSON object of this form, with every house and every attribute:\n"
    '{{"House 1": {{{cells}}}, "House 2": {{…}}, …}}'
)


def told(puzzle: Puzzle) -> tuple[str, dict[str, dict[str, str]]]:
    """The prompt of a puzzle, and its solution by house and attribute."""
    houses = len(puzzle.values[0])
    lines = [
        f"There are {houses} houses, numbered 1 to {houses} from left to right. "
        "In each lives one person, and the persons differ in every attribute:",
        *(f"- {name}: {', '.join(sorted(own))}" for name, own in zip(puzzle.attributes, puzzle.values, strict=True)),
        "Clues:",
    ]
    for i, clue in enumerate(puzzle.clues, 1):
        named: dict[str, object] = {"one": _described(puzzle, clue.left)}
        named |= {"house": clue.right + 1} if clue.kind in PLACED else {"other": _described(puzzle, clue.right)}
        sentence = SENTENCES[clue.kind].format(**named)
        lines.append(f"{i}. {sentence[0].upper()}{sentence[1:]}")
    lines.append(ENDING.format(cells=", ".join(f'"{name}": "…"' for name in puzzle.attributes)))
    solution = {
        f"House {house + 1}": {
            name: values[puzzle.grid[a * houses : (a + 1) * houses].index(house)]
            for a, (name, values) in enumerate(zip(puzzle.attributes, puzzle.values, strict=True))
        }
        for house in range(houses)
    }
    return "\n".join(lines), solution


def _described(puzzle: Puzzle, value: int) -> str:
    houses = len(puzzle.values[0])
    name, word = puzzle.attributes[value // houses], puzzle.values[value // houses][value % houses]
    return word if name == "Name" else f"the person whose {name.lower()} is {word}"


def cheats_of(solution: dict[str, dict[str, str]]) -> dict[str, str]:
    """Grids that must never be judged correct."""
    first, second, *_ = solution
    name = next(iter(solution[first]))
    swapped = {
        **solution,
        first: {**solution[first], name: solution[second][name]},
        second: {**solution[second], name: solution[first][name]},
    }
    same = dict.fromkeys(solution, solution[first])
    right = json.dumps(solution)
    listed = [list(row.values()) for row in solution.values()]
    return {
        "two values swapped": json.dumps(swapped),
        "houses reversed": json.dumps(dict(zip(solution, list(solution.values())[::-1], strict=True))),
        "one row everywhere": json.dumps(same),
        "a house missing": json.dumps({house: row for house, row in solution.items() if house != first}),
        "a cell missing": json.dumps({**solution, first: {k: v for k, v in solution[first].items() if k != name}}),
        "a house more": json.dumps({**solution, "House 99": solution[first]}),
        "a house more without cells": json.dumps({**solution, "House 99": {}}),
        "an attribute more": json.dumps({**solution, first: {**solution[first], "Luck": "yes"}}),
        "a value nobody has": json.dumps({**solution, first: {**solution[first], name: "Zorro"}}),
        "choices in a cell": json.dumps({**solution, first: {**solution[first], name: [*listed[0]]}}),
        "null cell": json.dumps({**solution, first: {**solution[first], name: None}}),
        "a key twice": right[:-1] + f', "{first}": {json.dumps(solution[first])}' + "}",
        "lists": json.dumps(listed),
        "empty object": "{}",
        "houses without cells": json.dumps({house: {} for house in solution}),
        "Python": right.replace('"', "'"),
        "cut off": right[:-1],
        "not a number": '{"House 1": NaN}',
        "deep": '{"House 1":' * 900 + "1" + "}" * 900,
        "deeper": "{" + '"a":[' * 1500,
        "endless": right[:-1] + " " * 20_000 + "}",
    }
