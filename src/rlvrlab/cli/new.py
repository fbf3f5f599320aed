"""rlvr new env NAME: a working environment in one file, to be changed line by line."""

from __future__ import annotations

import re
from pathlib import Path

import click

from rlvrlab.cli.options import AS_JSON
from rlvrlab.cli.printing import print_json
from rlvrlab.errors import UserError
from rlvrlab.registry import names

NAME = re.compile(r"[a-z][a-z0-9_]{0,59}")
TEMPLATE = Path(__file__).parent / "templates" / "env.py.txt"
RECIPE = Path(__file__).parent / "templates" / "recipe.toml.txt"


@click.group("new", short_help="Write the skeleton of an environment.")
def command() -> None:
    """Write the skeleton of an environment."""


@command.command("env")
@click.argument("name")
@AS_JSON
def env(name: str, as_json: bool) -> None:
    """Write NAME.py and NAME.toml here: an environment that passes its own check, and a recipe that trains on it."""
    if not NAME.fullmatch(name):
        raise UserError(f"{name!r} cannot name an environment; use up to 60 lower-case letters, digits and _")
    class_name = "".join(part.capitalize() for part in name.split("_"))
    if name in names("env") or re.search(rf"\b{class_name}\b", TEMPLATE.read_text(encoding="utf-8")):
        raise UserError(f"{name!r} is taken; choose another name")
    files = {f"{name}.py": TEMPLATE, f"{name}.toml": RECIPE}
    taken = [file for file in files if Path(file).exists()]
    if taken:
        raise UserError(f"{', '.join(taken)} already here; move it away or choose another name")
    for file, template in files.items():
        text = template.read_text(encoding="utf-8").replace("NAME", name).replace("CLASS", class_name)
        try:
            Path(file).write_text(text, encoding="utf-8")
        except OSError as error:
            raise UserError(f"{file} cannot be written here ({error.strerror}); go to another folder") from None
    if as_json:
        print_json({"written": list(files), "class": class_name})
        return
    click.echo(f"wrote {name}.py and {name}.toml; next:")
    click.echo(f"  rlvr check env {name}.py:{class_name}")
    click.echo(f"  rlvr train {name}.toml")
