"""rlvr compare: is the second better than the first?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rlvrlab.cli.printing import print_json, printable
from rlvrlab.errors import UserError

if TYPE_CHECKING:
    from rlvrlab.record.evaluation import Stored


@click.command("compare", short_help="Compare two evaluations on the same problems.")
@click.argument("before")
@click.argument("after")
@click.option("--anyway", is_flag=True, help="Also where protocol, data or scorer differ.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(before: str, after: str, anyway: bool, as_json: bool) -> int:
    """Compare two evaluations on the same problems.

    Each side is an evaluation folder, a run with one, or several of them separated by commas (seeds).

    \b
    rlvr compare evaluations/base evaluations/trained
    rlvr compare base_s0,base_s1 trained_s0,trained_s1
    """
    from rlvrlab.evals.compare import compare_folders

    found = compare_folders(_side(before), _side(after), anyway)
    if as_json:
        print_json(found.facts())
        return 0
    from rich.console import Console
    from rich.text import Text

    from rlvrlab.cli.tables import comparison_table

    console = Console(highlight=False)
    left = f", {found.left_out} left out" if found.left_out else ""
    console.print(Text(printable(f"{found.data} · {found.problems} problems on both sides{left}"), "bold"))
    if max(found.seeds) > 1:
        shown = [
            f"{n} ± {100 * s:.1f}" if s is not None else str(n) for n, s in zip(found.seeds, found.spread, strict=True)
        ]
        console.print(f"seeds (± standard deviation of accepted, in points): {shown[0]} before, {shown[1]} after")
    for title, rows in (("", found.measures), ("accepted by", found.by_skill), ("accepted by", found.by_level)):
        if rows:
            console.print(comparison_table(title, rows))
    words = "Shares in per cent. MDE: the smallest true difference that a comparison like this finds 4 times in 5."
    console.print(Text(words, "dim"))
    for note in found.notes:
        console.print(Text(printable(note), "yellow"), soft_wrap=True)
    return 0


def _side(text: str) -> Sequence[Stored]:
    parts = [part for part in text.split(",") if part] if not Path(text).is_dir() else [text]
    if not parts:
        raise UserError("compare: name two evaluation folders or runs")
    return [_stored(Path(part)) for part in parts]


def _stored(folder: Path) -> Stored:
    from rlvrlab.record.evaluation import evaluations_of, read_evaluation

    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder; give an evaluation folder or a run")
    if (folder / "config.json").exists():
        inside = evaluations_of(folder)
        if not inside:
            raise UserError(f"{folder}: this run has not been evaluated; `rlvr eval --run {folder}` does")
        folder = inside[-1]
    return read_evaluation(folder)
