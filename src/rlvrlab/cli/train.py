"""rlvr train: run a recipe, show its plan, or resume a run."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console

from rlvrlab.cli.names import RECIPE, RECIPE_KEY, RunName
from rlvrlab.cli.options import AS_JSON, FreeWords
from rlvrlab.cli.printing import CountLines, table
from rlvrlab.errors import UserError
from rlvrlab.notes import counting, noting
from rlvrlab.shares import about

if TYPE_CHECKING:
    from rlvrlab.recipe import Resolved


@click.command("train", short_help="Run a recipe, or resume a run.", cls=FreeWords)
@click.argument("recipe", required=False, type=RECIPE)
@click.argument("overrides", nargs=-1, type=RECIPE_KEY)
@click.option("--plan", is_flag=True, help="Show the resolved recipe, batch sizes and cost; run nothing.")
@click.option("--resume", type=RunName(), metavar="RUN", help="Go on with this run; PHASE.steps=+100 makes it longer.")
@click.option("--fork", is_flag=True, help="With --resume: a new run from its last checkpoint, if files were edited.")
@click.option("--accept-code", is_flag=True, help="With --resume: go on with the functions of files as they are now.")
@click.option("--engine", help="Train with this engine in place of the recipe's, e.g. verl.")
@click.option("--address", help="With verl: the Ray cluster, e.g. auto or ray://HEAD:10001; none starts Ray here.")
@click.option("--judge", "judges", multiple=True, help="With verl: a judge server's address; several share the work.")
@click.option("--profile", is_flag=True, help="At the end: where the time of a step went, and what would save some.")
@AS_JSON
def command(
    recipe: Path | None, overrides: tuple[str, ...], plan: bool, resume: str | None, fork: bool, accept_code: bool,
    profile: bool, engine: str | None, address: str | None, judges: tuple[str, ...], as_json: bool,
) -> int:  # fmt: skip
    """Run a recipe, or resume a run.

    RECIPE is a file or a name of `rlvr recipes`. Any key can be overridden: `rollout.n=16` or `--rollout.n 16`.

    \b
    rlvr train toy_countdown rollout.n=16 seed=3
    rlvr train --resume latest                      after a crash
    rlvr train --resume latest grpo.steps=+100      a finished run, made longer
    rlvr train --resume latest --accept-code        after you have mended your own reward
    """
    from rlvrlab.record.run import read_info
    from rlvrlab.scale import session

    folder, words, idle = Path(resume or ""), [str(recipe)] * (recipe is not None) + [*overrides], False
    if resume is not None:
        if plan or engine or address or judges or (recipe is not None and "=" not in str(recipe)):
            raise UserError("--resume takes no other argument but keys such as grpo.steps=+100")
        if accept_code:
            from rlvrlab.own_code import accepting

            click.get_current_context().with_resource(accepting())
        resolved, longer = _resumed(folder, words, fork, accept_code)
        idle = not longer and read_info(folder).get("status") == "finished"
    elif fork or accept_code:
        raise UserError(f"{'--fork' if fork else '--accept-code'} goes with --resume RUN")
    else:
        resolved = _resolved(recipe, overrides, engine)
    on_verl = session.on_verl(resolved)
    if (address or judges) and not on_verl:
        raise UserError("--address and --judge are for verl; add --engine verl")
    if plan:
        _show_plan(resolved, recipe if on_verl else None, overrides, as_json)
        return 0
    from rlvrlab.cli.progress import Progress
    from rlvrlab.recipe.explain import unnamed_env, unusual

    if resume is None and (unnamed := unnamed_env(resolved)):
        click.echo(unnamed, err=True)
    for warning in unusual(resolved):
        click.echo(f"warning: {warning}", err=True)
    said = ["rlvr", *map(shlex.quote, sys.argv[1:])]
    with Progress(resolved, as_json) as progress, noting(progress.tell), counting(progress.count):
        if resume is not None and fork:
            ended = session.fork(folder, progress.observe, said, accept_code=accept_code)
        elif resume is not None:
            ended = session.resume(folder, progress.observe)
            if idle:
                more = f"{resolved.recipe.phases[-1]}.steps=+100"
                click.echo(f"{folder}: was finished already; nothing was left to train. To go on: {more}", err=True)
        else:
            ended = session.start(resolved, progress.observe, said, address, judges)
    progress.end(ended)
    if profile and not as_json:
        _show_profile(ended.folder, resolved)
    return ended.exit_code


def _show_profile(folder: Path, resolved: Resolved) -> None:
    """Seconds per step by part, and advice."""
    from rlvrlab.record.faster import advice
    from rlvrlab.record.profile import profile_of
    from rlvrlab.record.run import read_metrics

    spent = profile_of(read_metrics(folder))
    rows = [(one.phase, one.words, f"{one.per_step:.3f}", about(one.share)) for one in spent]
    Console().print(table(("phase", "what a step does", "seconds per step", "share"), rows))
    for line in advice(spent, resolved.plain()):
        click.echo(f"advice: {line}")


def _resolved(recipe: Path | None, overrides: Sequence[str], engine: str | None) -> Resolved:
    """The recipe of a new run; a data file in its place is told how to become one."""
    from rlvrlab.recipe import load_recipe

    if recipe is None:
        raise UserError("name a recipe, e.g. `rlvr train toy_countdown` (`rlvr recipes` lists more), or --resume RUN")
    if recipe.suffix != ".toml":
        _refuse_data(recipe)
    if engine == "verl":
        from rlvrlab.scale.verl.convert import recipe_for_verl

        return recipe_for_verl(recipe, overrides)
    return load_recipe(recipe, overrides if engine is None else [*overrides, f"engine.type={engine}"])


def _refuse_data(path: Path) -> None:
    if not path.is_file():
        return
    from rlvrlab.envs.data_files import is_data_file

    if is_data_file(path):
        look = f"`rlvr data preview {path}` looks at it"
        raise UserError(
            f"{path}: is data, not a recipe; `rlvr new task NAME --data {path}` writes a recipe for it, {look}"
        )


def _show_plan(resolved: Resolved, verl_recipe: Path | None, overrides: Sequence[str], as_json: bool) -> None:
    """What would be done; of a recipe for verl, also what verl is started with, or the commands of several runs."""
    from rlvrlab.cli.plan import show_parts, show_plan, show_verl_plan

    if verl_recipe is None:
        show_plan(resolved, as_json)
        return
    from rlvrlab.scale.verl.keys import settings
    from rlvrlab.scale.verl.parts import parts, several_parts
    from rlvrlab.scale.verl.spelling import override
    from rlvrlab.train.lookups import refuse_wrong

    several = parts(verl_recipe, overrides) if several_parts(resolved) else []
    verls = {} if several else settings(resolved, "RUN/artifacts/verl")
    with counting(CountLines().show):
        warnings = refuse_wrong(resolved)
    if several:
        show_parts(several, warnings, as_json)
        return
    show_verl_plan(resolved, [override(key, value) for key, value in verls.items()], warnings, as_json)


def _resumed(folder: Path, words: Sequence[str], fork: bool, accept_code: bool) -> tuple[Resolved, bool]:
    """The recipe of a run that goes on, changed in its folder as far as that was asked for, and whether it was."""
    from rlvrlab.scale import session
    from rlvrlab.train.session import resolved_of

    if words and fork:
        raise UserError("--fork takes no keys; edit config.json of the run, which is left as it is")
    if accept_code and not fork:
        session.accept_code(folder)
    resolved = resolved_of(folder, accept_code=accept_code)
    if not words or not session.extend(folder, words):
        return resolved, False
    return resolved_of(folder), True
