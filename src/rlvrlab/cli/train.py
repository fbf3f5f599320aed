"""rlvr train: run a recipe, show its plan, or resume a run."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import click

from rlvrlab.errors import UserError


@click.command(
    "train",
    short_help="Run a recipe, or resume a run.",
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
)
@click.argument("recipe", required=False, type=click.Path(path_type=Path))
@click.argument("overrides", nargs=-1, type=click.UNPROCESSED)
@click.option("--plan", is_flag=True, help="Show the resolved recipe, batch sizes and cost; run nothing.")
@click.option("--resume", type=click.Path(path_type=Path), help="Go on with this run folder; takes no other argument.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(recipe: Path | None, overrides: tuple[str, ...], plan: bool, resume: Path | None, as_json: bool) -> int:
    """Run a recipe, or resume a run.

    Any key can be overridden: `rollout.n=16` or `--rollout.n 16`.
    """
    from rlvrlab.recipe import load_recipe

    if resume is not None:
        if recipe is not None or overrides or plan:
            raise UserError("--resume takes no other argument; the run folder holds its recipe")
        return _resume(resume, as_json)
    if recipe is None:
        raise UserError("name a recipe, e.g. `rlvr train recipes/toy_countdown.toml`, or --resume DIR")
    resolved = load_recipe(recipe, overrides)
    if plan:
        from rlvrlab.cli.plan import show_plan

        show_plan(resolved, as_json)
        return 0
    from rlvrlab.cli.progress import Progress
    from rlvrlab.train.session import start

    with Progress(resolved, as_json) as progress:
        ended = start(resolved, progress.observe, command=["rlvr", *map(shlex.quote, sys.argv[1:])])
    progress.end(ended)
    return ended.exit_code


def _resume(folder: Path, as_json: bool) -> int:
    from rlvrlab.cli.progress import Progress
    from rlvrlab.train.session import resolved_of, resume

    with Progress(resolved_of(folder), as_json) as progress:
        ended = resume(folder, progress.observe)
    progress.end(ended)
    return ended.exit_code


def print_json(value: object) -> None:
    """What --json prints."""
    click.echo(json.dumps(value, ensure_ascii=False, indent=2, default=str))
