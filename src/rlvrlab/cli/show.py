"""rlvr show: how a run is doing, on one screen."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.text import Text

from rlvrlab.cli.names import run_folder
from rlvrlab.cli.options import AS_JSON, RUN
from rlvrlab.cli.printing import print_json, printable, say, table
from rlvrlab.cli.runs import COLOURS, share_of, steps_of, tokens_of, wide_console
from rlvrlab.errors import RunError
from rlvrlab.record.files import duration
from rlvrlab.shares import share_words

NUMBER, COURSE = 11, 40
"""Columns of a number with the gap beside it, and of the course of a metric where there is room."""

if TYPE_CHECKING:
    from rlvrlab.report.runs import Entry

LAMPS = {"good": ("✓", "green"), "notice": ("!", "yellow"), "alarm": ("✗", "red")}
"""State of a light -> its sign and colour; signs, because not everyone sees the colours."""
CURVES = (
    "train/acc", "critic/rewards/mean", "actor/entropy", "actor/grad_norm", "groups/zero_variance",
    "response_length/mean", "response_length/clip_ratio", "actor/kl", "sft/nll", "actor/loss", "time/step_s",
)  # fmt: skip
"""Metrics whose curves are shown after the held-out accuracies."""
LEFT = ("run_info.json", "logs/metrics.jsonl", "checkpoints")
"""What tells a run whose config.json is lost from a folder that never was one."""
FILES = {
    "EXPERIMENT.md": "the run explained",
    "config.json": "the recipe as resolved",
    "run_info.json": "status, command, machine, versions, data hashes",
    "logs/metrics.jsonl": "one line per step",
    "logs/events.jsonl": "what happened, in words",
    "rollouts": "every judged answer, one file per step",
    "checkpoints": "policies; the best one is kept",
    "evaluations": "evaluations of this run",
    "analysis": "cards, figures and tables",
    "metrics.json": "every number of the evaluation",
    "samples.jsonl": "every judged answer",
}


@click.command("show", short_help="Show how a run is doing.")
@RUN
@AS_JSON
def command(run: str, folder: Path, as_json: bool) -> None:
    """Show how a run is doing.

    Result, curves, health with what to do, the phases' cards and where the files are. RUN is a folder or a part of its
    name, the newest run by default.

    \b
    rlvr show
    rlvr show toy_countdown_20261115
    """
    from rlvrlab.cli.tables import metrics_table
    from rlvrlab.record.run import no_run
    from rlvrlab.report.runs import kind_at, read_table, summarise_run

    place = run_folder(run, folder)
    if not kind_at(place) and not any((place / sign).exists() for sign in LEFT):
        raise no_run(place)
    entry = summarise_run(place)
    details = _details(place) if entry.kind == "run" else {}
    files = {name: words for name, words in FILES.items() if (place / name).exists()}
    if as_json:
        cards = [card._asdict() for card in details.pop("cards", [])]
        print_json({**entry.facts(), **details, "cards": cards, "files": list(files)})
        return
    console = wide_console()
    _head(console, entry, details)
    if details:
        _show_run(console, details)
    else:
        for data, metrics in read_table(place / "metrics.json").items():
            console.print(f"\n{printable(data)}", style="bold", markup=False)
            console.print(metrics_table(metrics))
    console.print()
    say(console, f"Files in {place}/", "bold")
    rows = [(name, Text(words, "dim")) for name, words in files.items()]
    console.print(table(("", ""), rows, show_header=False, pad_edge=False))
    say(console, f"Look: rlvr report {place}   rlvr serve report {place.parent}", "dim")


def _details(folder: Path) -> dict[str, Any]:
    """What `rlvr show` says of a run beyond its line in the list."""
    from rlvrlab.evals.cards import better_before, code_words, earlier_words, gain_lines, gains, read_cards
    from rlvrlab.record.headline import in_words
    from rlvrlab.report.gather.overview import overview, result
    from rlvrlab.report.reading import STRANGE
    from rlvrlab.report.run_record import RunRecord

    run = RunRecord(folder)
    data = overview(run)["data"]
    accuracies = [key for key in run.keys if key.startswith("val-core/") and key.endswith("/acc")]
    curves = {key: [value for _, value, _ in run.series(key)] for key in (*accuracies, *CURVES)}
    cards, code, earlier, added = [], [], [], list[str]()
    try:
        cards = read_cards(folder)
        code = code_words(folder, cards)
        earlier = [words.strip() for words in earlier_words(folder, cards)]
        added = [*gain_lines(gains(folder)), better_before(folder)]
    except (RunError, OSError, *STRANGE) as error:
        run.folder.miss("analysis/cards", f"cannot be read ({error})")
    return {
        **{key: data[key] for key in ("why", "go_on", "headline", "lights", "warnings")},
        "curves": {key: values for key, values in curves.items() if values},
        "cards": cards,
        "code": code,
        "earlier": earlier,
        "added": [line for line in added if line],
        "result": in_words(result(run), folder),
        "missing": run.folder.missing,
    }


def _head(console: Console, entry: Entry, details: dict[str, Any]) -> None:
    from rlvrlab.report.runs import NO_INFO

    title = Text(printable(entry.name), "bold")
    title.append(f"  {printable(entry.status)}", COLOURS.get(entry.status, "green"))
    title.append("".join(f"  #{tag}" for tag in entry.tags), "cyan")
    console.print(title, soft_wrap=True)
    facts = [
        ", ".join(filter(None, [printable(entry.phase), f"step {steps_of(entry)}" if entry.step is not None else ""])),
        f"accuracy {share_of(entry)} %" if entry.metric and entry.kind != "run" else "",
        f"{tokens_of(entry)} tokens" if entry.tokens is not None else "",
        f"started {duration(entry.age_s)} ago" if entry.age_s is not None else "",
        f"last news {duration(entry.quiet_s or 0)} ago" if entry.status in ("running", "stale", "killed") else "",
    ]
    lines = [
        (entry.about, "italic"),
        (details.get("result", ""), "bold"),
        (" · ".join(fact for fact in facts if fact), ""),
        (details.get("why", ""), ""),
    ]
    if entry.status in ("killed", "interrupted", "preempted", "failed") and entry.kind == "run":
        lines.append((details["go_on"], "yellow"))
    lines += [(f"missing: {one['what']}: {one['why']}", "yellow") for one in details.get("missing", [])]
    lines += [(entry.note, "yellow")] if entry.note != NO_INFO else []  # told already as missing
    for words, style in lines:
        say(console, words, style)


def _show_run(console: Console, details: dict[str, Any]) -> None:
    """Results, curves, health and cards of a run, as far as there are any."""
    from rlvrlab.record.experiment import sparkline
    from rlvrlab.record.headline import ACCEPTED
    from rlvrlab.train.card import card_table

    results = [
        [one["data"], one["phase"], share_words(one["before"]), share_words({"value": one["best"]["value"]}),
         one["best"]["from"].get("step", ""), share_words(one["last"])]
        for one in details["headline"]
    ]  # fmt: skip
    head = ["data", "phase", "before", "best", "step", "last"]
    _print_table(console, f"{ACCEPTED}, in %, 95 % intervals", head, results)
    ends = {
        name: [f"{value:.3g}" for value in (values[0], values[-1], min(values), max(values))]
        for name, values in details["curves"].items()
    }
    # A course that is broken into two lines cannot be read: it has the columns that names and numbers leave it.
    room = console.width - max(map(len, ends), default=0) - 4 * NUMBER
    courses = {name: sparkline(list(values), max(1, min(COURSE, room))) for name, values in details["curves"].items()}
    curves = [[name, *numbers, courses[name]] for name, numbers in ends.items()]
    _print_table(console, "Curves", ["metric", "first", "last", "lowest", "highest", ""], curves)
    _health(console, details)
    if cards := details["cards"]:
        title = f"Phases' cards: {len(cards[0].outcomes)} test problems, in %, 95 % intervals"
        head, rows = card_table(cards)
        _print_table(console, title, head, [[Text(cell) for cell in row] for row in rows], ruled=True)
    for words in [*details["code"], *details["added"], *details["earlier"]]:
        say(console, words)


def _print_table(
    console: Console, title: str, head: Sequence[str], rows: Sequence[Sequence[object]], *, ruled: bool = False
) -> None:
    """A titled table; nothing where there are no rows. `ruled` draws a line below the head."""
    if rows:
        console.print(f"\n{title}", style="bold")
        look: dict[str, Any] = {"box": SIMPLE_HEAD, "padding": (0, 1, 0, 0)} if ruled else {}
        console.print(table(head, rows, pad_edge=False, **look))


def _health(console: Console, details: dict[str, Any]) -> None:
    shown = [light for light in details["lights"] if light["state"] in LAMPS]
    if not shown and not details["warnings"]:
        return
    console.print("\nHealth", style="bold")
    for light in shown:
        sign, colour = LAMPS[light["state"]]
        normal = f" (normal: {light['range']})" if light["range"] else ""
        line = Text.assemble((sign, colour), f" {light['metric']} {light['value']:.3g}{normal}")
        if light["state"] != "good":
            if (was := light["was"]) and was["step"] != light["from"].get("step"):
                line.append(f", outside at step {was['step']}: {was['value']:.3g}")
            line.append(f", {light['meaning']}\n  → {light['remedy']}")
        console.print(line, soft_wrap=True)
    lit = tuple(f"{light['metric']} " for light in shown if light["state"] == "alarm")
    for event in details["warnings"]:
        if event["text"].startswith(lit):
            continue
        step = event["from"].get("step")
        words = f"warned {'before training' if step is None else f'at step {step}'}: {event['text']}"
        say(console, words, "yellow")
