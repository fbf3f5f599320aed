"""rlvr recipes: what comes along to be run, and a copy of it to change."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from rlvrlab.cli.names import RECIPE_NAME
from rlvrlab.cli.options import AS_JSON
from rlvrlab.cli.printing import print_json, printable
from rlvrlab.registry import find


@click.group("recipes", short_help="List the recipes and studies that come along, or copy one.",
             invoke_without_command=True)  # fmt: skip
@AS_JSON
@click.pass_context
def command(context: click.Context, as_json: bool) -> None:
    """List the recipes and studies that come along, or copy one.

    \b
    rlvr recipes                         name, engine, what it needs, its question
    rlvr train toy_countdown             a name works wherever a recipe's file does
    rlvr study run npg_muse/smoke        a study likewise
    rlvr recipes copy toy_countdown      a file of your own to change
    """
    if context.invoked_subcommand is not None:
        return
    from rlvrlab.recipe.shipped import shipped

    rows = [{**one._asdict(), "needs": find("engine", one.engine).needs} for one in shipped()]
    if as_json:
        print_json(rows)
        return
    rows.sort(key=lambda row: bool(row["needs"]))  # what runs anywhere comes first
    click.echo("Run one with: rlvr train NAME")
    _print([row for row in rows if row["kind"] == "recipe"])
    click.echo("\nStudies, chains of comparisons: rlvr study run NAME")
    _print([row for row in rows if row["kind"] == "study"])


def _print(rows: Sequence[dict[str, str]]) -> None:
    """Two to four lines for each: name and engine, its question, what to expect, where a study's record is."""
    console = Console(highlight=False)
    for row in rows:
        needs = f", needs {row['needs']}" if row["needs"] else ""
        console.print(Text.assemble((row["name"], "bold"), f"  ({row['engine']}{needs})"), soft_wrap=True)
        for words in (row["question"], row["about"], row["record"]):
            if words:
                console.print(Padding(Text(printable(words), "dim"), (0, 0, 0, 4)))


@command.command("copy")
@click.argument("name", type=RECIPE_NAME)
@click.option("-o", "--output", default=".", type=click.Path(path_type=Path), help="Folder for it; here by default.")
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
