"""Recipes and studies that come with the package: found by name from any folder, listed, copied."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from rlvrlab.errors import UserError, suggestion
from rlvrlab.recipe.parse import Tree, flatten, place, read_toml
from rlvrlab.recipe.schema import Recipe

PACKAGE = Path(__file__).resolve().parents[1]
ENDING = ".toml"
PLANS = "plans"
"""The folder of studies that nobody has run: they need more than was at hand."""
COMMANDS = ("rlvr ", "make ")
SENTENCES = re.compile(r"(?<=[.?!]) +(?=[A-Z])")
UNENDED = re.compile(r".{1,99}[^.,;:?!]")
"""A line that ends early has ended its sentence, also without a full stop."""
LONG = 160
"""Characters of what `rlvr recipes` says about a recipe, if its first sentence is not longer."""
"""How a comment line begins that says how the recipe is run."""


class Shipped(NamedTuple):
    """A recipe or study that comes along."""

    name: str
    """`toy_countdown`, or `npg_muse/smoke` for a file of a study's folder."""
    path: Path
    kind: str
    """recipe or study."""
    engine: str
    question: str
    about: str
    """What it needs and what to expect, from the comment at its head."""
    record: str
    """Of a study: the file with its trials and decisions, or that it is a plan; empty for a recipe."""


def home() -> Path:
    """The folder with recipes/ and studies/: inside an installed package, or the clone that this is."""
    installed = PACKAGE / "shipped"
    return installed if installed.is_dir() else PACKAGE.parents[1]


def files() -> dict[str, Path]:
    """Name -> file of everything that comes along."""
    root = home()
    recipes = {path.stem: path for path in sorted((root / "recipes").glob(f"*{ENDING}"))}
    studies = {f"{p.parent.name}/{p.stem}": p for p in sorted((root / "studies").glob(f"*/*{ENDING}"))}
    return recipes | studies


def recipe_file(path: Path) -> Path:
    """The file itself, `mine.toml` for `mine`, or what comes along under this name: `toy_countdown`."""
    found = named_file(path)
    if found is None and not os.path.lexists(path):
        near = near_words(path, files())
        raise UserError(f"{path}: no such recipe{near}; `rlvr recipes` shows the ones that come with rlvrlab")
    return found or path


def near_words(path: Path, known: Iterable[str]) -> str:
    """` (did you mean 'mine'?)`, of what is known and of the user's own files beside; nothing where none is close."""
    own = [str(other.with_suffix("")) for other in sorted(path.parent.glob(f"*{ENDING}"))]
    near = suggestion(str(path.with_suffix("")), [name for name in [*own, *known] if name != str(path)])
    return f" ({near.removeprefix('; ')})" if "did you mean" in near else ""


def study_names() -> list[str]:
    """The names of all studies that come along."""
    return [name for name, path in files().items() if "stages" in tables_of(path)[0]]


def recipe_names() -> list[str]:
    """The names of all recipes that come along."""
    return [name for name, path in files().items() if "stages" not in tables_of(path)[0]]


def beside(folder: Path, name: str) -> Path:
    """What a study calls its recipe: a file in the folder, with or without its ending, before one that comes along."""
    own = folder / name
    if os.path.lexists(own):
        return own
    if os.path.lexists(whole := Path(f"{own}{ENDING}")):
        return whole
    return files().get(Path(name).as_posix().removesuffix(ENDING).removeprefix("recipes/"), own)


def named_file(path: Path) -> Path | None:
    """A recipe that is named without its ending, the user's own before one that comes along; None if there is none."""
    own = Path(f"{path}{ENDING}")
    if os.path.lexists(path):
        return None
    if own.is_file() or ((found := shipped_file(path)) is None and os.path.lexists(own)):
        return own  # a pipe or a link into nowhere, too: whoever reads it says what it is
    return found


def shipped_file(path: Path) -> Path | None:
    """What comes along under this name, unless a file or folder of the user has it."""
    if os.path.lexists(path):
        return None
    known = files()
    text = path.as_posix().removesuffix(ENDING)
    names = (text, text.removeprefix("recipes/"), text.removeprefix("studies/"))
    return next((known[name] for name in names if name in known), None)


def plan_file(path: Path) -> Path:
    """A baseline's plan: the file itself, or what comes along under this name: `phase0_coding`."""
    known = {one.stem: one for one in sorted((home() / "recipes" / "plans").glob(f"*{ENDING}"))}
    if os.path.lexists(path) or path.stem not in known:
        return path
    return known[path.stem]


def shipped() -> Iterator[Shipped]:
    """Everything that comes along, recipes first; a file's own words win over those of the file it builds on."""
    for name, path in files().items():
        tree, text = tables_of(path)
        kind = "study" if "stages" in tree else "recipe"
        record = f"record: {path.parent.name}/results/{tree['name']}.study.json" if kind == "study" else ""
        if record and path.parent.name == PLANS:
            record = "not run: a plan"
        engine = tree.get("engine", {}).get("type", Recipe().engine["type"])
        yield Shipped(name, path, kind, engine, tree.get("question", ""), _about(text), record)


def tables_of(path: Path) -> tuple[Tree, str]:
    """The tables of a file over those that it extends, or of a study over its recipe's; and the file's text."""
    tree, text = read_toml(path)
    base, recipe = tree.get("extends"), tree.get("recipe")
    if not base and isinstance(recipe, str):
        below = tables_of(beside(path.parent, recipe))[0]
    else:
        below = tables_of(path.parent / base)[0] if isinstance(base, str) else {}
    for key, value in flatten(tree):
        place(below, key, value)
    return below, text


def copy(name: str, folder: Path) -> list[Path]:
    """Copy a file that comes along, and what it names beside it, into a folder; nothing is overwritten.

    A folder whose name ends in .toml, where there is none, is the file itself.
    """
    known = files()
    if name not in known:
        raise UserError(f"{name}: no such recipe or study{near_words(Path(name), known)}; `rlvr recipes` lists them")
    source = known[name]
    wanted = [source, *_beside(source)]
    targets = [folder / path.name for path in wanted]
    if folder.suffix == ENDING and not folder.is_dir():
        targets = [folder, *(folder.parent / path.name for path in wanted[1:])]
        folder = folder.parent
    there = [str(target) for target in targets if os.path.lexists(target)]
    if there:
        raise UserError(f"{', '.join(there)}: is already there; move it away, or choose another folder with -o")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, target in zip(wanted, targets, strict=True):
            with target.open("xb") as copied:  # never through a link
                copied.write(path.read_bytes())
    except OSError as error:
        raise UserError(f"{folder}: cannot be written ({error.strerror}); choose another folder with -o") from None
    return targets


def _beside(path: Path) -> list[Path]:
    """Files that a recipe or study names and that lie beside it: what it extends, its recipe, its plug-ins."""
    named: list[Path] = []
    for _, value in flatten(read_toml(path)[0]):
        words = value.partition(":")[0] if isinstance(value, str) else ""
        other = path.parent / words
        if words.endswith((ENDING, ".py")) and other.parent == path.parent and other.is_file():
            named += [other, *(_beside(other) if other.suffix == ENDING else [])]
    return list(dict.fromkeys(named))


def _about(text: str) -> str:
    """Whole sentences of the comment at the head, without its commands: the first, and more while they are short."""
    head = takewhile(lambda line: line.startswith("#"), text.splitlines())
    lines = [line.removeprefix("#").strip() for line in head]
    told = [f"{line}." if UNENDED.fullmatch(line) else line for line in lines if not line.startswith(COMMANDS)]
    sentences = SENTENCES.split(" ".join(filter(None, told)))
    about = sentences[0]
    for sentence in sentences[1:]:
        if len(about) + len(sentence) >= LONG:
            break
        about = f"{about} {sentence}"
    return about
