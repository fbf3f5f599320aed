"""Names that every verb reads alike, and that a shell completes: runs, recipes, and keys of a recipe."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from rlvrlab.errors import UserError, first_few, suggestion

RUNS = Path("experiments")
"""Where runs are looked for that are named without a folder."""
LATEST = "latest"
SHOWN = 4
"""Runs that are named where a word fits several, or none."""
ALIKE = 0.6
"""Share of characters in common from which a name is taken for a misspelling."""


def run_folder(word: str, root: Path = RUNS) -> Path:
    """A run or evaluation by its folder, its name, a part of it, or `latest`; nothing at all is the latest, too."""
    found = find_run(word, root)
    if found is not None and not found.is_dir():
        raise UserError(f"{found}: a file, not a run; name a run's folder or a part of its name, or say `{LATEST}`")
    if found is None:
        name, root = _below(word, root)
        where = f"below {root}/{_nearest(name, root)}" if root.is_dir() else f"and no folder {root}/ here"
        remedy = _elsewhere(name, root) or "`rlvr train RECIPE` makes one"
        raise UserError(f"no run {name or LATEST!r} {where}; {remedy}")
    return found


def _below(word: str, root: Path) -> tuple[str, Path]:
    """A name and the folder to look in: `experiments/toy` is the beginning of a path, as a shell leaves it."""
    path = Path(word)
    return (path.name, path.parent) if path.name != word and path.parent.is_dir() else (word, root)


def _nearest(word: str, root: Path) -> str:
    """The runs that were probably meant, else the newest, in words; names end in a date, which nobody types whole."""
    from rlvrlab.report.runs import find_runs
    from rlvrlab.report.status import last_news

    def alike(name: str) -> float:
        ends = (len(word), len(name))
        return max(difflib.SequenceMatcher(None, word.lower(), name[:end].lower()).ratio() for end in ends)

    folders = sorted(find_runs(root), key=last_news, reverse=True)
    names = [str(folder.relative_to(root)) for folder in folders if folder != root]
    near = sorted((name for name in names if alike(name) >= ALIKE), key=alike, reverse=True)[:SHOWN]
    told = f"nearest: {', '.join(near)}" if near else f"newest: {', '.join(names[:SHOWN])}" if names else ""
    return f" ({told}; `rlvr runs` lists all)" if told else ""


def _elsewhere(word: str, root: Path) -> str:
    """Runs of that name in other folders here, where a recipe's output_dir has put them: named, but not taken."""
    if word in ("", LATEST):
        return ""
    configs = sorted(Path().glob("[!.]*/*/config.json"))
    found = [str(path.parent) for path in configs if word in path.parent.name and path.parent.parent != root]
    return f"with another output_dir there is {first_few(found, SHOWN)}: name that folder" if found else ""


def find_run(word: str, root: Path = RUNS) -> Path | None:
    """The same, or None where nothing fits; a word that fits several runs is refused with their names."""
    from rlvrlab.report.runs import find_runs, kind_at
    from rlvrlab.report.status import last_news

    if word and os.path.lexists(word):
        return Path(word)
    if word and (root / word).is_dir() and kind_at(root / word):
        return root / word  # as `rlvr runs` lists it, though a folder here may be called like its beginning
    word, root = _below(word, root)
    folders = find_runs(root)
    if word in ("", LATEST):
        runs = [folder for folder in folders if kind_at(folder) == "run"] or folders
        return max(runs, key=last_news, default=None)
    fitting = [folder for folder in folders if word in str(folder.relative_to(root))]
    exact = [folder for folder in fitting if folder.name == word]
    first = exact or [folder for folder in fitting if folder.name.startswith(word)] or fitting
    if len(first) > 1:
        names = first_few([folder.name for folder in first], SHOWN)
        raise UserError(f"{word!r} fits {len(first)} runs ({names}); give more of the name, or say `{LATEST}`")
    return first[0] if first else None


def study_folder(word: str, root: Path = RUNS) -> Path | None:
    """A study that has been run, by its name or a part of it; None where nothing fits or the word is a path."""
    if not word or os.path.lexists(word):
        return None
    folders = sorted({*root.glob("*/origin.json"), *root.glob("*/*/origin.json")})
    fitting = [path.parent for path in folders if word in str(path.parent.relative_to(root))]
    exact = [folder for folder in fitting if folder.name == word]
    first = exact or [folder for folder in fitting if folder.name.startswith(word)] or fitting
    if len(first) > 1:
        names = ", ".join([*(str(folder) for folder in first[:SHOWN]), *(["…"] if len(first) > SHOWN else [])])
        raise UserError(f"{word!r} fits {len(first)} studies ({names}); give more of the name")
    return first[0] if first else None


def refuse_unknown(what: str, *, recipes: bool = False) -> None:
    """Who misspells a file, or one of the `recipes` that are allowed, is not told of an environment he never meant."""
    from rlvrlab.envs.data_files import missing
    from rlvrlab.recipe.shipped import recipe_names
    from rlvrlab.registry import names

    path, known = Path(what), names("env")
    if what in known or ":" in what:
        return
    if (path.suffix or os.sep in what) and not path.exists():
        raise UserError(missing(path))
    if path.is_file() and path.suffix != ".py":
        raise UserError(f"{what}: a file, not an environment; `answers path={what}` is the one that asks its rows")
    if recipes and "did you mean" in (near := suggestion(what, [*known, *recipe_names()])):
        raise UserError(f"unknown recipe or env {what!r}{near}")


class RunWord(click.ParamType):  # type: ignore[type-arg]
    """A run as it was typed, for verbs with a --folder of their own, which call `run_folder`."""

    name = "run"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Names of runs, then files: a folder may be anywhere."""
        from rlvrlab.report.runs import find_runs

        names = [LATEST, *sorted(folder.name for folder in find_runs(RUNS))]
        return [*_beginning(names, incomplete), CompletionItem(incomplete, type="file")]


class RunName(RunWord):
    """A run in any spelling, as the path of its folder.

    `at` allows RUN@STEP; `other` leaves what is there, and the name of a file that is not, to the verb.
    """

    def __init__(self, *, at: bool = False, other: bool = False) -> None:
        self._at, self._other = at, other

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The folder, with what stood behind the @."""
        text = str(value)
        if os.path.lexists(text):
            return text if self._other else str(run_folder(text))
        word, mark, which = text.rpartition("@") if self._at else (text, "", "")
        if not mark:
            word, which = text, ""
        found = find_run(word) if self._other and word != LATEST else None
        if found is None and not (self._other and Path(word).suffix):
            found = run_folder(word)
        return f"{found or word}{mark}{which}"


class RecipeName(click.ParamType):  # type: ignore[type-arg]
    """The name or the file of a recipe; `names_only` has no files."""

    name = "recipe"

    def __init__(self, *, names_only: bool = False) -> None:
        self._names_only = names_only

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str | Path:
        """As it stands: `recipe.shipped.recipe_file` finds it."""
        return str(value) if self._names_only else Path(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """What comes along, then files."""
        from rlvrlab.recipe.shipped import files

        found = _beginning(files(), incomplete)
        return found if self._names_only else [*found, CompletionItem(incomplete, type="file")]


class RecipeKey(click.ParamType):  # type: ignore[type-arg]
    """KEY=VALUE for a recipe, `rollout.n=16`, as it stands: `recipe.parse.parse_overrides` reads it."""

    name = "key"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Keys of the recipe that was named, as far as it can be read; behind `=`, the values a key allows."""
        from rlvrlab.cli.recipe_keys import keys_for, values_for

        recipe = ctx.params.get("recipe") or ctx.params.get("path") or ctx.params.get("what")
        key, equals, value = incomplete.partition("=")
        if equals:
            return _beginning([f"{key}={one}" for one in values_for(key, recipe)], f"{key}={value}")
        return _beginning([f"{one}=" for one in keys_for(recipe)], incomplete)


def _beginning(words: Iterable[str], incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(word) for word in words if word.startswith(incomplete)]


RECIPE = RecipeName()
RECIPE_NAME = RecipeName(names_only=True)
RECIPE_KEY = RecipeKey()
RUN_OR_OTHER = RunName(other=True)
RUN_AT = RunName(at=True)
RUN_AT_OR_OTHER = RunName(at=True, other=True)
