"""rlvr compare: is the second better than the first?"""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from rlvrlab.cli.names import RUN_AT, RunWord
from rlvrlab.cli.options import AS_JSON
from rlvrlab.cli.printing import print_json, printable, say
from rlvrlab.errors import UserError
from rlvrlab.shares import hundredths


@click.command("compare", short_help="Compare two evaluations on the same problems.")
@click.argument("before", type=RunWord(), metavar="BEFORE[,SEED…]")
@click.argument("after", type=RunWord(), metavar="AFTER[,SEED…]")
@click.option("--anyway", is_flag=True, help="Also where protocol, data or scorer differ.")
@click.option(
    "--paired/--unpaired", default=None, help="Compare runs of equal seed with each other; default: stages of one run."
)
@AS_JSON
def command(before: str, after: str, anyway: bool, paired: bool | None, as_json: bool) -> None:
    """Compare two evaluations on the same problems.

    BEFORE and AFTER are each a run (its folder, a part of its name, or `latest`), an evaluation folder, or several of
    them separated by commas: the seeds of one arm. A run stands for its last checkpoint, RUN@STEP (or @best, @base) for
    another one; of its evaluations there (`rlvr eval --run RUN`), those on the most test problems are taken that ask
    the same of all, and where there are none, the cards that training made (eval.test_size). The difference is AFTER
    minus BEFORE.

    \b
    rlvr compare toy_countdown_20261115 latest                two runs
    rlvr compare latest@base latest                           a run before and after training
    rlvr compare evaluations/base evaluations/trained         two evaluations
    rlvr compare base_s0,base_s1 trained_s0,trained_s1        two arms of two seeds
    """
    from rlvrlab.evals.compare_runs import compare_named

    comparison = compare_named(_side(before), _side(after), anyway, paired)
    if as_json:
        print_json(comparison.facts())
        return
    from rlvrlab.cli.tables import comparison_table

    console = Console(highlight=False)
    console.print(Text(printable(comparison.about), "bold"))
    question = comparison.measures[0].what
    if max(comparison.seeds) > 1:
        shown = [
            f"{n} ± {hundredths(s)}" if s is not None else str(n)
            for n, s in zip(comparison.seeds, comparison.spread, strict=True)
        ]
        console.print(f"seeds (± standard deviation of {question}, in points): {shown[0]} before, {shown[1]} after")
    by = f"{question} by"
    for title, rows in (("", comparison.measures), (by, comparison.by_skill), (by, comparison.by_level)):
        if rows:
            console.print(comparison_table(title, rows))
    say(console, comparison.not_shown)
    words = f"{comparison.caution} {comparison.adjustment} Shares in per cent. MDE: the smallest true difference that "
    told = "p: how often chance alone makes so large a difference."
    console.print(Text(f"{words}a comparison like this finds 4 times in 5. {told}", "dim"))
    for line in comparison.settings_words:
        say(console, line)
    for note in comparison.notes:
        say(console, note, "yellow")


def _side(text: str) -> list[Path]:
    """The folders that one argument names."""
    parts = [part for part in text.split(",") if part] if not Path(text).is_dir() else [text]
    if not parts:
        raise UserError("compare: name two evaluation folders or runs")
    return [Path(RUN_AT.convert(part, None, None)) for part in parts]
