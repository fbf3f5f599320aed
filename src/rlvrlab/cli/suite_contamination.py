"""What `rlvr suite NAME --contamination` shows: how much of each data set a model can write down by heart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.text import Text

from rlvrlab.cli.printing import print_json, printable, table
from rlvrlab.shares import cell

if TYPE_CHECKING:
    from rlvrlab.evals.suites.base import Ready, Skipped
    from rlvrlab.evals.suites.examine import Model


def show_contamination(
    models: Sequence[Model], prepared: Sequence[Ready | Skipped], skipped: Sequence[Skipped], chat: bool, as_json: bool
) -> None:
    """Every model on every member that is there; made problems are a control: nobody can know them."""
    from rlvrlab.evals.contamination import contamination
    from rlvrlab.evals.suites.base import Ready, Skipped

    ready = [one for one in prepared if isinstance(one, Ready)]
    left_out = [*(one for one in prepared if isinstance(one, Skipped)), *skipped]
    rows: list[dict[str, Any]] = []
    for model in models:
        answerer = model.open()
        for one in ready:
            rebuilt = contamination(answerer, one.problems, one.member.name, chat=chat)
            rows.append({"model": model.name, **rebuilt.facts()})
    if as_json:
        print_json({"contamination": rows, "skipped": [{"name": gone.name, "why": gone.why} for gone in left_out]})
        return
    lines = [
        [row["data"], row["model"], row["problems"],
         *(cell(*(row[f"{name}{end}"] for end in ("", "_low", "_high"))) for name in ("exact", "prefix", "rouge_l"))]
        for row in rows
    ]  # fmt: skip
    console = Console()
    console.print(table(("data set", "model", "problems", "rebuilt exactly", "right so far", "ROUGE-L"), lines))
    words = "From the first 60 % of each problem, greedy, in % with 95 % intervals. Much rebuilt: the policy has seen "
    console.print(Text("ROUGE-L: F1 of the words that stand in both in the same order.", "dim"))
    console.print(Text(f"{words}it, and accuracy there measures memory. Nothing rebuilt proves nothing."))
    for gone in left_out:
        click.secho(printable(f"skipped {gone.name}: {gone.why}"), fg="yellow")
