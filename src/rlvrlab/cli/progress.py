"""What a person sees while a run goes on: a bar on a terminal or in a notebook, plain lines elsewhere, or JSON."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from typing import Any

from rich.box import HEAVY_HEAD, SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars
from rich.text import Text

from rlvrlab.cli.printing import CountLines, print_json, printable, say, table
from rlvrlab.evals.cards import better_before, code_words, earlier_words, gain_lines, gains, read_cards
from rlvrlab.notes import ANSWERS
from rlvrlab.recipe import Resolved
from rlvrlab.record.experiment import going_on
from rlvrlab.record.headline import ACCEPTED, accuracy_words, began, headline_words, headlines, highest
from rlvrlab.record.run import read_config, read_events, read_info, read_metrics
from rlvrlab.record.summary import accuracy_of, standing_warnings
from rlvrlab.train.card import card_table
from rlvrlab.train.loop import UNJUDGED, WARNED
from rlvrlab.train.phases.base import Phase
from rlvrlab.train.session import Ended
from rlvrlab.train.state import State

WIDE = 100
"""Columns of a terminal in which everything fits on one line."""
BARS = {160: 40, WIDE: 20, 0: 12}
"""Columns of a terminal -> those of the bar."""
NAME, CLOCK, GAPS = 9, 8, 5
"""Columns of a line beside bar, count and facts: the phase's name, the time left, and what is empty between them."""
SHOWN = {"train/acc": "train", "actor/entropy": "entropy", "groups/zero_variance": "dead groups", "sft/nll": "nll"}
"""Metric -> its name on the line of a step; a dead group's answers all earned the same, so it teaches nothing."""


class Progress:
    """Shows the steps of a session as they are taken, and its result at the end."""

    def __init__(self, resolved: Resolved, as_json: bool) -> None:
        self._interval = resolved.recipe.record.log_interval
        self._as_json = as_json
        self._console = Console(stderr=True)
        self._live = self._console.is_terminal and not as_json
        self._notebook = NotebookLines() if self._console.is_jupyter and not as_json else None
        self._bar = next(size for least, size in BARS.items() if self._console.width >= least)
        columns = (TextColumn("{task.description:>9}"), BarColumn(self._bar), MofNCompleteColumn(),
                   TimeRemainingColumn(), TextColumn("{task.fields[facts]}"))  # fmt: skip
        self._bars = Bars(*columns, console=self._console, disable=not self._live)
        names = [NAME, *map(len, resolved.recipe.phases)]
        steps = [len(str(phase.get("steps", ""))) for phase in resolved.recipe.phase_tables.values()]
        self._taken = max(names) + self._bar + 2 * max(steps, default=0) + 1 + CLOCK + GAPS
        """Columns of a line that its facts cannot have."""
        self._tasks: dict[str, TaskID] = {}
        self._count_lines = CountLines()
        self._last: tuple[str, ...] = ("",)
        """The latest result on dev problems, in full and then shorter."""
        self._measured_at = 0

    def __enter__(self) -> Progress:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def tell(self, kind: str, words: str) -> None:
        """Say above the bars what is found out before a run begins, and what goes wrong while it goes on."""
        if not self._as_json:
            say(self._console, f"{kind}: {words}", "yellow")

    def count(self, what: str, done: int, total: int) -> None:
        """Show how many problems are made or answers drawn: a bar that goes away at the end, elsewhere lines."""
        if self._live:
            if what not in self._tasks:
                kind = "answers" if what == ANSWERS else "problems"
                self._tasks[what] = self._bars.add_task(kind, total=total, facts="" if what == ANSWERS else what)
            self._bars.update(self._tasks[what], completed=done, total=total, visible=done < total)
        elif not self._as_json:
            self._count_lines.show(what, done, total)

    def observe(self, phase: Phase, state: State, row: dict[str, Any]) -> None:
        """Show one step; `row` are its metrics."""
        for words in row.get(WARNED, ()):
            self.tell("warning", words)
        measured = accuracy_of(row)
        if measured:
            lost = row.get(UNJUDGED) or ""
            full, short = (f" ({words})" if words else "" for words in (lost, lost.partition(":")[0]))
            share, told = accuracy_words(measured).partition(" [")[0], f"dev {accuracy_words(measured)}"
            self._last = (f"{told}{full if not self._live else short}", f"dev {share}{short}", f"dev {share}")
            self._measured_at = row["step"]
        facts = [f"{short} {row[key]:.2f}" for key, short in SHOWN.items() if row.get(key) is not None]
        # Tables, checkpoints and files count the steps of the whole run, the bar and the line those of the phase.
        in_run = f"step {row['step']}" if row["step"] != row["phase_step"] else ""
        if self._live or self._notebook:
            self._rewrite(phase, row, in_run, facts)
        elif not self._as_json and (measured or (self._interval and row["phase_step"] % self._interval == 0)):
            place = f"{row['phase_step']}/{phase.steps}{f' ({in_run})' if in_run else ''}"
            line = "  ".join([self._last[0], *facts] if measured else facts)
            print(f"{phase.name} {place}  {line}", file=sys.stderr, flush=True)

    def _rewrite(self, phase: Phase, row: dict[str, Any], in_run: str, facts: Sequence[str]) -> None:
        """The line of a phase that is rewritten in place; on a terminal as much of it as there is room for."""
        since = f" at step {self._measured_at}" if self._last[0] and self._measured_at != row["step"] else ""
        lines = [
            "  ".join(filter(None, (in_run, f"{result}{since}" if result else "", *facts[:kept])))
            for result, kept in [(self._last[0], n) for n in range(len(facts), -1, -1)] + [(r, 0) for r in self._last]
        ]
        if self._notebook:
            self._notebook.show(phase.name, row["phase_step"], phase.steps, lines[0])
            return
        room = self._console.width - self._taken
        line = next((line for line in lines if len(line) <= room), self._last[-1][: max(0, room)])
        if phase.name not in self._tasks:
            self._tasks[phase.name] = self._bars.add_task(phase.name, total=phase.steps, facts="")
        self._bars.update(self._tasks[phase.name], completed=row["phase_step"], facts=line)

    def end(self, ended: Ended) -> None:
        """Show the result, warnings, and where to read more."""
        if self._as_json:
            from rlvrlab.record.profile import profile_of

            told = [one._asdict() for one in headlines(ended.folder)]
            spent = [one._asdict() for one in profile_of(read_metrics(ended.folder))]
            facts = {"folder": str(ended.folder), "status": ended.status, "headline": told, "result": ended.summary}
            print_json({**facts, "profile": spent})
            return
        rows = []
        for name, entry in ended.summary.items():
            last = accuracy_words(entry["last"]).replace(" %", "")
            rows.append(
                (
                    name,
                    began(entry["before"]).replace(" %", ""),
                    highest(entry["best"]).replace(" %", ""),
                    entry["best"]["step"],
                    last,
                )
            )
        out = Console()
        # Not as the table's title, which is folded at the table's width.
        out.print(Text(printable(f"{ended.folder.name}: {ended.status}")), style="table.title")
        head = ("phase", "before", "best", "step", "last")
        tight: dict[str, Any] = {"box": SIMPLE_HEAD, "padding": (0, 1, 0, 0), "title_justify": "left"}
        wide: dict[str, Any] = {"box": HEAVY_HEAD}
        out.print(table(head, rows, **(wide if out.width >= WIDE else tight)))  # 80 columns are enough
        out.print(f"{ACCEPTED}, in %, with 95 % intervals.", style="dim")
        if cards := read_cards(ended.folder):  # on the test problems, where the recipe asked for it
            columns, lines = card_table(cards)
            about = f"{len(cards[0].outcomes)} test problems, per phase"
            cells = [[Text(cell) for cell in line] for line in lines]  # they have line breaks
            out.print(table(columns, cells, no_wrap=columns, title=about, **tight))
            note = "In %, greedy, 95 % intervals; changes of accepted@1 are paired by problem, each by itself. "
            out.print(f"{note}One run: they hold for new problems, not for new seeds.", style="dim")
            for words in [*code_words(ended.folder, cards), *earlier_words(ended.folder, cards)]:
                say(out, words.strip())
        say(out, headline_words(ended.folder), "bold")
        gained = gain_lines(gains(ended.folder))
        for line in [*gained, better_before(ended.folder)]:
            say(out, line)
        for event in standing_warnings(read_events(ended.folder)):
            if event["text"].removeprefix("phase ") not in gained:  # said just now
                say(out, f"warning: {event['text']}", "yellow")
        say(out, f"The whole story: {ended.folder / 'EXPERIMENT.md'}")
        if ended.status != "finished":
            say(out, going_on(ended.folder, read_config(ended.folder), read_info(ended.folder)))


class NotebookLines:
    """One line per phase below a cell, rewritten in place; rich would need ipywidgets for that."""

    def __init__(self) -> None:
        self._lines: dict[str, Any] = {}

    def show(self, name: str, done: int, steps: int, facts: str) -> None:
        """Rewrite the line of a phase."""
        display = importlib.import_module("IPython.display").display
        full = 20 * done // max(1, steps)
        text = {"text/plain": f"{name:>9} {'█' * full}{'░' * (20 - full)} {done}/{steps}  {facts}"}
        if name in self._lines:
            self._lines[name].update(text, raw=True)
        else:
            self._lines[name] = display(text, raw=True, display_id=True)
