"""Every command of README.md does what it says: taken from the page and run in its order, in one folder, in small."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
INLINE = re.compile(r"`((?:rlvr|make|pytest) [^`\n]+)`")
SMALL = ("sft.steps=3", "grpo.steps=2", "grpo.batch_size=4", "data.dev_size=8", "eval.test_size=8")
"""What makes any training of a toy recipe short."""


class Command(NamedTuple):
    words: list[str]
    remark: str


def commands(page: str = PAGE) -> list[Command]:
    """The lines of the blocks in their order, then what stands in the text and in no block."""
    blocks = [block for language, block in BLOCK.findall(page) if not language]
    lines = [line for block in blocks for line in block.splitlines() if line.strip()]
    found = [Command(shlex.split(line.partition(" #")[0]), line.partition(" #")[2]) for line in lines]
    named = [shlex.split(line) for line in dict.fromkeys(INLINE.findall(BLOCK.sub("", page)))]
    known = [command.words for command in found]
    return [*found, *(Command(words, "") for words in named if words not in known)]


def run(words: list[str], folder: Path) -> str:
    """What a command of the shell prints, `rlvr` from this interpreter; it must succeed."""
    program = [sys.executable, "-m", "rlvrlab"] if words[0] == "rlvr" else words[:1]
    env = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache")}
    done = subprocess.run([*program, *words[1:]], cwd=folder, env=env, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, (words, done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout


def steps_of_make(words: list[str]) -> list[list[str]]:
    """What `make TARGET` would run with `rlvr`."""
    done = subprocess.run(["make", "-n", *words[1:]], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, (words, done.stderr)
    lines = [line for line in done.stdout.splitlines() if line.startswith(".venv/bin/rlvr ")]
    return [["rlvr", *shlex.split(line)[1:]] for line in lines]


def small_study(words: list[str], folder: Path) -> list[str]:
    """The same chain of stages with one seed and runs of a step."""
    run(["rlvr", "recipes", "copy", words[-1], "-o", "study"], folder)
    [study] = (folder / "study").rglob(f"{Path(words[-1]).name}.toml")
    for key, value in (("size", "8"), ("seeds", "[0]")):
        study.write_text(re.sub(rf"^{key} = [^#\n]+", f"{key} = {value} ", study.read_text(), flags=re.MULTILINE))
    base = study.with_name("toy.toml")
    base.write_text(re.sub(r"steps = \d+", "steps = 2", base.read_text()))
    return [*words[:-1], str(study)]


def tried(command: Command, folder: Path) -> list[list[str]]:
    """How the command is run here: as it stands but for its size, or checked where it needs torch or weights."""
    words = command.words
    match words:
        case ["make", target, *_]:
            recipes = [str(ROOT / step[-1]) for step in steps_of_make(words) if step[1] == "train"]
            if target == "quick":
                return [["rlvr", "train", one, *SMALL] for one in recipes]
            return [["rlvr", "check", "recipe", one] for one in recipes]
        case [".", script]:
            return [["grep", "-q", f"VENV *?= {script.partition('/')[0]}$", str(ROOT / "Makefile")]]
        case ["pytest", *paths]:
            return [["test", "-e", str(ROOT / path)] for path in paths]
        case ["rlvr", "model", "get", name]:  # weights come over the network; nano is built here
            assert name in run(["rlvr", "model", "list"], folder)
            return [["rlvr", "model", "get", "nano"]]
        case ["rlvr", "train", *_] if "needs" in command.remark:
            return [["rlvr", "check", "recipe", words[-1]]]
        case ["rlvr", "train", *_] if not {"--resume", "--plan"} & {*words}:
            return [[*words, *SMALL]]
        case ["rlvr", "study", "run", _]:
            return [small_study(words, folder)]
        case ["rlvr", "compare" | "report"] | ["rlvr", "study", "plan"]:  # named in the text, without what they take
            return [[*words, "--help"]]
        case ["rlvr", *_]:
            return [words]
    raise AssertionError(f"README.md has a command of a new kind, say here how it is tried: {words}")


@pytest.mark.slow
def test_every_command_of_the_readme_works(tmp_path: Path) -> None:
    asked = [{"question": f"What is {i} + {i}?", "answer": str(2 * i)} for i in range(40)]
    (tmp_path / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in asked))
    for command in commands():
        for words in tried(command, tmp_path):
            run(words, tmp_path)
    runs = [json.loads(info.read_text()) for info in (tmp_path / "experiments").glob("*/run_info.json")]
    assert [one["status"] for one in runs] == ["finished"] * 2


def test_the_commands_are_found_and_what_they_need_is_said() -> None:
    found = commands()
    assert {"make", "rlvr", "pytest", "."} == {command.words[0] for command in found} and len(found) > 20
    page = "```\nrlvr a b  # needs c\n```\nIt is `make d`, `make d`, `rlvr a b` or `e`.\n```toml\nx = 1\n```\n"
    assert commands(page) == [
        Command(["rlvr", "a", "b"], " needs c"), Command(["make", "d"], ""),
    ]  # fmt: skip


def test_what_brings_pytest_is_said_where_pytest_is_named() -> None:
    named = [line for line in PAGE.splitlines() if "`pytest " in line]
    assert named and all("(after `make setup`)" in line for line in named), "`make quick` installs the core alone"


def test_the_page_is_short_and_leads_to_the_reader_s_own_task() -> None:
    assert len(PAGE.split()) <= 720, "about 700 words, code and links included"
    assert "(docs/your_own_task.md)" in PAGE
