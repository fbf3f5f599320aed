"""docs/coverage.md: every command in it can be given as it stands, and every test that it names is there."""

from __future__ import annotations

import re
import shlex
from itertools import pairwise
from pathlib import Path

import pytest

from rlvrlab.cli.verbs import rlvr
from rlvrlab.recipe import load_recipe
from rlvrlab.recipe.shipped import ENDING, files, named_file
from rlvrlab.study.load import load_study

ROOT = Path(__file__).resolve().parents[1]
ROWS = [
    [cell.strip() for cell in line.strip("|\n").split(" | ")]
    for line in (ROOT / "docs" / "coverage.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and not line.startswith("| requirement")
]
COMMANDS = sorted({command for row in ROWS if len(row) > 1 for command in re.findall(r"`(rlvr [^`]+)`", row[1])})
PLACEHOLDERS = {"NAME", "RECIPE", "…", "--resume"}
"""Words that stand for something of the reader's own."""


def recipe_of(words: list[str]) -> tuple[Path, list[str]] | None:
    """The recipe file that a command trains or exports, and the keys it sets; None where it is no such command."""
    at = {("train",): 1, ("export", "verl"): 2}
    for verb, place in at.items():
        if tuple(words[: len(verb)]) == verb and not PLACEHOLDERS & set(words):
            name, rest = words[place], words[place + 1 :]
            path = ROOT / name if name.endswith(ENDING) else named_file(Path(name))
            assert path is not None and path.is_file(), f"{name}: no recipe"
            pairs = pairwise(rest)
            dotted = [f"{key[2:]}={value}" for key, value in pairs if key.startswith("--") and "." in key]
            return path, [word for word in rest if "=" in word] + dotted
    return None


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_names_a_verb_and_recipes_and_keys_that_there_are(command: str) -> None:
    words = shlex.split(command)[1:]
    assert words[0] in rlvr.list_commands(None)  # type: ignore[arg-type]
    if found := recipe_of(words):
        load_recipe(found[0], tuple(found[1]))
    if words[:1] == ["study"]:
        load_study(ROOT / words[2] if words[2].endswith(ENDING) else files()[words[2]])


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:40])
def test_a_requirement_is_shown_and_kept_or_said_not_to_be(row: list[str]) -> None:
    said = row[0].startswith("Not shown: ")
    assert said != (len(row) == 3 and bool(row[1]) and bool(row[2])), "a command and a test, or `Not shown:` alone"
    for named in re.findall(r"`(tests/[\w/.]+|test_\w+\.py)(?:::(\w+))?", row[-1]):
        paths = [ROOT / named[0]] if "/" in named[0] else [*(ROOT / "tests").rglob(named[0])]
        assert paths and all(path.exists() for path in paths), named[0]
        assert not named[1] or f"def {named[1]}(" in paths[0].read_text(encoding="utf-8"), named[1]
