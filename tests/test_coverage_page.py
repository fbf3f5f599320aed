"""docs/coverage.md: every row has commands that can be given as they stand, and tests that exist, or is not shown."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import click
import pytest

from rlvrlab.cli.verbs import rlvr
from rlvrlab.errors import LabError
from rlvrlab.evals.suites.catalogue import SUITES
from rlvrlab.evals.suites.plan_file import read_plan
from rlvrlab.recipe import load_recipe
from rlvrlab.recipe.shipped import ENDING, files, named_file
from rlvrlab.registry import find
from rlvrlab.study.load import load_study

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "coverage.md").read_text(encoding="utf-8")
READERS = ("cat", "ls", "head")
MADE = ("experiments/", "out/", "data/", "my_task")
"""What commands of the page leave where they are given; everything else is a file of the repository."""
NAMED = re.compile(r"`(tests/[\w/.]+\.py)((?:::\w+)*)`")
NOT_SHOWN = "Not shown: "


def rows_of(page: str) -> list[list[str]]:
    lines = [line for line in page.splitlines() if line.startswith("| ") and not line.startswith("| requirement")]
    return [[cell.strip() for cell in line.removeprefix("|").removesuffix("|").split("|")] for line in lines]


def commands_of(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


ROWS = rows_of(PAGE)
FIRST = PAGE.partition("```\n")[2].partition("```")[0].splitlines()
"""The runs that the rows speak of by name."""
COMMANDS = list(dict.fromkeys([*FIRST, *(one for row in ROWS if len(row) > 1 for one in commands_of(row[1]))]))


def parsed(words: list[str]) -> tuple[list[str], list[str]]:
    """The verbs of a command of rlvr, and its arguments; options that there are not are refused as by click itself."""
    command: click.Command = rlvr
    verbs: list[str] = []
    while isinstance(command, click.Group) and words:
        one = command.get_command(click.Context(command), words[0])
        if one is None:
            assert command.invoke_without_command and verbs, f"no verb {words[0]}"
            break
        command = one
        verbs.append(words[0])
        words = words[1:]
    keys = [at for at, word in enumerate(words) if word.startswith("--") and "." in word]
    plain = [word for at, word in enumerate(words) if at not in keys and at - 1 not in keys]
    parser = command.make_parser(click.Context(command))
    parser.ignore_unknown_options = False
    given, rest, _ = parser.parse_args(plain)
    for one in command.params:
        value = given.get(one.name)
        if isinstance(one, click.Argument) and isinstance(value, str | list | tuple):
            rest = [*rest, *([value] if isinstance(value, str) else value)]
        elif isinstance(one.type, click.Choice) and isinstance(value, str):
            one.type.convert(value, one, None)
    return verbs, [*rest, *(f"{words[at][2:]}={words[at + 1]}" for at in keys)]


def recipe_file(name: str) -> Path:
    path = ROOT / name if name.endswith(ENDING) else named_file(Path(name))
    assert path is not None and path.is_file(), f"{name}: no recipe"
    return path


def resolve(verbs: list[str], rest: list[str], words: list[str]) -> None:
    """The recipes, studies, plans, environments and rewards that a command names, with the keys that it sets."""
    match verbs:
        case ["train"] | ["export", "verl"] | ["check", "recipe"] if "--resume" not in words:
            load_recipe(recipe_file(rest[0]), tuple(rest[1:]))
        case ["study", "plan" | "run" | "export"] if "--help" not in words:
            load_study(ROOT / rest[0] if rest[0].endswith(ENDING) else files()[rest[0]])
        case ["phase0"] if "--resume" not in words:
            read_plan(ROOT / rest[0])
        case ["check", "env"] if "." not in rest[0]:
            find("env", rest[0])
        case ["check", "reward"]:
            find("reward", rest[0])
        case ["suite"] if rest:
            members = {member.name for member in SUITES[rest[0]].members}
            assert {after for word, after in pairwise(words) if word == "--only"} <= members


def files_named(words: list[str]) -> Iterator[Path]:
    """Files of the repository that a command reads; a flag, and what the page's own commands make, is none."""
    for word in words:
        if not word.startswith(("-", "$", *MADE)) and ("/" in word or word.endswith((".py", ".txt"))):
            yield ROOT / word


def wrong(command: str) -> str:
    """Why a command cannot be given as it stands; empty where it can."""
    if "…" in command:
        return "… is no part of a command"
    program, *words = shlex.split(command)
    try:
        if program == "rlvr":
            resolve(*parsed(words), words)
        elif program == "python" and words[0] != "-c":
            assert (ROOT / words[0]).is_file(), f"{words[0]}: no such file"
            records = [word for word in words[1:] if word.endswith(".json")]
            assert all(path.exists() for path in files_named(records)), "no record"
        elif program in READERS or program == "pytest":
            missing = [path.as_posix() for path in files_named(words) if not path.exists()]
            assert not missing, missing
        else:
            assert program == "python", f"{program}: not rlvr, python, pytest or {', '.join(READERS)}"
    except (click.ClickException, LabError, AssertionError, KeyError) as error:
        return str(error) or type(error).__name__
    return ""


def faults(row: list[str]) -> list[str]:
    """What a row lacks: a command and a test, or `Not shown:` with a reason and nothing else."""
    if row[0].startswith(NOT_SHOWN):
        return [] if not any(row[1:]) else ["not shown, and yet a command or test"]
    if len(row) != 3:
        return [f"{len(row)} cells"]
    found = [] if commands_of(row[1]) else ["no command"]
    if left := re.sub(r"`[^`]+`|[, ]", "", row[1]):
        found.append(f"words between commands: {left}")
    named = NAMED.findall(row[2])
    if not named and "docs/claims.md" not in row[2]:
        found.append("no test")
    for path, inner in named:
        text = (ROOT / path).read_text(encoding="utf-8") if (ROOT / path).is_file() else ""
        last = [re.search(rf"^ *(?:def|class) {name}\b", text, re.MULTILINE) for name in inner.split("::")[1:]]
        if not text or None in last:
            found.append(f"{path}{inner}: not there")
    for claim in re.findall(r"\(((?:`\w+`(?:, )?)+)\)", row[2]):
        claims = (ROOT / "docs" / "claims.md").read_text(encoding="utf-8")
        found += [f"no claim {name}" for name in re.findall(r"`(\w+)`", claim) if f"[claim.{name}]" not in claims]
    return found


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_can_be_given_as_it_stands(command: str) -> None:
    assert wrong(command) == ""


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:40])
def test_a_requirement_is_shown_and_kept_or_said_not_to_be(row: list[str]) -> None:
    assert faults(row) == []


def test_a_run_is_made_before_it_is_spoken_of() -> None:
    """And no other run's name holds that name, which would make it fit two."""
    made: list[str] = []
    spoken: set[str] = set()
    for command in COMMANDS:
        spoken |= set(re.findall(r"experiments/(\w+?)_\*", command)) | set(re.findall(r"--run (\w+)", command))
        assert spoken <= set(made), command
        made += re.findall(r"\bname=(\w+)", command)
    assert not [(one, other) for one in spoken for other in made if one in other and one != other]
    assert len(made) == len(set(made))


def test_what_cannot_be_given_is_noticed() -> None:
    bad = {
        "rlvr trian toy_countdown": "no verb",
        "rlvr train nothing_of_the_kind": "no recipe",
        "rlvr train toy_countdown grpo.stepz=3": "stepz",
        "rlvr train toy_countdown --plann": "--plann",
        "rlvr eval --run first --protocol @2": "@2",
        "rlvr eval … --tries 2": "…",
        "rlvr suite math --only nothing": "",
        "rlvr check reward nothing": "nothing",
        "python studies/nothing.py report": "nothing.py",
        "python studies/exam_tables.py studies/nothing.json": "record",
        "cat docs/nothing.md": "nothing.md",
        "make quick": "make",
    }
    for command, why in bad.items():
        assert wrong(command) and why in wrong(command), command


def test_rows_that_promise_too_much_are_noticed() -> None:
    bad = {
        "| shown by nothing | | `tests/test_coverage_page.py` |": ["no command"],
        "| kept by nothing | `rlvr doctor` | |": ["no test"],
        "| kept by what is gone | `rlvr doctor` | `tests/gone.py` |": ["tests/gone.py: not there"],
        "| half a command | see `rlvr doctor` | `tests/conftest.py` |": ["words between commands: see"],
        "| Not shown: but shown | `rlvr doctor` | `tests/conftest.py` |": ["not shown, and yet a command or test"],
        "| a claim that is none | `rlvr doctor` | `docs/claims.md` (`nothing`) |": ["no claim nothing"],
    }
    for line, found in bad.items():
        assert faults(rows_of(line)[0]) == found, line
