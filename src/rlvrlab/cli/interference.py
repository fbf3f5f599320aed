"""rlvr interference: what a step on one skill does to the others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console

from rlvrlab.cli.names import RUN_AT
from rlvrlab.cli.options import ACCEPT_CODE, AS_JSON
from rlvrlab.cli.printing import print_json, printable, table
from rlvrlab.errors import writing_to
from rlvrlab.shares import about, signed

if TYPE_CHECKING:
    from rlvrlab.batch import Floats
    from rlvrlab.train.interference import Interference

TITLES = {
    "interference_gradient": "Cosine of the skills' gradients",
    "interference_predicted": "Predicted change of the objective per unit of step length",
    "interference_one_update": "Measured change of the reward by one update, per unit of step length",
}
"""Name of a matrix's files -> its title."""


@click.command("interference", short_help="Measure what a step on one skill does to the others.")
@click.argument("run", type=RUN_AT, metavar="RUN[@CHECKPOINT]")
@click.option("--problems", default=32, show_default=True, type=click.IntRange(0),
              help="Training problems of each skill; 0 all.")  # fmt: skip
@click.option("--length", default=0.3, show_default=True, type=click.FloatRange(0, min_open=True),
              help="Length of the step on each skill, in parameters.")  # fmt: skip
@ACCEPT_CODE
@AS_JSON
def command(run: str, problems: int, length: float, as_json: bool) -> None:
    """Measure what a step on one skill does to the others.

    The gradient matrix (cosines, with each skill's cosine with itself as the measure of noise) and the one-update
    matrix: the policy takes a small step on each skill in turn, answers the same problems with the same random numbers,
    and goes back. Tables and pictures lie in RUN/analysis afterwards. Of a run on verl it is the merged model, all of
    whose parameters take the step, with an adapter too.

    \b
    rlvr interference latest
    rlvr interference experiments/RUN@best --problems 64
    """
    from rlvrlab.record.files import place_in
    from rlvrlab.record.final import split_run
    from rlvrlab.train.interference import interference_of

    folder, which = split_run(run)
    tables, figures = (place_in(folder, f"analysis/{below}") for below in ("tables", "figures"))
    found = interference_of(folder, which, length, problems)
    files = _write(tables, figures, found)
    if as_json:
        matrices = {name: matrix.tolist() for name, matrix in _matrices(found).items()}
        facts = {"skills": found.skills, "self_cosine": found.self_cosine_S.tolist(), "length": length}
        more = {"agreement": found.agreement._asdict(), "files": [str(file) for file in files]}
        print_json({**facts, **matrices, **more})
        return
    _show(found, files)


def _matrices(found: Interference) -> dict[str, Floats]:
    """The matrices by the names of their files."""
    every = (found.cosine_SS, found.predicted_SS, found.measured_SS)
    return dict(zip(TITLES, every, strict=True))


def _write(tables: Path, figures: Path, found: Interference) -> list[Path]:
    """A table and a picture of each matrix."""
    from rlvrlab.record.files import write_atomically
    from rlvrlab.report.story.part import as_csv, heat

    texts = {}
    for name, matrix in _matrices(found).items():
        cells = matrix.tolist()
        rows = [[a, b, cells[i][j]] for i, a in enumerate(found.skills) for j, b in enumerate(found.skills)]
        texts[tables / f"{name}.csv"] = as_csv(["step_on", "effect_on", "value"], rows)
        texts[figures / f"{name}.svg"] = heat(TITLES[name], found.skills, found.skills, cells)
    with writing_to(tables.parent, "make room in the run's folder, or let it be written to"):
        for path, text in texts.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, text)
    return list(texts)


def _show(found: Interference, files: list[Path]) -> None:
    console = Console()
    for name, matrix in _matrices(found).items():
        console.print(printable(TITLES[name]), markup=False)
        rows: list[list[object]] = [
            [printable(skill), *(signed(value, 3) for value in row)]
            for skill, row in zip(found.skills, matrix.tolist(), strict=True)
        ]
        console.print(table(("step on", *map(printable, found.skills)), rows))
    own = ", ".join(f"{skill} {signed(value)}" for skill, value in zip(found.skills, found.self_cosine_S, strict=True))
    click.echo(printable(f"each skill's gradient with itself (two halves of its problems; near 0 is noise): {own}"))
    rank, sign, pairs = found.agreement
    click.echo(f"prediction and measurement: rank correlation {rank:.2f}, same sign in {about(sign)} of {pairs} pairs")
    click.echo(printable(f"{len(files)} files in {files[0].parent.parent}"))
