"""rlvr train: run a recipe, show its plan, or resume a run."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import click

from rlvrlab.cli.options import AS_JSON, FREE_WORDS
from rlvrlab.cli.printing import print_json
from rlvrlab.errors import UserError


@click.command("train", short_help="Run a recipe, or resume a run.", context_settings=FREE_WORDS)
@click.argument("recipe", required=False, type=click.Path(path_type=Path))
@click.argument("overrides", nargs=-1, type=click.UNPROCESSED)
@click.option("--plan", is_flag=True, help="Show the resolved recipe, batch sizes and cost; run nothing.")
@click.option("--resume", type=click.Path(path_type=Path), help="Go on with this run folder; takes no other argument.")
@click.option("--fork", is_flag=True, help="With --resume: a new run from its last checkpoint, if files were edited.")
@click.option("--engine", help="Train with this engine in place of the recipe's, e.g. verl.")
@click.option("--address", help="With verl: the Ray cluster, e.g. auto or ray://HEAD:10001; none starts Ray here.")
@click.option("--judge", "judges", multiple=True, help="With verl: a judge server's address; several share the work.")
@AS_JSON
def command(
    recipe: Path | None, overrides: tuple[str, ...], plan: bool, resume: Path | None, fork: bool,
    engine: str | None, address: str | None, judges: tuple[str, ...], as_json: bool,
) -> int:  # fmt: skip
    """Run a recipe, or resume a run.

    Any key can be overridden: `rollout.n=16` or `--rollout.n 16`.
    """
    from rlvrlab.recipe import load_recipe
    from rlvrlab.record.run import read_info
    from rlvrlab.scale import session
    from rlvrlab.train.session import resolved_of

    if resume is not None:
        if recipe is not None or overrides or plan or engine or address or judges:
            raise UserError("--resume takes no other argument; the run folder holds its recipe")
        resolved = resolved_of(resume)
    elif fork:
        raise UserError("--fork goes with --resume DIR")
    elif recipe is None:
        raise UserError("name a recipe, e.g. `rlvr train recipes/toy_countdown.toml`, or --resume DIR")
    elif engine == "verl":
        from rlvrlab.scale.verl.convert import recipe_for_verl

        resolved = recipe_for_verl(recipe, overrides)
    else:
        resolved = load_recipe(recipe, overrides if engine is None else [*overrides, f"engine.type={engine}"])
    on_verl = session.on_verl(resolved)
    if (address or judges) and not on_verl:
        raise UserError("--address and --judge are for verl; add --engine verl")
    if plan:
        from rlvrlab.cli.plan import show_plan

        if not on_verl:
            show_plan(resolved, as_json)
            return 0
        from rlvrlab.scale.verl.keys import settings
        from rlvrlab.scale.verl.spelling import override

        lines = [override(key, value) for key, value in settings(resolved, "RUN/artifacts/verl").items()]
        print_json({"verl": lines}) if as_json else click.echo("\n".join(lines))
        return 0
    from rlvrlab.cli.progress import Progress
    from rlvrlab.recipe.explain import unusual

    for words in unusual(resolved):
        click.echo(f"warning: {words}", err=True)
    said = ["rlvr", *map(shlex.quote, sys.argv[1:])]
    with Progress(resolved, as_json) as progress:
        if resume is not None and fork:
            ended = session.fork(resume, progress.observe, said)
        elif resume is not None:
            finished = read_info(resume).get("status") == "finished"
            ended = session.resume(resume, progress.observe)
            if finished:
                click.echo(f"{resume}: was finished already; nothing was left to train", err=True)
        else:
            ended = session.start(resolved, progress.observe, said, address, judges)
    progress.end(ended)
    return ended.exit_code
