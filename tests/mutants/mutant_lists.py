"""The committed lists: bugs reviewed by people, and survivors that are no loss, with reasons."""

from __future__ import annotations

import tomllib
from pathlib import Path

from mutant_plants import REVIEWED, Plant, chosen
from mutant_rooms import LEFT_OUT, QUOTA, SOURCE

HERE = Path(__file__).resolve().parent


def reviewed() -> list[Plant]:
    """Bugs that were thought of, rather than drawn: `old` is found exactly once in the file."""
    rows = tomllib.loads((HERE / "reviewed.toml").read_text("utf-8"))["bug"]
    plants = []
    for row in rows:
        text = (SOURCE / row["file"]).read_text("utf-8")
        found = text.count(row["old"])
        if found != 1:
            raise SystemExit(f"reviewed.toml: {row['file']} has {found} times {row['old']!r}; once is needed")
        plants.append(Plant(row["file"], "", REVIEWED, row["why"], text.index(row["old"]), row["old"], row["new"]))
    return plants


def every_plant() -> list[Plant]:
    return [*reviewed(), *chosen(SOURCE, QUOTA, LEFT_OUT)]


def accepted() -> dict[str, str]:
    """Reasons by the name of the bug."""
    rows = tomllib.loads((HERE / "accepted.toml").read_text("utf-8"))["survivor"]
    return {row["name"]: row["reason"] for row in rows}
