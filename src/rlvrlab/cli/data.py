"""rlvr data: make, prepare and audit problems, and look at them."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from rlvrlab.cli.check import built
from rlvrlab.cli.data_audit import audit, manifest
from rlvrlab.cli.data_prepare import prepare
from rlvrlab.cli.data_preview import preview
from rlvrlab.cli.names import refuse_unknown
from rlvrlab.cli.options import AS_JSON
from rlvrlab.cli.printing import CountLines, print_json
from rlvrlab.notes import counted, counting
from rlvrlab.plain_files import refuse_taken


@click.group("data", short_help="Make, prepare, audit and look at data.")
def command() -> None:
    """Make, prepare, audit and look at data."""


for verb in (prepare, audit, manifest, preview):
    command.add_command(verb)


@command.command("make")
@click.argument("env")
@click.argument("keys", nargs=-1, type=click.UNPROCESSED)
@click.option("--size", default=1000, show_default=True, type=click.IntRange(1), help="How many problems.")
@click.option("--role", type=click.Choice(["train", "dev", "test"]), default="train", show_default=True)
@click.option("--seed", default=0, show_default=True)
@click.option("--levels", type=click.IntRange(1), help="Levels 1 … N, for environments with a key `levels`.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="FILE.jsonl or FILE.parquet.")
@AS_JSON
def make(
    env: str, keys: tuple[str, ...], size: int, role: str, seed: int, levels: int | None, output: Path | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Write problems of an environment in verl's row shape.

    \b
    rlvr data make countdown --size 2000 -o countdown.parquet
    rlvr data make graph workers=2 --levels 5 --size 90000 -o graph.jsonl
    """
    from rlvrlab.data.rows import refuse_ending, write_problems

    if levels:
        keys = (*keys, f"levels={list(range(1, levels + 1))}")
    target = output or Path(f"{env}_{role}.jsonl")
    refuse_ending(target)
    refuse_taken(target)
    refuse_unknown(env)
    shown = Console(stderr=True).status(f"making {size} problems of {env}")
    with shown, counting(CountLines().show), counted(f"{role} problems", size):
        problems = built("env", env, keys).problems(role, size, seed)
    written = write_problems(target, problems)
    if as_json:
        print_json({"file": str(target), "problems": written, "environment": env, "role": role, "seed": seed})
    else:
        click.echo(f"{target}: {written} problems ({role})")
