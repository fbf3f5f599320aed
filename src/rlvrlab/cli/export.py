"""rlvr export: a recipe as another trainer wants it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rlvrlab.cli.names import RECIPE, RECIPE_KEY
from rlvrlab.cli.options import AS_JSON, FreeWords, together
from rlvrlab.cli.printing import print_json
from rlvrlab.cli.waiting import busy

if TYPE_CHECKING:
    from rlvrlab.recipe import Resolved

GIVEN = together(
    click.argument("recipe", type=RECIPE),
    click.argument("overrides", nargs=-1, type=RECIPE_KEY),
    click.option("-o", "--output", "folder", type=click.Path(path_type=Path), required=True, help="Folder to write."),
    AS_JSON,
)


@click.group("export", short_help="Write a recipe as verl, TRL or verifiers want it.")
def command() -> None:
    """Write a recipe as verl, TRL or verifiers want it."""


@command.command("verl", cls=FreeWords)
@GIVEN
@click.option("--judge", "judges", multiple=True, help="Address of a judge server (`rlvr serve judge`); several share.")
def verl(recipe: Path, overrides: tuple[str, ...], folder: Path, judges: tuple[str, ...], as_json: bool) -> None:
    """Write data, settings, reward module and launch scripts for verl.

    Any key can be overridden: `engine.gpus=4`. What verl cannot honour is refused by name.
    """
    from rlvrlab.scale.verl.convert import recipe_for_verl
    from rlvrlab.scale.verl.export import export

    resolved = recipe_for_verl(recipe, overrides)
    with busy(_work(resolved, folder)):
        made = export(resolved, folder, judges)
    if as_json:
        print_json(made._asdict() | {"folder": str(made.folder)})
        return
    click.echo(f"{made.folder}: {len(made.overrides)} settings, checked against {made.checked}; {made.prompts}")
    click.echo(f"Start it with: bash {made.folder / 'launch.sh'}")


@command.command("trl", cls=FreeWords)
@GIVEN
def trl(recipe: Path, overrides: tuple[str, ...], folder: Path, as_json: bool) -> None:
    """Write data, reward function, settings and a training script for TRL's GRPOTrainer.

    Any key can be overridden: `filter.dead_groups="keep"`. What TRL cannot honour is refused by name.
    """
    from rlvrlab.recipe import load_recipe
    from rlvrlab.scale.exports.trl import export

    resolved = load_recipe(recipe, overrides)
    with busy(_work(resolved, folder)):
        made = export(resolved, folder)
    if as_json:
        print_json({"folder": str(made.folder), "problems": made.problems, "settings": made.settings})
        return
    click.echo(f"{made.folder}: {made.problems['train']} training problems, {len(made.settings['config'])} settings")
    click.echo(f"Start it with: python {made.folder / 'train.py'}")


@command.command("verifiers", cls=FreeWords)
@GIVEN
def verifiers(recipe: Path, overrides: tuple[str, ...], folder: Path, as_json: bool) -> None:
    """Write the recipe's problems and reward as an environment package for verifiers.

    Keys that an environment has no say in are named as left to the trainer.
    """
    from rlvrlab.recipe import load_recipe
    from rlvrlab.scale.exports.verifiers import export

    resolved = load_recipe(recipe, overrides)
    with busy(_work(resolved, folder)):
        made = export(resolved, folder)
    if as_json:
        print_json(made._asdict() | {"folder": str(made.folder)})
        return
    click.echo(f"{made.folder}: package {made.package}, {made.problems['train']} training problems")
    if made.left_to_trainer:
        click.echo(f"Left to the trainer: {', '.join(made.left_to_trainer)}")
    click.echo(f"Install it with: pip install -e {made.folder}")


def _work(resolved: Resolved, folder: Path) -> str:
    """What an export does for most of its time."""
    data = resolved.recipe.data
    drawn = [
        f"{getattr(data, f'{role}_size'):,} {role}" for role in ("train", "dev") if not getattr(data, f"{role}_file")
    ]
    what = f"drawing {' and '.join(drawn)} problems of {resolved.recipe.env['type']}" if drawn else "reading the data"
    return f"{what} for {folder}"
