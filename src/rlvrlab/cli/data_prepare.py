"""rlvr data prepare: a data set, an environment, a file or a run becomes files with roles and manifests."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from rlvrlab.cli.check import built
from rlvrlab.cli.names import refuse_unknown, run_folder
from rlvrlab.cli.options import AS_JSON
from rlvrlab.cli.printing import print_json, printable
from rlvrlab.errors import UnknownName, UserError
from rlvrlab.notes import FOUND, PROGRESS, noting
from rlvrlab.plain_files import refuse_taken
from rlvrlab.registry import names

if TYPE_CHECKING:
    from rlvrlab.data.prepare import Prepared


@click.command("prepare")
@click.argument("what")
@click.argument("keys", nargs=-1, type=click.UNPROCESSED)
@click.option("--from", "origin", type=click.Path(path_type=Path), help="Your copy of a known set: a file or folder.")
@click.option("--env", "env_name",
              help="Who judges a file of your own; of a known set, another skill, e.g. code_repair.")  # fmt: skip
@click.option("--role", type=click.Choice(["train", "dev", "test", "split"]),
              help="For a file of your own; split: by content, 8 to 1 to 1.")  # fmt: skip
@click.option("--near", type=click.FloatRange(0.2, 1), metavar="JACCARD",
              help="Drop train and dev prompts this much like another; the audit calls 0.5 near.")  # fmt: skip
@click.option("--against", multiple=True, type=click.Path(path_type=Path), metavar="FILE",
              help="With --near: also what is like a problem of this prepared file; again for more.")  # fmt: skip
@click.option("--to", type=click.Choice(["jsonl", "parquet", "trl"]), default="jsonl", show_default=True)
@click.option("--size", type=click.IntRange(1),
              help="Training problems to make [2000, or the set's]; a tenth of it dev and test.")  # fmt: skip
@click.option("--seed", default=0, show_default=True, help="For problems that are made.")
@click.option("--as", "shape", type=click.Choice(["sft", "preference"]), help="For a run folder: what to make of it.")
@click.option("--by", type=click.Choice(["right", "score"]), default="right", show_default=True,
              help="Preference pairs: right against wrong, or more tests passed against fewer.")  # fmt: skip
@click.option(
    "--margin", default=0.0, show_default=True, type=click.FloatRange(0, 1), help="Least gap, with --by score."
)
@click.option("--per-problem", default=4, show_default=True, type=click.IntRange(1),
              help="For a run folder: rows per problem at most.")  # fmt: skip
@click.option("-o", "--output", type=click.Path(path_type=Path), default=Path("data"), show_default=True)
@AS_JSON
def prepare(
    what: str, keys: tuple[str, ...], origin: Path | None, env_name: str | None, role: str | None, near: float | None,
    against: tuple[Path, ...], to: str, size: int | None,
    seed: int, shape: str | None, by: str, margin: float, per_problem: int, output: Path, as_json: bool,
) -> None:  # fmt: skip
    """Write a data set in verl's row shape, split by role, with manifests.

    WHAT is a known set, an environment, a recipe, a file, or a run folder. KEYS set the environment's own, or the
    recipe's. Of a recipe, the very rows are written that `rlvr train` would train on and examine.

    \b
    rlvr data prepare gsm8k style=think
    rlvr data prepare humaneval --from HumanEval.jsonl.gz --to parquet
    rlvr data prepare my.csv --env math --role split
    rlvr data prepare hub:OWNER/NAME@train --env answers --role split matcher=number
    rlvr data prepare mbpp --env code_repair bugs=2
    rlvr data prepare mbpp --near 0.5 --against data/humaneval_test.jsonl
    rlvr data prepare graph --size 45000
    rlvr data prepare verl_countdown --to parquet
    rlvr data prepare experiments/RUN --as preference
    """
    from rlvrlab.data import prepare as preparing
    from rlvrlab.data.own_runs import is_run
    from rlvrlab.data.rows import read_problems

    if against and near is None:
        raise UserError("--against belongs to --near; say how much alike is too much, e.g. --near 0.5")
    run = run_folder(what) if shape else Path(what)
    if is_run(run):
        _prepare_run(run, shape, {"per_problem": per_problem, "by": by, "margin": margin}, output, as_json)
        return
    if shape:
        raise UserError(f"--as is for run folders; {what} is none (no config.json and rollouts/ in it)")
    screen = Console(stderr=True)

    def heard(kind: str, words: str) -> None:
        if kind in (PROGRESS, FOUND):
            screen.print(printable(words), markup=False, soft_wrap=True)

    with screen.status(f"preparing {what}"), noting(heard):
        prepared = _prepared(what, keys, origin, env_name, role, size, seed)
        if near is not None:
            prepared.leave_out_near(near, [problem for path in against for problem in read_problems(path)])
        prepared.leave_out_bad_tasks()
        files = preparing.write(prepared, output, to)  # type: ignore[arg-type]
    if as_json:
        rows = {role: len(problems) for role, problems in prepared.problems.items()}
        print_json({"name": prepared.name, "files": [str(path) for path in files], "rows": rows,
                    "duplicates_dropped": len(prepared.duplicates), "left_out": prepared.left_out,
                    "near_duplicates_dropped": len(prepared.near), "bad_tasks": prepared.bad_tasks,
                    "raw": prepared.raw})  # fmt: skip
    else:
        click.echo(prepared.summary())
        for path in files:
            click.echo(f"  {path}")


def _prepared(
    what: str, keys: tuple[str, ...], origin: Path | None, env_name: str | None, role: Any, size: int | None, seed: int
) -> Prepared:
    from rlvrlab.data import prepare as preparing
    from rlvrlab.data.presets import PRESETS, Preset
    from rlvrlab.data.sources import HUB, file_rows, hub_rows, local_copy
    from rlvrlab.envs.data_files import bare_name
    from rlvrlab.recipe.shipped import ENDING, named_file

    path = Path(what)
    if path.suffix == ENDING or (what not in PRESETS and what not in names("env") and named_file(path)):
        if origin or env_name or role or size:
            raise UserError(f"{what}: a recipe says itself what its data are; change data.train_size=… and env keys")
        return _recipes_own(path, keys)
    if path.is_file() or what.startswith(HUB):
        if env_name is None:
            raise UserError(
                f"{what}: which environment judges it? give --env, one of: {', '.join(preparing.row_readers())}"
            )
        name, rows = hub_rows(what) if what.startswith(HUB) else (bare_name(path), file_rows(path))
        return preparing.from_rows(name, rows, built("env", env_name, keys), role)
    if role:
        raise UserError(f"--role is for files; {what} is none")
    preset = PRESETS.get(what)
    size = size or (preset.made_size if preset else Preset.made_size)
    made = {"train": size, "dev": max(1, size // 10), "test": max(1, size // 10)}
    if env_name and preset is None:
        raise UserError(f"--env is for files and known sets; {what} is neither")
    if preset is None and what in names("env"):
        return preparing.from_environment(what, built("env", what, keys), made, seed)  # type: ignore[arg-type]
    if preset is None:
        refuse_unknown(what)
        raise UnknownName("data set, environment, file or run folder", what, [*PRESETS, *names("env")])
    if preset.folder_key:
        origin = origin or local_copy(what, preset)
        if origin is None:
            raise UserError(f"{what}: give your copy, {preset.note}")
        keys = (*keys, f"{preset.folder_key}={origin}")
    env = built("env", env_name or preset.env, (*(f"{key}={value}" for key, value in preset.keys.items()), *keys))
    if env_name and env_name != preset.env:
        copied = replace(preset, file=preset.file or what)  # the same files under another name
        return preparing.from_preset(f"{what}_{env_name}", copied, env, origin)
    if preset.made and origin is None:
        return preparing.from_environment(what, env, made, seed)  # type: ignore[arg-type]
    return preparing.from_preset(what, preset, env, origin)


def _recipes_own(path: Path, overrides: tuple[str, ...]) -> Prepared:
    """What a recipe trains on, chooses its checkpoint by and is examined on."""
    from rlvrlab.data import prepare as preparing
    from rlvrlab.recipe import load_recipe

    resolved = load_recipe(path, overrides)
    recipe = resolved.recipe
    if recipe.data.train_file or recipe.data.dev_file:
        raise UserError(f"{path}: its data are files already ({recipe.data.train_file or recipe.data.dev_file})")
    sizes = {"train": recipe.data.train_size, "dev": recipe.data.dev_size, "test": recipe.eval.test_size}
    return preparing.from_environment(recipe.name, resolved.build("env"), sizes, recipe.data.seed)  # type: ignore[arg-type]


def _prepare_run(folder: Path, shape: str | None, rule: dict[str, Any], output: Path, as_json: bool) -> None:
    from rlvrlab.data.files import write_lines
    from rlvrlab.data.loading import protected_prompts
    from rlvrlab.data.own_runs import rows_from_run

    if shape is None:
        raise UserError(f"{folder} is a run folder; say --as sft or --as preference")
    target = output / f"{folder.name}_{shape}.jsonl"
    refuse_taken(target)
    rows = rows_from_run(folder, shape, protected=protected_prompts(output), **rule)  # type: ignore[arg-type]
    write_lines(target, (json.dumps(row, ensure_ascii=False) for row in rows))
    if as_json:
        print_json({"file": str(target), "rows": len(rows), "shape": shape})
    else:
        click.echo(f"{target}: {len(rows)} rows ({shape})")
