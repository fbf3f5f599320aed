"""What README, CONTRIBUTING and docs/ point at exists: links, files of the repository, names in the package."""

from __future__ import annotations

import html
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import click
import pytest

from rlvrlab.cli.verbs import rlvr
from rlvrlab.recipe.parse import flatten

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src/rlvrlab"
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
FOLDERS = ("benchmarks", "docs", "recipes", "src", "studies", "tests")
LINK = re.compile(r"""\]\(([^)\s]+)\)|(?:src|href)="([^"]+)\"""")
PATH = re.compile(r"[\w.~*/<>…{}-]+")
BLOCK = re.compile(r"```\w*\n(.*?)```", re.DOTALL)
INLINE = re.compile(r"`(rlvr [^`\n]+)`")
DOTTED = re.compile(r"\brlvrlab(?:\.\w+){2,}")
PLACEHOLDER = re.compile(r"[…<>{}~]|(?<![A-Za-z])(?:NAME|RUN|DIR|FILE|PATH|FOLDER)(?![A-Za-z])|^my_|/my_")
OF_THE_READER = {"solution.py", "sol.py", "train.py", "parity.py", "phase0_eval.py", "data_governance.py", "reward.py"}
"""Files of the reader's own, of scripts known elsewhere, or written by an export."""
FOLDERS_OF_THE_READER = ("scripts/", "paper_a_credit_assignment/", "paper_b_conflict_aware/", "out/", "studies/mine")


@cache
def sources() -> frozenset[str]:
    return frozenset(path.relative_to(ROOT).as_posix() for top in FOLDERS for path in (ROOT / top).rglob("*.py"))


def broken_links(document: Path, text: str) -> list[str]:
    targets = ["".join(pair).partition("#")[0] for pair in LINK.findall(text)]
    local = [target for target in targets if target and "://" not in target and not target.startswith("mailto:")]
    return [target for target in local if not (document.parent / target).exists()]


def missing_files(text: str) -> list[str]:
    """Words that start with a folder of the repository, and modules by the end of their path, e.g. jail/zygote.py."""
    missing = []
    for word in PATH.findall(text):
        path = word.strip(".").removesuffix(":")
        if PLACEHOLDER.search(path) or "//" in path or path.startswith(FOLDERS_OF_THE_READER) or path in OF_THE_READER:
            continue
        if path.partition("/")[0] in FOLDERS and "/" in path:
            if not any(ROOT.glob(path.rstrip("/"))):
                missing.append(path)
        elif path.endswith(".py") and not any(f"/{source}".endswith(f"/{path}") for source in sources()):
            missing.append(path)
    return missing


def missing_names(text: str) -> list[str]:
    """`rlvrlab.room.file.name`: the file is there, and defines or imports that name."""
    missing = []
    for dotted in DOTTED.findall(text):
        place, words = PACKAGE, dotted.split(".")[1:]
        while words and (place / words[0]).is_dir():
            place /= words.pop(0)
        if words and (place / f"{words[0]}.py").is_file():
            place /= f"{words.pop(0)}.py"
        file = place / "__init__.py" if place.is_dir() else place
        defined = r"^\s*(?:(?:class|def) {0}\b|{0}\s*[:=]|(?:from|import) .*\b{0}\b)".format(*words[:1] or "-")
        if words and not re.search(defined, file.read_text("utf-8"), re.MULTILINE):
            missing.append(dotted)
    return missing


def wrong_commands(text: str) -> list[str]:
    """Commands in code, in line or in blocks, whose verb or --option there is not; keys of recipes have a dot or =."""
    blocks = [line.strip().removeprefix("$ ") for block in BLOCK.findall(text) for line in block.splitlines()]
    lines = [re.split(r"\s{2,}|\s#|[;|]|&&", line)[0] for line in [*INLINE.findall(BLOCK.sub("", text)), *blocks]]
    return [line for line in lines if line.startswith("rlvr ") and not _is_a_command(line.split()[1:])]


def _is_a_command(words: list[str]) -> bool:
    command: click.Command | None = rlvr
    while words and isinstance(command, click.Group) and not words[0].startswith(("…", "-")):
        command = command.get_command(click.Context(command), words.pop(0))
    if command is None:
        return False
    options = {option for parameter in command.get_params(click.Context(command)) for option in parameter.opts}
    own = words[: words.index("--")] if "--" in words else words  # what follows is another program's
    return all(word in options for word in own if word.startswith("--") and "." not in word and "=" not in word)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_command_has_a_verb_and_options_that_there_are(document: Path) -> None:
    assert wrong_commands(document.read_text("utf-8")) == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_everything_a_document_points_at_is_there(document: Path) -> None:
    text = document.read_text("utf-8")
    assert (broken_links(document, text), missing_files(text), missing_names(text)) == ([], [], [])


def test_what_is_not_there_is_noticed() -> None:
    readme = ROOT / "README.md"
    assert broken_links(readme, "[a](docs/record.md#x) [b](docs/nowhere.md) <img src=\"no.png\"> [c](https://a.b)") == [
        "docs/nowhere.md", "no.png",
    ]  # fmt: skip
    text = "`recipes/nothing.toml`, `recipes/toy_*.toml`, jail/zygote.py, jail/nothing.py, envs/NAME.py, docs/….md"
    assert missing_files(text) == ["recipes/nothing.toml", "jail/nothing.py"]
    commands = "`rlvr train a.toml --plan`, `rlvr trian a.toml`\n```\nrlvr eval --rnu a   # no\nrlvr data make sql\n```"
    assert wrong_commands(commands) == ["rlvr trian a.toml", "rlvr eval --rnu a"]
    assert missing_names("rlvrlab.judge.judge.Judge rlvrlab.judge.sql.Sql") == ["rlvrlab.judge.sql.Sql"]


def test_the_readmes_recipe_is_the_one_that_quick_runs_shortened() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    shown = dict(flatten(tomllib.loads(re.search(r"```toml\n(.*?)```", text, re.DOTALL)[1])))
    whole = dict(flatten(tomllib.loads((ROOT / "recipes/toy_countdown.toml").read_text("utf-8"))))
    assert shown.items() <= whole.items() and "`recipes/toy_countdown.toml`, shortened" in text


def test_quick_ends_with_how_to_go_on() -> None:
    quick = re.search(r"^quick:.*?(?=^\w)", (ROOT / "Makefile").read_text("utf-8"), re.DOTALL | re.MULTILINE)[0]
    assert "activate" in quick.splitlines()[-2] and "$(BIN)/rlvr" in quick.splitlines()[-2]


def test_the_readmes_terminal_says_what_a_training_says_today(tmp_path: Path) -> None:
    """Word by word, numbers and the run's name aside; `python docs/make_capture.py` takes both pictures anew."""
    short = ("toy_countdown", "grpo.steps=20", f"output_dir={tmp_path}")
    command = [sys.executable, "-m", "rlvrlab", "train", *short]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=100).stdout
    drawing = (ROOT / "docs/images/train.svg").read_text("utf-8")
    texts = [html.unescape(text) for text in re.findall(r"<text [^>]*>([^<]*)</text>", drawing)]
    assert texts[1].replace("\xa0", " ") == "$ rlvr train recipes/toy_countdown.toml"
    assert spoken("\n".join(texts[2:])) == spoken(said.replace(str(tmp_path), "experiments"))


def spoken(text: str) -> list[str]:
    return re.findall(r"[a-zA-Z@]+", re.sub(r"toy_countdown_[0-9]+_[0-9]+_[0-9a-f]+", "", text))
