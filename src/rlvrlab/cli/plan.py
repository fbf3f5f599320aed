"""What `rlvr train RECIPE --plan` shows."""

from __future__ import annotations

from collections.abc import Sequence

from rich.box import HEAVY_HEAD
from rich.console import Console
from rich.text import Text

from rlvrlab.cli.printing import CountLines, print_json, printable, say, table
from rlvrlab.notes import counting, noting
from rlvrlab.recipe import Resolved
from rlvrlab.recipe.explain import Setting, settings, unnamed_env, unusual
from rlvrlab.scale.verl.parts import Part
from rlvrlab.train.plan import Estimate, PhasePlan, estimate_or_why, phase_plans

PHASES = ("phase", "steps", "problems", "batch", "updates", "answers", "tokens ≤")
COST = ("phase", "seconds per step", "seconds per evaluation", "seconds in all")


def show_plan(resolved: Resolved, as_json: bool) -> None:
    """Resolved values with their origin, batch sizes, cost.

    What is known at once is shown at once: a step of a real model on a CPU takes minutes to measure.
    """
    rows, phases = settings(resolved), phase_plans(resolved)
    if as_json:
        times, why_not, advice = _measured(resolved)
        print_json(
            {
                "settings": [row._asdict() for row in rows],
                "phases": [phase._asdict() for phase in phases],
                "estimate": [one._asdict() for one in times],
                "no_estimate": why_not,
                "warnings": [*unusual(resolved), *advice],
            }
        )
        return
    console = Console()
    _show_settings(console, resolved, rows)
    _show_phases(console, phases)
    _warn(console, unusual(resolved))
    console.file.flush()
    with console.status("measuring one step"):
        times, why_not, advice = _measured(resolved)
    costs = [(t.phase, f"{t.step_s:.3f}", f"{t.eval_s:.3f}", f"{t.total_s:.0f}") for t in times]
    _numbers(console, COST, costs, "Cost, from a measured step or part of one")
    if why_not:
        say(console, f"Cost is left out, because it is measured with model and problems: {why_not}")
    _warn(console, advice)


def show_verl_plan(resolved: Resolved, overrides: Sequence[str], advice: Sequence[str], as_json: bool) -> None:
    """Resolved values and batch sizes as of any recipe, then what verl is started with, one setting on a line.

    Groups, guards and credit are ours, not settings of verl's: its own alone would not tell that they are there.
    """
    rows, phases, warnings = settings(resolved), phase_plans(resolved), [*unusual(resolved), *advice]
    if as_json:
        ours = {"settings": [row._asdict() for row in rows], "phases": [phase._asdict() for phase in phases]}
        print_json({**ours, "warnings": warnings, "verl": list(overrides)})
        return
    console = Console()
    _show_settings(console, resolved, rows)
    _show_phases(console, phases)
    _warn(console, warnings)
    console.print()
    say(console, "verl is started with:")
    for line in overrides:
        console.out(line, highlight=False)


def show_parts(parts: Sequence[Part], warnings: Sequence[str], as_json: bool) -> None:
    """A recipe that verl trains phase by phase: who trains which, and the commands."""
    if as_json:
        print_json({"parts": [part._asdict() for part in parts], "warnings": list(warnings)})
        return
    console = Console()
    _warn(console, warnings)
    for number, part in enumerate(parts, 1):
        about = [f"not on verl: {part.why}"] if part.why else []
        about += [f"left out here, {words}" for words in part.left_out]
        say(console, f"{number} {part.engine}: {', '.join(part.phases)}", "bold")
        for line in (*about, *part.commands):
            say(console, f"  {line}")
    say(console, "Each part starts from the last model of the one before it; cards are made by the parts on hf.")


def _measured(resolved: Resolved) -> tuple[list[Estimate], str, list[str]]:
    """The cost or why it is not known, and what was noted on the way."""
    advice: list[str] = []
    with noting(lambda _, words: advice.append(words)), counting(CountLines().show):
        times, why_not = estimate_or_why(resolved)
    return times, why_not, advice


def _show_settings(console: Console, resolved: Resolved, rows: Sequence[Setting]) -> None:
    keys = [[Text(printable(cell), "dim" if row.origin == "default" else "") for cell in row[:3]] for row in rows]
    console.print(table(("key", "value", "from"), keys, title="Resolved recipe", title_justify="left"))
    if words := unnamed_env(resolved):
        console.print(f"\n{words}", soft_wrap=True)
    for preset in dict.fromkeys(row.origin for row in rows if row.source):
        vetted = [f"{row.key}: {row.source}" for row in rows if row.origin == preset and row.source]
        console.print(f"\n{preset}, where the recipe says nothing: {'; '.join(vetted)}", soft_wrap=True)


def _show_phases(console: Console, phases: Sequence[PhasePlan]) -> None:
    planned = []
    for p in phases:
        more = f"–{p.most_answers:,}" if p.most_answers > p.answers else ""
        tokens = p.max_tokens // max(1, p.answers) * p.most_answers
        per_step = (p.steps, p.problems_per_step, p.answers_per_step, p.updates_per_step)
        planned.append((p.name, *(f"{cell:,}" for cell in per_step), f"{p.answers:,}{more}", f"{tokens:,}"))
    title = "Phases (problems, effective batch and updates per step; answers and tokens in all)"
    _numbers(console, PHASES, planned, title)
    also = ", ".join(dict.fromkeys(name for p in phases for name in p.also_draw))
    if also:
        console.print(f"without the answers that these draw themselves: {also}")
    stored = ", ".join(dict.fromkeys(name for p in phases for name in p.by_references))
    if stored:
        console.print(f"no answers are drawn within a step of this engine; by reference answers: {stored}")
    passes = max((p.memory_passes for p in phases), default=0.0)
    if passes:
        console.print(f"besides, the guard makes {passes:.3g} passes over its memory in every update")


def _numbers(console: Console, head: Sequence[str], lines: Sequence[Sequence[str]], title: str) -> None:
    if lines:
        title = f"\n{title}"
        console.print(table(head, lines, right=head[1:], box=HEAVY_HEAD, title=title, title_justify="left"))


def _warn(console: Console, warnings: Sequence[str]) -> None:
    for words in warnings:
        say(console, f"warning: {words}", "yellow")
