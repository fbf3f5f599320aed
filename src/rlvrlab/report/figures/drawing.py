"""Figures for papers from a gathered document: Vega-Lite specifications, drawn offline as SVG, PNG and PDF.

    document = gather(Path("experiments/my_run_…"))
    write_figures(document, Path("figures"))           learning_curve.svg, .png, .pdf, .vl.json, …

The specification is written too: it holds the numbers, and every Vega-Lite tool can draw it another way.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rlvrlab.errors import UserError
from rlvrlab.evals.compare import PLAIN
from rlvrlab.plain_files import file_stem, write_whole
from rlvrlab.report.figures import charts
from rlvrlab.report.figures.style import Spec

FORMATS = ("svg", "png", "pdf")
PPI = 300
"""Resolution of PNG files, in pixels per inch."""


def available() -> bool:
    """Whether the drawing package (vl-convert) is installed."""
    return find_spec("vl_convert") is not None


def figures_of(document: Mapping[str, Any]) -> dict[str, Spec]:
    """File name -> specification, for each section of the document that makes a figure."""
    specs: dict[str, Spec] = {}
    for section in document.get("sections", []):
        for name, spec in _section_figures(section).items():
            if spec is not None:
                specs[_free(name, specs)] = spec
    return specs


def draw(spec: Spec, form: str) -> bytes:
    """One figure as svg, png or pdf; nothing is fetched from anywhere."""
    if not available():
        raise UserError("figures: need vl-convert-python; `pip install 'rlvrlab[figures]'`")
    import vl_convert

    svg: str = vl_convert.vegalite_to_svg(vl_spec=spec, allowed_base_urls=[])
    if form == "svg":
        return svg.encode()
    if form == "png":
        return bytes(vl_convert.svg_to_png(svg, ppi=PPI))
    if form == "pdf":
        return bytes(vl_convert.svg_to_pdf(svg))
    raise UserError(f"figures: no format {form!r}; allowed: {', '.join(FORMATS)}")


def write_figures(document: Mapping[str, Any], folder: Path, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Every figure of a document, in every format, with its specification beside it."""
    written = []
    for name, spec in figures_of(document).items():
        folder.mkdir(parents=True, exist_ok=True)
        files = {f"{name}.vl.json": json.dumps(spec, ensure_ascii=False, indent=1).encode()}
        files |= {f"{name}.{form}": draw(spec, form) for form in formats}
        for file, content in files.items():
            written.append(folder / file)
            write_whole(written[-1], content)
    return written


def _section_figures(section: Mapping[str, Any]) -> dict[str, Spec | None]:
    """File name -> figure for one section; which figures there are depends on the section's view."""
    view, note = section.get("view"), section.get("note", "")
    data: Any = section.get("data")
    stem = file_stem(str(section.get("id")), "figure")
    if view == "curves":
        skills = charts.small_multiples(data.get("skills", []), "accepted@1 on dev problems", note)
        return {"learning_curve": charts.learning_curve(data, note), "skills": skills}
    if view == "passk":
        return {"pass_at_k": charts.pass_at_k(data, note)}
    if view == "forgetting":
        return {"forgetting": charts.forgetting(data, note)}
    if view == "matrix":
        return {stem: charts.matrix(data, note)}
    if view == "pareto":
        return {stem: charts.pareto(data, note)}
    if view in ("grid", "phases"):
        # The cards of phases are shares in every column; a study's columns are different metrics.
        return {stem: charts.dots(data, note, shared=section["id"] == "phases")}
    if view == "paired":
        rows = [
            {"label": row.get("what"), **row.get("difference", {})}
            for table in data.get("tables", [])
            for row in table.get("rows", [])
            if row.get("what") not in PLAIN  # neither good nor bad, and on another scale
        ]
        names = data.get("names", ["before", "after"])
        return {"paired": charts.forest(_with_numbers(rows), f"{names[-1]} − {names[0]}", note)}
    figures: dict[str, Spec | None] = {}
    for decision in data if view == "decisions" else ():  # one figure each per metric: what was chosen against what
        compared = [{**c, "label": f"{c.get('arm')} − {c.get('versus')}"} for c in decision.get("comparisons", [])]
        stage = file_stem(str(decision.get("stage") or "study"), "stage")
        for metric in dict.fromkeys(str(row.get("metric")) for row in compared):
            of_metric = _with_numbers([row for row in compared if str(row.get("metric")) == metric])
            name = _free(f"decision_{stage}_{file_stem(metric, 'metric')}", figures)
            figures[name] = charts.forest(of_metric, f"difference of {metric}", str(decision.get("words", "")))
    return figures


def _with_numbers(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The rows whose mean and both bounds are numbers."""
    keys = ("mean", "low", "high")
    return [dict(row) for row in rows if all(isinstance(row.get(key), int | float) for key in keys)]


def _free(name: str, taken: Mapping[str, Any]) -> str:
    """`name`, or `name_2`, `name_3`, … where it is taken."""
    number, free = 2, name
    while free in taken:
        free, number = f"{name}_{number}", number + 1
    return free
