"""rlvr data preview: problems of an environment as the policy sees them, or what a file holds."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from rlvrlab.cli.check import built
from rlvrlab.cli.names import refuse_unknown
from rlvrlab.cli.options import AS_JSON
from rlvrlab.cli.printing import print_json, printable, table, telling_data
from rlvrlab.types import Environment, Problem


@click.command("preview")
@click.argument("what", metavar="ENV|FILE")
@click.argument("keys", nargs=-1, type=click.UNPROCESSED)
@click.option("--size", default=2, show_default=True, type=click.IntRange(1), help="How many problems.")
@click.option("--role", type=click.Choice(["train", "dev", "test"]), default="train", show_default=True)
@click.option("--seed", default=0, show_default=True)
@AS_JSON
def preview(what: str, keys: tuple[str, ...], size: int, role: Any, seed: int, as_json: bool) -> None:
    """Show problems as the policy sees them, with a right answer and its verdict.

    A FILE of your own is described: its columns, and the recipe lines that would use it. KEYS set those of the
    environment, for a file those of `answers`.

    \b
    rlvr data preview countdown numbers=[2]
    rlvr data preview questions.jsonl matcher=text
    """
    if Path(what).is_file():
        _preview_file(Path(what), keys, size, role, seed, as_json)
        return
    refuse_unknown(what)
    environment = built("env", what, keys)
    with telling_data():
        rows = [_seen(environment, problem) for problem in environment.problems(role, size, seed)]
    print_json(rows) if as_json else _print_problems(rows)


def _preview_file(path: Path, keys: tuple[str, ...], size: int, role: Any, seed: int, as_json: bool) -> None:
    from rlvrlab.data.guesses import look_at, why_unusable
    from rlvrlab.data.rows import read_problems
    from rlvrlab.recipe.parse import parse_overrides

    raw = look_at(path, {key: str(value) for key, value in parse_overrides(keys).items()})
    if raw.prepared:
        some = list(read_problems(path))[:size]
        rows = [{"id": p.id, "skill": p.skill, "prompt": p.prompt, "meta": dict(p.meta)} for p in some]
    elif raw.usable:
        environment = built("env", "answers", tuple(f"{key}={value}" for key, value in
                                                    {"path": str(path), **raw.keys}.items()))  # fmt: skip
        rows = [_seen(environment, problem) for problem in environment.problems(role, size, seed)]
    else:
        rows = []
    if as_json:
        print_json({**asdict(raw), "recipe": raw.recipe_lines, "problems": rows})
        return
    click.echo(printable(f"{path}: {raw.rows} rows{', prepared' if raw.prepared else ''}"))
    Console().print(table(("column", "type", "empty", "for example"),
                          [(c.name, c.kind, c.empty or "", c.example) for c in raw.columns]))  # fmt: skip
    if not raw.usable and not raw.prepared:
        click.echo(printable(why_unusable(raw)))
        return
    click.echo("\nin a recipe (guessed, so look at the problems below):" if not raw.prepared else "\nin a recipe:")
    for line in raw.recipe_lines:
        click.echo(f"  {printable(line)}")
    click.echo("")
    _print_problems(rows)


def _seen(environment: Environment, problem: Problem) -> dict[str, Any]:
    gold = environment.gold(problem)
    correct = None if gold is None else environment.verify_many([(problem, gold)])[0].correct
    row = {"id": problem.id, "skill": problem.skill, "prompt": problem.prompt, "gold": gold, "correct": correct}
    return row | {"meta": dict(problem.meta)}


def _print_problems(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        click.secho(printable(f"── {row['id']}  {row['skill']}  level {row['meta'].get('level', '–')}"), dim=True)
        for line in row["prompt"].splitlines():
            click.echo(printable(line))
        if "correct" not in row:
            continue
        for line in ["» a right answer:", *str(row["gold"]).splitlines()]:
            click.echo(printable(line))
        click.secho(f"» judged correct: {row['correct']}", fg="green" if row["correct"] else "red")
