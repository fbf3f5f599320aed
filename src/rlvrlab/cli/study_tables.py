"""What a person sees of a study: the live table, the plan, the status, a decision."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.live import Live as RichLive
from rich.table import Table
from rich.text import Text

from rlvrlab import plain_files
from rlvrlab.cli.printing import print_json, printable, say, table
from rlvrlab.plain_files import parsed
from rlvrlab.record.experiment import REPORT_PAGE
from rlvrlab.report.gather.stages import trials_words
from rlvrlab.report.status import is_held
from rlvrlab.study.board import Board
from rlvrlab.study.document import measured
from rlvrlab.study.folder import TrialState
from rlvrlab.study.looks import sure
from rlvrlab.study.measures import difference_words, is_cost, of_shares
from rlvrlab.study.views import Survey

if TYPE_CHECKING:
    from rlvrlab.study.plan import Plan
    from rlvrlab.study.run import Ended

STYLE = {"decided": "green", "failed": "red", "waiting": "yellow", "interrupted": "yellow", "running": "cyan",
         "blocked": "dim"}  # fmt: skip
AGAIN = {"interrupted": "; go on with the same command"}
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
                say(self._live.console, words, "dim")
            else:
                print(printable(words), file=sys.stderr)
        if self._on and survey.stages and time.monotonic() - self._drawn > REDRAW_S:
            self._live.update(progress_table(self._name, survey, states, going=True), refresh=True)
            self._drawn = time.monotonic()

    def end(self, ended: Ended) -> None:
        """Say how the session ended, what was decided, and where to read more."""
        made = parsed(plain_files.read_text(ended.folder / "study.json"))
        if self._as_json:
            print_json({"folder": str(ended.folder), "result": ended.status, **made})
            return
        out = Console()
        for view, stage in zip(ended.survey.stages, made["stages"], strict=True):
            state = view.state(going=False)
            words = view.decision["words"] if view.decision else view.note or _on_test(stage) or state
            out.print(Text.assemble((f"{printable(view.name)}  ", "bold"), (printable(words), STYLE.get(state, ""))))
        page = f", {REPORT_PAGE}" if (ended.folder / REPORT_PAGE).is_file() else ""
        again = AGAIN.get(ended.status, "")
        say(out, f"{ended.status}: {ended.folder / 'REPORT.md'}, DECISIONS.md, study.json{page}{again}")
        for view in ended.survey.stages:
            if view.status == "waiting":
                say(out, f'Choose with: rlvr study select {ended.folder} {view.name} ARM --reason "…"')


def _on_test(stage: dict[str, Any]) -> str:
    """What the winner scored on test problems, of the stage that asks them."""
    won = [arm for arm in stage["arms"] if arm["chosen"] and stage["kind"] == "final"]
    told = [
        f"{m} {one['value']:.3f} [{one['low']:.3f}, {one['high']:.3f}]" for a in won for m, one in a["metrics"].items()
    ]
    return f"{won[0]['name']} on test problems: {', '.join(told)}" if told else ""


def progress_table(name: str, survey: Survey, states: dict[str, TrialState], going: bool) -> Table:
    """One line per stage: its status, its trials, its decision; `going` tells whether a process works on the study."""
    rows: list[list[object]] = []
    for view in survey.stages:
        own = [states[t.id] for arm in view.arms for t in arm.trials if t.id in states]
        total = len({t.id for arm in view.arms for t in arm.trials})
        done = f"{sum(one.covers(view.suites) for one in own)}/{total}" if total else "–"
        running, failed = sum(one.status == "running" for one in own), sum(one.given_up for one in own)
        words = view.decision["words"] if view.decision else view.note
        state = view.state(going)
        rows.append([view.name, Text(state, STYLE.get(state, "")), done, running, failed, words])
    head = ("stage", "status", "trials", "running", "failed", "decision")
    return table(head, rows, no_wrap=head[:-1], title=Text(printable(name)), title_justify="left")


def show_status(board: Board, survey: Survey) -> None:
    """Print the stages, their arms with their numbers, and the trials that failed."""
    console = Console()
    going = is_held(board.folder)
    console.print(progress_table(board.chain.file.study.name, survey, board.states, going))
    if any(view.state(going) == "interrupted" for view in survey.stages):
        say(console, f"Interrupted; go on with: rlvr study run {board.folder}")
    for view in survey.stages:
        if not any(arm.trials for arm in view.arms):
            continue
        metrics = [m for m in board.metrics_of(view) if not is_cost(m)]
        rows: list[list[object]] = []
        for arm in view.arms:
            chosen = view.decision is not None and view.decision.get("chosen") == arm.name
            done = [t.id for t in arm.trials if (state := board.states.get(t.id)) and state.covers(view.suites)]
            cells = [
                "–" if one is None else f"{one['value']:.3f} [{one['low']:.3f}, {one['high']:.3f}]"
                for one in (measured(board, done, metric) for metric in metrics)
            ]
            name = Text(printable(arm.name), "bold green" if chosen else "dim" if arm.dropped else "")
            rows.append([name, *cells, arm.dropped or trials_words(len(done), len(arm.trials))])
        title = Text(f"\n{printable(view.name)}")
        console.print(table(("arm", *metrics, "trials"), rows, title=title, title_justify="left"))
    for trial, state in board.states.items():
        if state.given_up and trial in survey.wanted:
            say(console, f"{trial}: {state.status}: {state.why} (trials/{trial}/log.txt)", "red")


def show_decision(made: dict[str, Any]) -> None:
    """Print one decision with its numbers."""
    console = Console()
    say(console, made["words"], "bold")
    if made["candidates"]:
        metrics = list(made["candidates"][0]["metrics"])
        rows = [
            [one["arm"], *("–" if one["metrics"][m] is None else f"{one['metrics'][m]:.4g}" for m in metrics),
             f"{one['cost']:,.4g}", " ".join(one["trials"])]
            for one in made["candidates"]
        ]  # fmt: skip
        console.print(table(("arm", *metrics, f"cost ({made['cost']})", "trials"), rows))
    if made["comparisons"]:
        rows = [
            [c["metric"], f"{c['arm']} − {c['versus']}", difference_words(c["mean"], c["low"], c["high"], of_shares(c)),
             c["outcome"], "–" if c["p"] is None else f"{c['p']:.2g}"]
            for c in made["comparisons"]
        ]  # fmt: skip
        console.print(table(("metric", "leader − other", f"difference [{sure(made)}]", "outcome", "p"), rows))
        say(console, "p: how often chance alone makes so large a difference.", "dim")


def show_plan(plan: Plan) -> None:
    """Print the stages with their arms, trials, reuse and cost."""
    head = ("stage", "starts from", "arms", "trials", "new", "done", "reused", "tokens ≤", "seconds ≈")
    rows = [
        (one.name, one.starts_from or "the recipe", len(one.arms), one.trials, one.new, one.done, one.reused,
         f"{one.tokens:,}", "–" if one.seconds is None else f"{one.seconds:,.0f}")
        for one in plan.stages
    ]  # fmt: skip
    console = Console()
    console.print(
        table(
            head,
            rows,
            right=head[2:],
            no_wrap=head[:1],
            padding=(0, 1, 0, 0),
            title=Text(printable(plan.name)),
            title_justify="left",
        )
    )
    for one in plan.stages:
        if one.power:
            say(console, f"{one.name}: {one.power}")
    for line in plan.notes:
        say(console, line, "dim")
