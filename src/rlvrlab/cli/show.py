"""rlvr show: how a run is doing, on one screen."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rlvrlab.cli import print_json, printable
from rlvrlab.cli.options import AS_JSON, RUN
from rlvrlab.cli.runs import COLOURS, duration, share_of, steps_of, tokens_of, wide_console

if TYPE_CHECKING:
    from rich.console import Console

    from rlvrlab.report.runs import Entry
    from rlvrlab.train.card import Card

LAMPS = {"good": ("✓", "green"), "notice": ("!", "yellow"), "alarm": ("✗", "red")}
"""State of a light -> its sign and colour; signs, because not everyone sees the colours."""
CURVES = (
    "train/acc", "critic/rewards/mean", "actor/entropy", "actor/grad_norm", "groups/zero_variance",
    "response_length/mean", "response_length/clip_ratio", "actor/kl", "sft/nll", "actor/loss", "time/step_s",
)  # fmt: skip
"""Metrics whose curves are shown after the held-out accuracies."""
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
def command(run: str, folder: Path, as_json: bool) -> int:
    """Show how a run is doing.

    Result, curves, health with what to do, the phases' cards and where the files are. RUN is a folder or a part of its
    name, the newest run by default.

    \b
    rlvr show
    rlvr show toy_countdown_20261115
    """
    from rlvrlab.cli.tables import metrics_table
    from rlvrlab.report.runs import locate, read_table, summarise_run

    place = locate(run, folder)
    entry = summarise_run(place)
    found = _looked_at(place) if entry.kind == "run" else {}
    if as_json:
        cards = [card._asdict() for card in found.pop("cards", [])]
        files = [name for name in FILES if (place / name).exists()]
        print_json({**entry.facts(), **found, "cards": cards, "files": files})
        return 0
    console = wide_console()
    _head(console, entry, found)
    if found:
        _phases(console, found["headline"])
        _curves(console, found["curves"])
        _health(console, found)
        _cards(console, found["cards"])
    else:
        for data, metrics in read_table(place / "metrics.json").items():
            console.print(f"\n{printable(data)}", style="bold", markup=False)
            console.print(metrics_table(metrics))
    _files(console, place)
    return 0


def _looked_at(folder: Path) -> dict[str, Any]:
    """What `rlvr show` says of a run beyond its line in the list."""
    from rlvrlab.report.gather.overview import overview
    from rlvrlab.report.gather.record import RunRecord
    from rlvrlab.train.card import read_cards

    run = RunRecord(folder)
    data = overview(run)["data"]
    accuracies = [key for key in run.keys if key.startswith("val-core/") and key.endswith("/acc")]
    curves = {key: [value for _, value, _ in run.series(key)] for key in (*accuracies, *CURVES)}
    cards = []
    try:
        cards = read_cards(folder)
    except (OSError, ValueError, TypeError, KeyError) as error:
        run.folder.miss("analysis/cards", f"cannot be read ({error})")
    return {
        **{key: data[key] for key in ("why", "headline", "lights", "warnings")},
        "curves": {key: values for key, values in curves.items() if values},
        "cards": cards,
        "missing": run.folder.missing,
    }


def _head(console: Console, entry: Entry, found: dict[str, Any]) -> None:
    from rich.text import Text

    title = Text(printable(entry.name), "bold")
    title.append(f"  {printable(entry.status)}", COLOURS.get(entry.status, "green"))
    title.append("".join(f"  #{tag}" for tag in entry.tags), "cyan")
    console.print(title, soft_wrap=True)
    facts = [
        f"{printable(entry.phase)} {steps_of(entry)}".strip(),
        f"accuracy {share_of(entry)} %" if entry.metric else "",
        f"{tokens_of(entry)} tokens" if entry.tokens is not None else "",
        f"started {duration(entry.age_s)} ago" if entry.age_s is not None else "",
        f"last news {duration(entry.quiet_s)} ago" if entry.status in ("running", "stale", "killed") else "",
    ]
    lines = [(entry.about, "italic"), (" · ".join(fact for fact in facts if fact), ""), (found.get("why", ""), "")]
    if entry.status in ("killed", "interrupted", "preempted", "failed") and entry.kind == "run":
        lines.append((f"Go on with: rlvr train --resume {entry.folder}", "yellow"))
    lines += [(f"missing: {one['what']}: {one['why']}", "yellow") for one in found.get("missing", [])]
    lines += [(entry.note, "yellow")]
    for words, style in lines:
        if words:
            console.print(Text(printable(words), style), soft_wrap=True)


def _phases(console: Console, headline: list[dict[str, Any]]) -> None:
    from rich.table import Table
    from rich.text import Text

    if not headline:
        return
    console.print("\nHeld-out accuracy in %, greedy, 95 % intervals", style="bold")
    table = Table("data", "phase", "before", "best", "step", "last", box=None, pad_edge=False)
    for one in headline:
        cells = [Text(printable(one["data"])), Text(printable(one["phase"]))]
        cells += [Text(_point(one[key])) for key in ("before", "best")]
        table.add_row(*cells, str(one["best"]["from"].get("step", "")), _point(one["last"]))
    console.print(table)


def _point(point: dict[str, Any]) -> str:
    value, low, high = (point.get(key) for key in ("value", "low", "high"))
    if value is None:
        return "–"
    if low is None or high is None:
        return f"{100 * value:.1f}"
    return f"{100 * value:.1f} [{100 * low:.1f}, {100 * high:.1f}]"


def _curves(console: Console, curves: dict[str, list[float]]) -> None:
    from rich.table import Table
    from rich.text import Text

    from rlvrlab.record.experiment import sparkline

    if not curves:
        return
    console.print("\nCurves", style="bold")
    table = Table("metric", "first", "last", "lowest", "highest", "", box=None, pad_edge=False)
    for name, values in curves.items():
        numbers = [f"{value:.3g}" for value in (values[0], values[-1], min(values), max(values))]
        table.add_row(Text(printable(name)), *numbers, sparkline(list(values)))
    console.print(table)


def _health(console: Console, found: dict[str, Any]) -> None:
    from rich.text import Text

    shown = [light for light in found["lights"] if light["state"] in LAMPS]
    if not shown and not found["warnings"]:
        return
    console.print("\nHealth", style="bold")
    for light in shown:
        sign, colour = LAMPS[light["state"]]
        normal = f" (normal: {light['range']})" if light["range"] else ""
        line = Text.assemble((sign, colour), f" {light['metric']} {light['value']:.3g}{normal}")
        if light["state"] != "good":
            line.append(f", {light['meaning']}\n  → {light['remedy']}")
        console.print(line, soft_wrap=True)
    lit = tuple(f"{light['metric']} " for light in shown if light["state"] == "alarm")
    for event in found["warnings"]:
        if event["text"].startswith(lit):
            continue
        words = f"warned at step {event['from'].get('step', '?')}: {event['text']}"
        console.print(Text(printable(words), "yellow"), soft_wrap=True)


def _cards(console: Console, cards: list[Card]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from rlvrlab.train.card import card_table

    if not cards:
        return
    head, rows = card_table(cards)
    console.print(f"\nPhases' cards: {len(cards[0].outcomes)} test problems, in %, 95 % intervals", style="bold")
    table = Table(*head, box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for row in rows:
        table.add_row(*row)
    console.print(table)


def _files(console: Console, place: Path) -> None:
    from rich.table import Table
    from rich.text import Text

    console.print()
    console.print(Text(printable(f"Files in {place}/"), "bold"), soft_wrap=True)
    table = Table(box=None, show_header=False, pad_edge=False)
    for name, words in FILES.items():
        if (place / name).exists():
            table.add_row(name, Text(words, "dim"))
    console.print(table)
    words = printable(f"Look: rlvr report {place}   rlvr serve report {place.parent}")
    console.print(Text(words, "dim"), soft_wrap=True)
