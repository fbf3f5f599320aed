"""What a person sees of a study: the live table, the plan, the status, a decision."""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.live import Live as RichLive
from rich.table import Table
from rich.text import Text

from rlvrlab.cli.printing import print_json, printable
from rlvrlab.study.document import measured
from rlvrlab.study.measures import is_cost

if TYPE_CHECKING:
    from rlvrlab.study.board import Board, StageView, Survey
    from rlvrlab.study.folder import TrialState
    from rlvrlab.study.plan import Plan
    from rlvrlab.study.run import Ended

STYLE = {"decided": "green", "failed": "red", "waiting": "yellow", "running": "cyan", "blocked": "dim"}
REDRAW_S = 0.25


class Live:
    """A table that follows the study on a terminal, one line per event elsewhere, nothing but JSON with --json."""

    def __init__(self, name: str, as_json: bool) -> None:
        self._name, self._as_json = name, as_json
        self._console = Console(stderr=True)
        self._live = RichLive(console=self._console, auto_refresh=False, transient=True)
        self._on = self._console.is_terminal and not as_json
        self._drawn = 0.0

    def __enter__(self) -> Live:
        if self._on:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._on:
            self._live.stop()

    def observe(self, words: str, survey: Survey, states: dict[str, TrialState]) -> None:
        """Say what happened, if anything, and redraw the table now and then."""
        if words and not self._as_json:
            if self._on:
                self._live.console.print(Text(printable(words), "dim"), soft_wrap=True)
            else:
                print(printable(words), file=sys.stderr)
        if self._on and survey.stages and time.monotonic() - self._drawn > REDRAW_S:
            self._live.update(progress_table(self._name, survey, states), refresh=True)
            self._drawn = time.monotonic()

    def end(self, ended: Ended) -> None:
        """Say how the session ended, what was decided, and where to read more."""
        if self._as_json:
            written = json.loads((ended.folder / "study.json").read_text(encoding="utf-8"))
            print_json({"folder": str(ended.folder), "result": ended.status, **written})
            return
        out = Console()
        for view in ended.survey.stages:
            words = view.decision["words"] if view.decision else view.note or view.status
            out.print(
                Text.assemble((f"{printable(view.name)}  ", "bold"), (printable(words), STYLE.get(view.status, "")))
            )
        out.print(
            Text(printable(f"{ended.status}: {ended.folder / 'REPORT.md'}, DECISIONS.md, study.json")), soft_wrap=True
        )
        for view in ended.survey.stages:
            if view.status == "waiting":
                text = f'Choose with: rlvr study select {ended.folder} {view.name} ARM --reason "…"'
                out.print(Text(printable(text)), soft_wrap=True)


def progress_table(name: str, survey: Survey, states: dict[str, TrialState]) -> Table:
    """One line per stage: its status, its trials, its decision."""
    table = Table(title=Text(printable(name)), title_justify="left", box=None)
    for column in ("stage", "status", "trials", "running", "failed", "decision"):
        table.add_column(column, no_wrap=column != "decision")
    for view in survey.stages:
        own = [states[t.id] for arm in view.arms for t in arm.trials if t.id in states]
        total = len({t.id for arm in view.arms for t in arm.trials})
        done = sum(one.covers(view.suites) for one in own)
        words = view.decision["words"] if view.decision else view.note
        table.add_row(
            Text(printable(view.name)), Text(view.status, STYLE.get(view.status, "")),
            f"{done}/{total}" if total else "–", str(sum(one.status == "running" for one in own)),
            str(sum(one.given_up for one in own)), Text(printable(words)),
        )  # fmt: skip
    return table


def show_status(board: Board, survey: Survey) -> None:
    """Print the stages, their arms with their numbers, and the trials that failed."""
    console = Console()
    console.print(progress_table(board.chain.file.study.name, survey, board.states))
    for view in survey.stages:
        if any(arm.trials for arm in view.arms):
            console.print(_arms(board, view))
    for name, state in board.states.items():
        if state.given_up and name in survey.wanted:
            text = f"{name}: {state.status}: {state.why} (trials/{name}/log.txt)"
            console.print(Text(printable(text), "red"), soft_wrap=True)


def _arms(board: Board, view: StageView) -> Table:
    metrics = [m for m in board.metrics_of(view) if not is_cost(m)]
    table = Table("arm", *metrics, "trials", title=Text(f"\n{printable(view.name)}"), title_justify="left", box=None)
    for arm in view.arms:
        chosen = view.decision is not None and view.decision.get("chosen") == arm.name
        done = [t.id for t in arm.trials if (state := board.states.get(t.id)) and state.covers(view.suites)]
        numbers = [measured(board, done, metric) for metric in metrics]
        cells = ["–" if one is None else f"{one['value']:.3f} [{one['low']:.3f}, {one['high']:.3f}]" for one in numbers]
        table.add_row(Text(printable(arm.name), "bold green" if chosen else "dim" if arm.dropped else ""), *cells,
                      arm.dropped or str(len(arm.trials)))  # fmt: skip
    return table


def show_decision(made: dict[str, Any]) -> None:
    """Print one decision with its numbers."""
    console = Console()
    console.print(Text(printable(made["words"]), "bold"), soft_wrap=True)
    if made["candidates"]:
        metrics = list(made["candidates"][0]["metrics"])
        table = Table("arm", *metrics, f"cost ({made['cost']})", "trials", box=None)
        for one in made["candidates"]:
            values = [f"{one['metrics'][m]:.4g}" if one["metrics"][m] is not None else "–" for m in metrics]
            table.add_row(Text(printable(one["arm"])), *values, f"{one['cost']:,.4g}", " ".join(one["trials"]))
        console.print(table)
    if made["comparisons"]:
        table = Table("metric", "leader − other", "difference [95 %]", "p (Holm)", "", box=None)
        for c in made["comparisons"]:
            interval = f"{c['mean']:+.3f} [{c['low']:+.3f}, {c['high']:+.3f}]"
            pair = Text(printable(f"{c['arm']} − {c['versus']}"))
            table.add_row(c["metric"], pair, interval, f"{c['p_holm']:.2g}", "tied" if c["tied"] else "")
        console.print(table)


def show_plan(plan: Plan) -> None:
    """Print the stages with their arms, trials, reuse and cost."""
    console = Console()
    table = Table(title=Text(printable(plan.name)), title_justify="left", box=None)
    for column in ("stage", "starts from", "arms", "trials", "new", "done", "reused", "tokens ≤", "seconds ≈"):
        table.add_column(column, justify="left" if column in ("stage", "starts from") else "right")
    for one in plan.stages:
        seconds = "–" if one.seconds is None else f"{one.seconds:,.0f}"
        table.add_row(
            Text(printable(one.name)), Text(printable(one.starts_from or "the recipe")), str(len(one.arms)),
            str(one.trials), str(one.new), str(one.done), str(one.reused), f"{one.tokens:,}", seconds,
        )  # fmt: skip
    console.print(table)
    for line in plan.notes:
        console.print(Text(printable(line), "dim"), soft_wrap=True)
