"""rlvr rescore: judge what is stored again; the record must lead to the same verdicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from rlvrlab.cli.names import RUN_OR_OTHER
from rlvrlab.cli.options import ACCEPT_CODE, AS_JSON
from rlvrlab.cli.printing import print_json, printable
from rlvrlab.errors import UserError, and_more
from rlvrlab.types import Environment, Problem

SHOWN = 20
"""Differences that are printed; the others are counted."""
Items = Iterator[tuple["Problem", Mapping[str, Any]]]
"""Stored rows with their problems."""


@click.command("rescore", short_help="Judge stored answers again.")
@click.argument("folder", metavar="RUN|EVALUATION", type=RUN_OR_OTHER)
@click.option("--step", type=click.IntRange(0), help="Of a run: only this step's rollouts.")
@ACCEPT_CODE
@AS_JSON
def command(folder: str, step: int | None, as_json: bool) -> int:
    """Judge stored answers again.

    Nobody is asked. It takes an evaluation, or a run with rollouts. The exit code is 0 when every verdict is as it was
    stored, 1 otherwise.
    """
    from rlvrlab.evals.rescore import rescore

    place = Path(folder)
    env, stored = _of_run(place, step) if (place / "config.json").exists() else _of_evaluation(place)
    rescored = rescore(env, stored)
    if as_json:
        counts = {"answers": rescored.answers, "skipped": rescored.skipped, "unjudged": rescored.unjudged}
        print_json({**counts, "changes": [vars(change) for change in rescored.changes]})
        return 0 if rescored.same else 1
    for change in rescored.changes[:SHOWN]:
        what = ", ".join(f"{name} {was!r} → {now!r}" for name, (was, now) in change.fields.items())
        click.echo(printable(f"{change.problem} #{change.sample}: {what}"))
    if more := and_more(len(rescored.changes), SHOWN):
        click.echo(more)
    extra = f", {rescored.skipped} without a verdict skipped" if rescored.skipped else ""
    extra += f", {rescored.unjudged} could not be judged now" if rescored.unjudged else ""
    judged = f"{rescored.answers} answers judged again by {env.name} {env.version}"
    words = f"{judged}: {len(rescored.changes)} differences{extra}"
    click.secho(printable(words), fg="green" if rescored.same else "red")
    return 0 if rescored.same else 1


def _of_evaluation(folder: Path) -> tuple[Environment, Items]:
    from rlvrlab.recipe.schema import instantiate
    from rlvrlab.record.evaluation import read_evaluation

    stored = read_evaluation(folder)
    scorer = stored.examined["scorer"]
    name = stored.info.get("scorer_type", scorer["environment"])
    home = Path(stored.info.get("scorer_folder", "."))
    env: Environment = instantiate("env", {"type": name, **scorer["keys"]}, home)
    if env.version != scorer["version"]:
        note = f"judged by {scorer['environment']} {scorer['version']}, this is {env.version}: differences are expected"
        click.echo(f"note: {printable(note)}", err=True)
    problems = {problem.id: problem for problem in stored.problems}
    return env, ((problems[row["problem"]], row) for row in stored.rows)


def _of_run(folder: Path, step: int | None) -> tuple[Environment, Items]:
    from rlvrlab.record.files import read_lines
    from rlvrlab.record.run import rollout_files
    from rlvrlab.train.session import resolved_of

    files = [path for number, path in rollout_files(folder).items() if step in (None, number)]
    if not files:
        which = "" if step is None else f" of step {step}"
        raise UserError(f"{folder}: no rollouts{which}; record.rollouts keeps them")
    resolved = resolved_of(folder)
    env: Environment = resolved.build("env")
    data = resolved.recipe.data
    known = {p.id: p for p in env.problems("train", data.train_size, data.seed)}

    def items() -> Items:
        for path in files:
            for row in read_lines(path, answers=True):
                given = Problem(row["problem"], env.name, row["skill"], row["prompt"], row["reference"])
                yield known.get(given.id, given), row

    return env, items()
