"""The page of a folder as a file: where it lies, and what it is made of."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from rlvrlab.record.experiment import REPORT_PAGE
from rlvrlab.record.files import place_in, write_atomically
from rlvrlab.report.gather import Document, gather


def usual_page(place: Path) -> Path:
    """Where the page of a folder lies unless somebody says otherwise; of a file, beside it."""
    if place.is_file():
        return place.with_suffix(".html")
    return place_in(place, REPORT_PAGE.parent) / REPORT_PAGE.name


def gathered_for(places: Sequence[Path], target: Path) -> Document:
    """Everything there is to show about the places, for a page at the target: links of one place lead from there."""
    document = gather(places)
    if len(places) == 1:
        folder = places[0] if places[0].is_dir() else places[0].parent
        document["base"] = Path(os.path.relpath(folder.resolve(), target.resolve().parent)).as_posix()
    return document


def write_page(place: Path) -> Path:
    """Write the page of one folder to where it usually lies."""
    from rlvrlab.report.page import page

    target = usual_page(place)
    text = page(gathered_for([place], target))
    target.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(target, text)
    return target
