"""rlvr runs: the runs and evaluations of a folder."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rlvrlab.cli.folding import FoldingText
from rlvrlab.cli.names import run_folder
from rlvrlab.cli.options import AS_JSON
from rlvrlab.cli.printing import print_json, printable, say
from rlvrlab.errors import UserError
from rlvrlab.record.files import duration
from rlvrlab.shares import cell

if TYPE_CHECKING:
    from rlvrlab.report.runs import Entry

COLOURS = {"running": "green", "stale": "yellow", "killed": "red", "failed": "red", "damaged": "red"}
SORTS = ("age", "name", "status", "metric", "step", "tokens")
PIPE_WIDTH = 160
"""Width in columns where there is no terminal to ask."""


@click.command("runs", short_help="List the runs of a folder.")
@click.argument("folder", default="experiments", type=click.Path(path_type=Path))
@click.option("--search", default="", metavar="WORDS", help="All of them in name, status, phase, tags or question.")
@click.option("--tag", "tags", multiple=True, help="Only runs with this tag; may be repeated.")
@click.option("--sort", type=click.Choice(SORTS), default="age", show_default=True, help="What comes first.")
@click.option(
    "--add-tag", nargs=2, multiple=True, metavar="RUN TAG", help="Give a run a tag (a line of its file `tags`)."
)
@click.option("--diff", is_flag=True, help="Also the settings in which runs of one recipe name differ.")
@click.option("--remove-tag", nargs=2, multiple=True, metavar="RUN TAG", help="Take it away.")
@AS_JSON
def command(
    folder: Path, search: str, tags: tuple[str, ...], sort: str, add_tag: tuple[tuple[str, str], ...],
    remove_tag: tuple[tuple[str, str], ...], diff: bool, as_json: bool,
) -> None:  # fmt: skip
    """List the runs of a folder.

    \b
    rlvr runs                                  those in experiments/, newest first
    rlvr runs --search "grpo running" --tag baseline --sort metric
    rlvr runs --diff                           and in which settings they differ
    rlvr runs --add-tag toy_countdown_2026… baseline
    """
    from rlvrlab.report.runs import choose, list_runs, sort_runs
    from rlvrlab.report.tags import change_tag

    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder; name the one your runs are in (a recipe's output_dir)")
    for changes, present in ((add_tag, True), (remove_tag, False)):
        for run, tag in changes:
            change_tag(run_folder(run, folder), tag, present)
    everything = list_runs(folder)
    entries = sort_runs(choose(everything, search, tags), sort)
    apart = settings_apart(entries) if diff else None
    if as_json:
        print_json([entry.facts() | ({} if apart is None else {"settings": apart[entry.folder]}) for entry in entries])
        return
    console, total = wide_console(), len(everything)
    if not total:
        console.print(Text(printable(f"{folder}: no runs yet; `rlvr train RECIPE` makes one")))
        return
    if entries:
        console.print(table_of(entries, apart))
    left_out = f"; {total - len(entries)} others do not fit the search" if total > len(entries) else ""
    words = f"{len(entries)} of {total} below {folder}/{left_out}. accepted@1 in %, with its 95 % interval:"
    projected = "; ≈: projected from the answers of some steps" if any(not one.tokens_exact for one in entries) else ""
    of_tokens = f" tokens: drawn so far{projected}." if any(one.tokens is not None for one in entries) else ""
    say(console, f"{words} on dev problems for runs, on those asked for evaluations.{of_tokens}", "dim")
    for entry in entries:
        if entry.note:
            say(console, f"{entry.name}: {entry.note}", "yellow")


def wide_console() -> Console:
    """A console as wide as the terminal or as $COLUMNS says, or PIPE_WIDTH columns where there is neither."""
    console = Console(highlight=False)
    return console if console.is_terminal or os.environ.get("COLUMNS") else Console(highlight=False, width=PIPE_WIDTH)


def settings_apart(entries: Sequence[Entry]) -> dict[Path, dict[str, Any]]:
    """Folder -> the settings in which it differs from other runs of its recipe's name; nothing for other folders."""
    from rlvrlab.errors import LabError
    from rlvrlab.record.run import read_config
    from rlvrlab.record.settings import differing, settings

    recipes: dict[Path, dict[str, Any]] = {}
    for entry in entries:
        with suppress(LabError):  # the list says of a damaged folder what is wrong with it
            recipes[entry.folder] = read_config(entry.folder)["recipe"] if entry.kind == "run" else {}
    apart: dict[Path, dict[str, Any]] = {entry.folder: {} for entry in entries}
    for name in {recipe.get("name") for recipe in recipes.values()}:
        tables = {folder: settings(recipe) for folder, recipe in recipes.items() if recipe.get("name") == name}
        seeds = {recipes[folder].get("seed") for folder in tables}
        keys = [*(["seed"] if len(seeds) > 1 else []), *differing(list(tables.values()))]
        for folder, table in tables.items():
            apart[folder] = {key: (recipes[folder] | table)[key] for key in keys if key in recipes[folder] | table}
    return apart


COLUMNS = ("status", "phase", "step", "accepted@1", "tokens", "age")
WITH_SETTINGS = ("status", "accepted@1")
"""Columns beside the name, and those that leave room for settings."""
FLUSH_RIGHT = ("step", "tokens", "age")


def table_of(entries: Sequence[Entry], apart: Mapping[Path, Mapping[str, Any]] | None = None) -> Table:
    """The table of `rlvr runs`; tags have a column only where there are any, settings where they are asked for."""
    from rlvrlab.record.settings import shown_value

    shown = COLUMNS if apart is None else WITH_SETTINGS
    table = Table(box=None, pad_edge=False)
    table.add_column("name", overflow="fold", min_width=16)
    for column in shown:
        table.add_column(column, no_wrap=True, justify="right" if column in FLUSH_RIGHT else "left")
    tagged = any(entry.tags for entry in entries)
    if tagged:
        table.add_column("tags", overflow="fold")
    if apart is not None:
        table.add_column("settings that differ", overflow="fold", min_width=24)
    for entry in entries:
        cells = _cells(entry)
        row: list[Text] = [FoldingText(printable(entry.name)), *(cells[column] for column in shown)]
        row += [Text(" ".join(entry.tags), "cyan")] if tagged else []
        if apart is not None:
            words = (f"{key}={shown_value(value)}" for key, value in apart[entry.folder].items())
            row.append(FoldingText(printable(" ".join(words))))
        table.add_row(*row)
    return table


def _cells(entry: Entry) -> dict[str, Text]:
    """Every cell is a Text, so that rich reads no name as markup."""
    return {
        "status": Text(printable(entry.status), COLOURS.get(entry.status, "")),
        "phase": Text(printable(entry.phase or (entry.kind if entry.kind != "run" else ""))),
        "step": Text(steps_of(entry)),
        "accepted@1": Text(share_of(entry)),
        "tokens": Text(tokens_of(entry)),
        "age": Text("" if entry.age_s is None else duration(entry.age_s)),
    }


def steps_of(entry: Entry) -> str:
    """Steps done of all, as `40/60`."""
    if entry.step is None:
        return ""
    return f"{entry.step}/{entry.steps}" if entry.steps else str(entry.step)


def share_of(entry: Entry) -> str:
    """Accuracy with its interval in per cent, as `63.3 [50.7, 74.4]`."""
    metric = entry.metric
    return cell(metric["accuracy"], metric.get("low"), metric.get("high")) if metric else ""


def tokens_of(entry: Entry) -> str:
    """Generated tokens as `1.2M`, with ≈ where the number is projected."""
    if entry.tokens is None:
        return ""
    value, unit = float(entry.tokens), ""
    for unit in ("", "k", "M", "G", "T"):
        if value < 1000 or unit == "T":
            break
        value /= 1000
    digits = 0 if not unit or value >= 100 else 1
    return f"{'' if entry.tokens_exact else '≈'}{value:.{digits}f}{unit}"
