"""rlvr recipes: what comes along to be run, and a copy of it to change."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from rlvrlab.cli.names import RECIPE_NAME
from rlvrlab.cli.options import AS_JSON
from rlvrlab.cli.printing import print_json, printable
from rlvrlab.errors import UserError, suggestion
from rlvrlab.registry import find

if TYPE_CHECKING:
    from rlvrlab.recipe.shipped import Shipped

COLUMN = 30
"""The most characters that a list keeps for the names."""


class Words(click.Group):
    """A group that takes words which are none of its commands as what is looked for."""

    def get_command(self, context: click.Context, name: str) -> click.Command:
        """A command of its own, else the one that looks for words."""
        return super().get_command(context, name) or about

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """`rlvr recipes interference` is `rlvr recipes about interference`."""
        if args[0] not in self.commands:
            return about.name, about, args
        return super().resolve_command(context, args)


@click.group("recipes", short_help="List the recipes and studies that come along, or copy one.", cls=Words,
             invoke_without_command=True, subcommand_metavar="[WORD]...")  # fmt: skip
@click.option("--all", "every", is_flag=True, help="One line for each, of all.")
@AS_JSON
@click.pass_context
def command(context: click.Context, every: bool, as_json: bool) -> None:
    """List the recipes and studies that come along, or copy one.

    \b
    rlvr recipes                         the first ones, by what they need, and the folders of studies
    rlvr recipes interference            those with this word in name, engine, question or description
    rlvr recipes toy_countdown           one of them: what it asks, what it needs, what to expect
    rlvr recipes --all                   one line for each
    rlvr recipes copy toy_countdown      a file of your own to change
    rlvr train toy_countdown             a name works wherever a recipe's file does
    rlvr study run npg_muse/smoke        a study likewise
    """
    context.obj = as_json
    if context.invoked_subcommand is not None:
        return
    from rlvrlab.recipe.shipped import shipped

    rows = list(shipped())
    if as_json:
        print_json(list(map(_plain, rows)))
    elif every:
        _lines(rows)
    else:
        _overview(rows)


@command.command("about", hidden=True)
@click.argument("words", nargs=-1, required=True, type=RECIPE_NAME)
@AS_JSON
@click.pass_obj
def about(json_before: bool, words: tuple[str, ...], as_json: bool) -> None:
    """Tell about one of them, or list those that have all these words."""
    from rlvrlab.recipe.purposes import fitting
    from rlvrlab.recipe.shipped import files, shipped

    every = list(shipped())
    found = fitting(every, words)
    named = [one for one in every if words == (one.name,)]
    if not found:
        near = suggestion(" ".join(words), files())
        near = near if "did you mean" in near else "; `rlvr recipes` shows what comes along"
        raise UserError(f"no recipe or study has {' '.join(words)!r} in its name or description{near}")
    if as_json or json_before:
        print_json(list(map(_plain, found)))
        return
    alone = named or (found if len(found) == 1 else [])
    _details(alone)
    others = [one for one in found if one not in alone]
    if others:
        click.echo("\nWith this word:" if alone else "More about one: rlvr recipes NAME")
        _lines(others)


def _plain(one: Shipped) -> dict[str, object]:
    return {**one._asdict(), "needs": find("engine", one.engine).needs}


def _overview(every: Sequence[Shipped]) -> None:
    """A page: recipes by what they need, one line each, and one line for each folder of studies."""
    from rlvrlab.recipe.purposes import FOLDERS, folders, groups

    console, found = Console(highlight=False), folders(every)
    wide = max(map(len, found), default=0)
    for group in groups(every):
        needs = find("engine", group.rows[0].engine).needs if group.rows else ""
        console.print(Text.assemble((group.title, "bold"), f" (needs {needs})" if needs else ""), soft_wrap=True)
        if group.word:
            _row(console, wide, f"{group.word} …", f"{len(group.rows)} recipes: rlvr recipes {group.word}")
        else:
            for one in group.rows:
                _row(console, wide, one.name, one.question)
    console.print(Text.assemble(("Studies and their recipes, by folder", "bold"), " (rlvr recipes FOLDER)"))
    for folder, rows in found.items():
        _row(console, wide, folder, f"{FOLDERS.get(folder) or rows[0].question} ({len(rows)})")
    click.echo("\nrun: rlvr train NAME, rlvr study run NAME; more: rlvr recipes NAME, WORD or --all")


def _lines(rows: Sequence[Shipped]) -> None:
    """One line each, studies marked."""
    console, wide = Console(highlight=False), min(COLUMN, max(len(one.name) for one in rows))
    for one in rows:
        _row(console, wide, one.name, f"{'study: ' if one.kind == 'study' else ''}{one.question or one.about}")


def _row(console: Console, wide: int, name: str, words: str) -> None:
    """A name and what it is about: cut at a terminal's edge, whole where another program reads it."""
    line = Text.assemble("  ", (f"{name:<{wide}}", "bold"), " ", (printable(words), "dim"))
    if console.is_terminal:
        console.print(line, no_wrap=True, overflow="ellipsis")
    else:
        console.print(line, soft_wrap=True)


def _details(rows: Sequence[Shipped]) -> None:
    """A few lines for each: name and engine, its question, what to expect, a study's record, how it is run."""
    console = Console(highlight=False)
    for one in rows:
        needs = find("engine", one.engine).needs
        needs = f", needs {needs}" if needs else ""
        console.print(Text.assemble((one.name, "bold"), f"  ({one.engine}{needs})"), soft_wrap=True)
        run = f"rlvr study run {one.name}" if one.kind == "study" else f"rlvr train {one.name}"
        how = f"run: {run}; to change it: rlvr recipes copy {one.name}"
        for words in (one.question, one.about, one.record, how):
            if words:
                console.print(Padding(Text(printable(words), "dim"), (0, 0, 0, 4)))


@command.command("copy")
@click.argument("name", type=RECIPE_NAME)
@click.option("-o", "--output", default=".", type=click.Path(path_type=Path), help="Folder or FILE.toml; here.")
@AS_JSON
def copy(name: str, output: Path, as_json: bool) -> None:
    """Copy a recipe or study, with the files it builds on, into a folder; nothing is overwritten."""
    from rlvrlab.recipe import shipped

    made = shipped.copy(name, output)
    if as_json:
        print_json({"files": [str(path) for path in made]})
        return
    for path in made:
        click.echo(printable(path))
