"""The committed lists: bugs reviewed by people, and survivors that are no loss, with reasons."""

from __future__ import annotations

import random
import sys
import tomllib
from pathlib import Path

from mutant_plants import REVIEWED, Plant, chosen, in_turn
from mutant_rooms import LEFT_OUT, QUOTA, SOURCE

HERE = Path(__file__).resolve().parent


def reviewed() -> list[Plant]:
    """Bugs that were thought of, rather than drawn: `old` is found exactly once in the file.

    A row that the code has left behind is named and left out."""
    rows = tomllib.loads((HERE / "reviewed.toml").read_text("utf-8"))["bug"]
    plants = []
    for row in rows:
        text = (SOURCE / row["file"]).read_text("utf-8")
        if (found := text.count(row["old"])) != 1:
            print(f"reviewed.toml: {row['file']} has {found} times {row['old']!r}; mend the row", file=sys.stderr)
            continue
        plants.append(Plant(row["file"], "", REVIEWED, row["why"], text.index(row["old"]), row["old"], row["new"]))
    return plants


def every_plant() -> list[Plant]:
    return [*reviewed(), *chosen(SOURCE, QUOTA, LEFT_OUT)]


def sampled(plants: list[Plant], count: int, seed: int) -> list[Plant]:
    """So many of them, the rooms in turn; which ones of a room depends on the seed alone."""
    rooms: dict[str, list[Plant]] = {}
    for plant in plants:
        rooms.setdefault(plant.room, []).append(plant)
    for room, own in rooms.items():
        random.Random(f"{seed} {room}").shuffle(own)
    return in_turn(list(rooms.values()))[:count]


def recorded(path: Path) -> dict[str, str]:
    """What became of bugs in earlier runs, by name: lines of fate, test and name, with tabs between them."""
    if not path.exists():
        return {}
    lines = [line.split("\t") for line in path.read_text("utf-8").splitlines() if not line.startswith("#")]
    return {name: fate for fate, _, name in lines}


def accepted() -> dict[str, str]:
    """Reasons by the name of the bug."""
    rows = tomllib.loads((HERE / "accepted.toml").read_text("utf-8"))["survivor"]
    return {row["name"]: row["reason"] for row in rows}
