"""Figures for papers from a gathered document: Vega-Lite specifications, drawn offline as SVG, PNG and PDF.

    document = gather(Path("experiments/my_run_…"))
    write_figures(document, Path("figures"))           learning_curve.svg, .png, .pdf, .vl.json, …

The specification is written too: it holds the numbers, and every Vega-Lite tool can draw it another way.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rlvrlab.errors import UserError
from rlvrlab.report.figures import charts
from rlvrlab.report.figures.style import Spec
from rlvrlab.report.names import file_stem

FORMATS = ("svg", "png", "pdf")
PPI = 300
"""Of PNG files."""


def available() -> bool:
    """Is the drawing package installed?"""
    return find_spec("vl_convert") is not None


def figures_of(document: Mapping[str, Any]) -> dict[str, Spec]:
    """File name -> specification, for each section of the document that makes a figure."""
    found: dict[str, Spec] = {}
    for section in document.get("sections", []):
        make = _MAKERS.get(section.get("view"))
        for name, spec in (make(section) if make else {}).items():
            if spec is not None:
                found[_free(name, found)] = spec
    return found


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
            (folder / file).write_bytes(content)
            written.append(folder / file)
    return written


def _curves(section: Mapping[str, Any]) -> dict[str, Spec | None]:
    data, note = section["data"], section.get("note", "")
    return {
        "learning_curve": charts.learning_curve(data, note),
        "skills": charts.small_multiples(data.get("skills", []), "held-out accuracy", note),
    }


def _decisions(section: Mapping[str, Any]) -> dict[str, Spec | None]:
    """Each decision's comparisons: what was chosen against what, and by how much."""
    found: dict[str, Spec | None] = {}
    for decision in section["data"]:
        rows = [{**c, "label": f"{c.get('arm')} − {c.get('versus')}"} for c in decision.get("comparisons", [])]
        by_metric = dict.fromkeys(str(row.get("metric")) for row in rows)
        for metric in by_metric:
            mine = [row for row in rows if str(row.get("metric")) == metric]
            stage = file_stem(str(decision.get("stage") or "study"), "stage")
            name = _free(f"decision_{stage}_{file_stem(metric, 'metric')}", found)
            found[name] = charts.forest(_numbers(mine), f"difference of {metric}", str(decision.get("words", "")))
    return found


def _paired(section: Mapping[str, Any]) -> dict[str, Spec | None]:
    rows = [
        {"label": row.get("what"), **row.get("difference", {})}
        for table in section["data"].get("tables", [])
        for row in table.get("rows", [])
        if row.get("what") not in ("gen_tokens", "avg_entropy")  # neither good nor bad, and on another scale
    ]
    names = section["data"].get("names", ["before", "after"])
    return {"paired": charts.forest(_numbers(rows), f"{names[-1]} − {names[0]}", section.get("note", ""))}


def _numbers(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Only those whose three numbers are numbers."""
    keys = ("mean", "low", "high")
    return [dict(row) for row in rows if all(isinstance(row.get(key), int | float) for key in keys)]


def _grid(section: Mapping[str, Any]) -> dict[str, Spec | None]:
    phases = section["id"] == "phases"  # shares in every column; a study's columns are different metrics
    return {_stem(section): charts.dots(section["data"], section.get("note", ""), shared=phases)}


def _single(
    name: str, chart: Callable[[Mapping[str, Any], str], Spec | None]
) -> Callable[[Any], dict[str, Spec | None]]:
    return lambda section: {name: chart(section["data"], section.get("note", ""))}


_MAKERS: dict[str, Callable[[Mapping[str, Any]], dict[str, Spec | None]]] = {
    "curves": _curves,
    "passk": _single("pass_at_k", charts.pass_at_k),
    "forgetting": _single("forgetting", charts.forgetting),
    "matrix": lambda section: {
        file_stem(section["id"], "figure"): charts.matrix(section["data"], section.get("note", ""))
    },
    "pareto": lambda section: {
        file_stem(section["id"], "figure"): charts.pareto(section["data"], section.get("note", ""))
    },
    "decisions": _decisions,
    "paired": _paired,
    "grid": _grid,
}
"""A section's view -> the figures it makes."""


def _stem(section: Mapping[str, Any]) -> str:
    return file_stem(str(section["id"]), "figure")


def _free(name: str, taken: Mapping[str, Any]) -> str:
    number, free = 2, name
    while free in taken:
        free, number = f"{name}_{number}", number + 1
    return free
