"""What `rlvr train RECIPE --plan` shows."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from rlvrlab.cli.printing import print_json, printable
from rlvrlab.recipe import Resolved
from rlvrlab.recipe.explain import settings
from rlvrlab.train.plan import PhasePlan, estimate, phase_plans


def show_plan(resolved: Resolved, as_json: bool) -> None:
    """Resolved values with their origin, batch sizes, cost."""
    rows, phases, times = settings(resolved), phase_plans(resolved), estimate(resolved)
    if as_json:
        print_json(
            {
                "settings": [row._asdict() for row in rows],
                "phases": [phase._asdict() for phase in phases],
                "estimate": [one._asdict() for one in times],
            }
        )
        return
    console = Console()
    table = Table("key", "value", "from", box=None, title="Resolved recipe", title_justify="left")
    for row in rows:
        style = "dim" if row.origin == "default" else ""
        table.add_row(*(Text(printable(cell)) for cell in row), style=style)
    console.print(table)
    console.print(_phases(phases))
    title = "\nCost, from one measured step"
    cost = Table(title=title, title_justify="left")
    for column in ("phase", "s/step", "s/evaluation", "seconds in all"):
        cost.add_column(column, justify="left" if column == "phase" else "right")
    for t in times:
        cost.add_row(t.phase, f"{t.step_s:.3f}", f"{t.eval_s:.3f}", f"{t.total_s:.0f}")
    console.print(cost)


def _phases(phases: list[PhasePlan]) -> Table:
    table = Table(
        title="\nPhases (problems, effective batch and updates per step; answers and tokens in all)",
        title_justify="left",
    )
    for column in ("phase", "steps", "problems", "batch", "updates", "answers", "tokens ≤"):
        table.add_column(column, justify="left" if column == "phase" else "right")
    for p in phases:
        more = f"–{p.most_answers:,}" if p.most_answers > p.answers else ""
        cells = (p.steps, p.problems_per_step, p.answers_per_step, p.updates_per_step)
        tokens = p.max_tokens // max(1, p.answers) * p.most_answers
        table.add_row(p.name, *(f"{cell:,}" for cell in cells), f"{p.answers:,}{more}", f"{tokens:,}")
    for name in dict.fromkeys(name for p in phases for name in p.also_draw):
        table.caption = f"{table.caption or 'without the answers that these draw themselves:'} {name}"
    return table
