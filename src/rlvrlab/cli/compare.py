"""rlvr compare: is the second better than the first?"""

from __future__ import annotations

from pathlib import Path

import click

from rlvrlab.cli.names import RUN_OR_OTHER, RunWord
from rlvrlab.cli.options import AS_JSON
from rlvrlab.cli.printing import print_json, printable
from rlvrlab.errors import UserError


@click.command("compare", short_help="Compare two evaluations on the same problems.")
@click.argument("before", type=RunWord())
@click.argument("after", type=RunWord())
@click.option("--anyway", is_flag=True, help="Also where protocol, data or scorer differ.")
@click.option(
    "--paired/--unpaired", default=None, help="Compare runs of equal seed with each other; default: stages of one run."
)
@AS_JSON
def command(before: str, after: str, anyway: bool, paired: bool | None, as_json: bool) -> None:
    """Compare two evaluations on the same problems.

    Each side is an evaluation folder, a run with one, or several of them separated by commas (seeds). Of runs, the
    newest evaluations are taken that ask the same of all of them.

    \b
    rlvr compare evaluations/base evaluations/trained
    rlvr compare base_s0,base_s1 trained_s0,trained_s1
    """
    from rlvrlab.evals.compare import compare_folders
    from rlvrlab.evals.matching import matching

    comparison = compare_folders(*matching(_side(before), _side(after), anyway), anyway, paired)
    if as_json:
        print_json(comparison.facts())
        return
    from rich.console import Console
    from rich.text import Text

    from rlvrlab.cli.tables import comparison_table

    console = Console(highlight=False)
    left = f", {comparison.left_out} left out" if comparison.left_out else ""
    console.print(Text(printable(f"{comparison.data} · {comparison.problems} problems on both sides{left}"), "bold"))
    if max(comparison.seeds) > 1:
        shown = [
            f"{n} ± {100 * s:.1f}" if s is not None else str(n)
            for n, s in zip(comparison.seeds, comparison.spread, strict=True)
        ]
        console.print(f"seeds (± standard deviation of accepted, in points): {shown[0]} before, {shown[1]} after")
    for title, rows in (
        ("", comparison.measures),
        ("accepted by", comparison.by_skill),
        ("accepted by", comparison.by_level),
    ):
        if rows:
            console.print(comparison_table(title, rows))
    words = f"{comparison.caution} {comparison.adjustment} Shares in per cent. MDE: the smallest true difference that "
    console.print(Text(words + "a comparison like this finds 4 times in 5.", "dim"))
    for note in comparison.notes:
        console.print(Text(printable(note), "yellow"), soft_wrap=True)


def _side(text: str) -> list[Path]:
    """The folders that one argument names."""
    parts = [part for part in text.split(",") if part] if not Path(text).is_dir() else [text]
    if not parts:
        raise UserError("compare: name two evaluation folders or runs")
    return [Path(RUN_OR_OTHER.convert(part, None, None)) for part in parts]
