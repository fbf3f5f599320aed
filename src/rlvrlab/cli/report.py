"""rlvr report: one page to look at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rlvrlab.cli.names import RUN_OR_OTHER
from rlvrlab.cli.options import AS_JSON
from rlvrlab.cli.printing import print_json, printable
from rlvrlab.errors import LabError, UserError, and_more, writing_to

if TYPE_CHECKING:
    from rlvrlab.report.gather import Document

MISSING_SHOWN = 10


@click.command("report", short_help="Write one HTML page to look at.")
@click.argument("paths", nargs=-1, required=True, type=RUN_OR_OTHER)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="The page [PATH/analysis/report.html].")
@click.option("--figures", is_flag=True, help="Also figures for papers: SVG, PDF, PNG.")
@click.option("--page-only", is_flag=True, help="No CSV tables beside it.")
@AS_JSON
def command(paths: tuple[str, ...], output: Path | None, figures: bool, page_only: bool, as_json: bool) -> None:
    """Write one HTML page to look at.

    PATH is a run, an evaluation, a suite, a study, a probe or a data audit. Several runs, or several evaluations,
    are put side by side: what differs in the recipe, and whether the result differs beyond chance. The page needs no
    network. Beside it lie tables (CSV). Figures need `pip install 'rlvrlab[figures]'`.

    \b
    rlvr report experiments/my_run_…
    rlvr report experiments/my_run_… --figures
    rlvr report experiments/base_… experiments/changed_… -o comparison.html
    rlvr report evaluations/base evaluations/trained -o comparison.html
    """
    from rlvrlab.record.run import no_run
    from rlvrlab.report.csv_tables import write_tables
    from rlvrlab.report.figures import available, write_figures
    from rlvrlab.report.gather import kind_of
    from rlvrlab.report.page import page
    from rlvrlab.report.page_file import gathered_for, usual_page

    places = [Path(path) for path in paths]
    for empty in (one for one in places if kind_of(one) == "empty"):  # a server shows it: a run may begin there
        raise no_run(empty)
    if figures and not available():  # said before anything is written
        raise UserError("--figures: the package that draws them is not installed; `pip install 'rlvrlab[figures]'`")
    target = output or (usual_page(places[0]) if len(places) == 1 else Path("comparison.html"))
    document = gathered_for(places, target)
    if target.is_dir():
        raise UserError(f"{target}: a folder; name the file, e.g. -o {target / 'report.html'}")
    text = page(document)
    _write(target, text)
    beside = target.parent if output is None and len(places) == 1 else target.with_name(f"{target.stem}_files")
    files: list[Path] = []
    if not page_only:
        files += _attempted(document, beside / "tables", lambda folder: write_tables(document, places, folder))
    if figures:
        files += _attempted(document, beside / "figures", lambda folder: write_figures(document, folder))
    size = len(text.encode())
    if as_json:
        ids = [section["id"] for section in document["sections"]]
        facts = {"kind": document["kind"], "title": document["title"], "status": document["status"]}
        more = {"sections": ids, "missing": document["missing"], "files": [str(file) for file in files]}
        print_json({"report": str(target), "bytes": size, **facts, **more})
    else:
        _tell(target, size, document, files)


def _attempted(document: Document, folder: Path, write: Callable[[Path], list[Path]]) -> list[Path]:
    """The page is written by now: what cannot be drawn beside it is named, not fatal."""
    from rlvrlab.record.files import place_in

    try:
        return write(place_in(folder.parent, folder.name))
    except (LabError, OSError, ValueError, KeyError, TypeError) as error:
        why = f"could not be written ({type(error).__name__}: {error})"
        document["missing"].append({"what": folder.name, "why": why})
        return []


def _write(target: Path, text: str) -> None:
    from rlvrlab.record.files import write_atomically

    with writing_to(target, "choose another place with -o FILE"):
        target.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(target, text)


def _tell(target: Path, size: int, document: Document, files: Sequence[Path]) -> None:
    parts, megabytes = len(document["sections"]), size / 1e6
    click.echo(printable(f"{document['kind']} {document['title']}: {parts} parts, {megabytes:.1f} MB"))
    for one in document["missing"][:MISSING_SHOWN]:
        click.secho(printable(f"  missing {one['what']}: {one['why']}"), fg="yellow")
    if more := and_more(len(document["missing"]), MISSING_SHOWN):
        click.secho(f"  {more}, listed in the page", fg="yellow")
    folders = Counter(file.parent for file in files)
    for folder, count in folders.items():
        click.echo(printable(f"{folder.name}: {count} files in {folder}"))
    click.echo(printable(f"report: {target}"))
