"""rlvr tail: what a run writes, as it writes it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from rlvrlab.cli.names import run_folder
from rlvrlab.cli.options import RUN
from rlvrlab.cli.printing import printable
from rlvrlab.errors import LabError

POLL_S = 0.5
"""Seconds between two looks at a log that has nothing new."""
SHOWN = {
    "critic/rewards/mean": "reward", "train/acc": "train", "actor/entropy": "entropy",
    "actor/grad_norm": "gradient norm", "groups/zero_variance": "dead groups", "response_length/mean": "tokens",
    "sft/nll": "nll", "time/step_s": "seconds",
}  # fmt: skip
"""Metric -> its short name on a line."""
VERDICTS = {True: "right", False: "wrong", None: "not judged"}


@click.command("tail", short_help="Follow what a run writes.")
@RUN
@click.option("-n", "--lines", default=10, show_default=True, type=click.IntRange(0), help="Past lines to begin with.")
@click.option("--metric", "metrics", multiple=True, metavar="NAME", help="Show these metrics instead; may be repeated.")
@click.option("--no-follow", is_flag=True, help="Print what is there and leave.")
@click.option("--json", "as_json", is_flag=True, help="Print the lines as they were written, with the log's name.")
def command(run: str, folder: Path, lines: int, metrics: tuple[str, ...], no_follow: bool, as_json: bool) -> None:
    """Follow what a run writes.

    Its metrics and events until it ends; Ctrl-C leaves, the run goes on. RUN is a folder or a part of its name, the
    newest run by default.

    \b
    rlvr tail
    rlvr tail toy_countdown --metric actor/entropy --metric actor/kl
    """
    place = run_folder(run, folder)
    if not as_json:
        click.echo(printable(place))
    with suppress(KeyboardInterrupt):
        for log, row in follow(place, lines, wait=not no_follow):
            click.echo(json.dumps({"log": log, **row}, ensure_ascii=False) if as_json else line_of(log, row, metrics))


def follow(folder: Path, lines: int, *, wait: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """(log, row) pairs; ends when the run has ended, or without `wait` as soon as nothing new is there."""
    from rlvrlab.record.run import read_info
    from rlvrlab.report.follow import Follower
    from rlvrlab.report.status import ACTIVE, state_of

    names = {"metrics": folder / "logs/metrics.jsonl", "events": folder / "logs/events.jsonl"}
    if not (folder / "logs").is_dir():
        names = {"samples": folder / "samples.jsonl"}
    followers = {log: Follower(path) for log, path in names.items()}
    for follower in followers.values():
        follower.skip_to_last(lines)
    state = ""
    while True:
        info: dict[str, Any] = {}  # while it cannot be read, the run counts as going on
        with suppress(LabError):
            info = read_info(folder)
        before, state = state, state_of(folder, info)
        new = [(log, row) for log, follower in followers.items() for row in follower.read()]
        for log, follower in followers.items():
            if follower.rewound:
                yield "status", {"text": f"{log} begins anew: the run went back to a checkpoint"}
        yield from new
        if before != state:
            yield "status", {"status": state, "text": f"this run is {state}"}
        if new:
            continue
        if not wait or state not in ACTIVE:
            return
        time.sleep(POLL_S)


def line_of(log: str, row: dict[str, Any], metrics: tuple[str, ...] = ()) -> str:
    """A row of a log as one line for a person."""
    from rlvrlab.record.headline import accuracy_words
    from rlvrlab.report.runs import held_out

    if log == "metrics":
        accuracy = held_out(row)
        parts = [f"{row.get('phase', '?')} {row.get('phase_step', '?')}", f"step {row.get('step', '?')}"]
        if accuracy and not metrics:
            parts.append(f"dev {accuracy_words(accuracy)}")
        wanted = {name: name for name in metrics} or SHOWN
        parts += [f"{short} {row[key]:.3g}" for key, short in wanted.items() if isinstance(row.get(key), int | float)]
        return printable("  ".join(parts))
    if log == "samples":
        verdict = VERDICTS[row.get("correct") if isinstance(row.get("correct"), bool) else None]
        return printable(f"{row.get('problem', '?')} #{row.get('sample', 0)}  {verdict}")
    kind = f"{row['kind']}: " if "kind" in row else ""
    stamp = f"{row['time'][11:19]} " if isinstance(row.get("time"), str) else ""
    return printable(f"— {stamp}{kind}{row.get('text', '')}")
