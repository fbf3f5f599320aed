"""The map of the package in CONTRIBUTING.md is the package: every room, in the order of LAYERS, and nothing else."""

from __future__ import annotations

import re
from itertools import groupby
from pathlib import Path

import pytest
from sources import SOURCE
from test_layers import LAYERS, LEVEL

CONTRIBUTING = Path(__file__).resolve().parents[1] / "CONTRIBUTING.md"
UNLISTED = {"__init__"}
"""Holds the version and no code."""


def block(text: str) -> list[str]:
    """The lines between the fences below `## Rooms`."""
    return text.partition("## Rooms")[2].split("```")[1].strip("\n").splitlines()


def rooms_on(lines: list[str]) -> list[str]:
    return [line.split()[0] for line in lines if line and not line.startswith(" ")]


def parts_on(lines: list[str]) -> list[str]:
    """Indented paths, e.g. judge/jail or train/step.py; several on a line are separated by commas."""
    inner = [line for line in lines if line.startswith(" ")]
    return [part for line in inner for part in re.findall(r"[a-z_]+(?:/[a-z_]+)+(?:\.py)?", line)]


def wrong_with(lines: list[str], tree: set[str]) -> list[str]:
    rooms = rooms_on(lines)
    order = [level for level, _ in groupby(LEVEL.get(room, -1) for room in rooms)]
    return [
        *(f"{room} is not on the map" for room in sorted(tree - set(rooms) - UNLISTED)),
        *(f"{room} does not exist" for room in rooms if room not in tree),
        *(f"{room} is listed twice" for room in sorted(set(rooms)) if rooms.count(room) > 1),
        *(f"{part} does not exist" for part in parts_on(lines) if not (SOURCE / part).exists()),
        *(["the order is not that of LAYERS"] if order != list(reversed(range(len(LAYERS)))) else []),
    ]


def tree() -> set[str]:
    packages = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    return packages | {path.stem for path in SOURCE.glob("*.py")}


def test_the_map_is_the_package() -> None:
    assert wrong_with(block(CONTRIBUTING.read_text("utf-8")), tree()) == []


def test_rooms_of_one_paragraph_are_on_one_level() -> None:
    paragraphs = "\n".join(block(CONTRIBUTING.read_text("utf-8"))).split("\n\n")
    assert [{LEVEL[room] for room in rooms_on(one.splitlines())} for one in paragraphs] == [
        {level} for level in reversed(range(len(LAYERS)))
    ]


def test_every_room_of_the_layers_exists() -> None:
    assert set(LEVEL) == tree()


def declarations() -> list[tuple[str, list[str]]]:
    """(base class, what the table of things to add says that it declares)."""
    table = CONTRIBUTING.read_text("utf-8").partition("| to add |")[2].partition("\n\n")[0]
    cells = [line.split(" | ")[2] for line in table.splitlines()[2:]]
    return [(words[0], words[1:]) for words in (re.findall(r"`(\w+)`", cell) for cell in cells)]


@pytest.mark.parametrize(("base", "declared"), declarations(), ids=[base for base, _ in declarations()])
def test_base_classes_declare_what_the_table_says(base: str, declared: list[str]) -> None:
    texts = [text for path in SOURCE.rglob("*.py") if f"\nclass {base}" in (text := path.read_text("utf-8"))]
    lacking = [
        [name for name in declared if not re.search(rf"^(?:    (?:def )?|class ){name}\b", text, re.MULTILINE)]
        for text in texts
    ]
    assert [] in lacking, lacking


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("\nscale ", "\nscales ", "scale is not on the map"),
        ("\nscale ", "\nscales ", "scales does not exist"),
        ("\n  judge/jail ", "\n  judge/cell ", "judge/cell does not exist"),
        ("\nrecipe ", "\nrecipe \nrecipe ", "recipe is listed twice"),
        ("\nmodels ", "\ntrain \nmodels ", "the order is not that of LAYERS"),
    ],
)
def test_a_wrong_map_is_noticed(old: str, new: str, complaint: str) -> None:
    text = CONTRIBUTING.read_text("utf-8")
    assert old in text
    assert complaint in wrong_with(block(text.replace(old, new)), tree())
