"""What README, CONTRIBUTING and docs/ point at exists: links, files of the repository, names in the package."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src/rlvrlab"
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
FOLDERS = ("benchmarks", "docs", "recipes", "src", "studies", "tests")
LINK = re.compile(r"""\]\(([^)\s]+)\)|(?:src|href)="([^"]+)\"""")
PATH = re.compile(r"[\w.~*/<>…{}-]+")
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
    assert missing_names("rlvrlab.judge.judge.Judge rlvrlab.judge.sql.Sql") == ["rlvrlab.judge.sql.Sql"]
