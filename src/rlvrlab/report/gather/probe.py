"""A probe's folder: is there signal to train on?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rlvrlab.report.gather.figures import signal_section
from rlvrlab.report.reading import Fact, Folder, Section, document, place, rounded, section, words

TILES = ("accuracy", "variance", "mixed", "truncated", "format_rate", "entropy")


def gather_probe(path: Path) -> dict[str, Any]:
    """The document of one probe's folder."""
    folder = Folder(path)
    probe = folder.table("probe.json")
    asked = {key: value for key, value in probe.items() if key not in ("problems", "lines", "total", "useful")}
    sections = [
        *folder.attempt("verdict", lambda: _verdict(probe)),
        *folder.attempt("signal", lambda: _scatter(probe)),
        *folder.attempt("skills and levels", lambda: _lines(probe)),
        section("facts", "facts", "What was asked", asked, "probe.json"),
    ]
    title = f"Probe of {words(probe.get('environment') or path.resolve().name, 60)}"
    told, status = f"{words(probe.get('n', '?'), 20)} answers per problem", words(probe.get("verdict") or "unknown", 40)
    return document(folder, "probe", title, sections, subtitle=told, status=status)


def _tile(name: str, value: Any) -> Fact | None:
    if not isinstance(value, dict):
        return None
    numbers = {key: rounded(value.get(key)) for key in ("value", "low", "high")}
    plain = name in ("variance", "entropy")
    return {"name": name.replace("_", " "), **numbers, "plain": plain, "from": place("probe.json", key=f"total.{name}")}


def _verdict(probe: dict[str, Any]) -> Section | None:
    total = probe.get("total")
    if not isinstance(total, dict):
        return None
    tiles = [tile for name in TILES if (tile := _tile(name, total.get(name))) is not None]
    for one in probe.get("useful") or ():
        name = f"{'≥ ' if one.get('at_least') else ''}useful groups of {one.get('n')}"
        numbers = {key: rounded(one.get(key)) for key in ("value", "low", "high")}
        tiles.append({"name": name, **numbers, "from": place("probe.json", key="useful")})
    notes = [words(note, 500) for note in probe.get("notes") or ()]
    data = {
        "tiles": tiles,
        "findings": [words(probe.get("why") or "", 500), *notes],
        "unjudged": total.get("unjudged"),
        "problems": total.get("problems"),
        "samples": None,
        "bounds": [None, None],
        "by": [],
        "source": "probe.json",
    }
    return section("overview", "summary", f"Verdict: {words(probe.get('verdict') or '?', 40)}", data, "probe.json")


def _scatter(probe: dict[str, Any]) -> Section | None:
    points = [
        {"x": rounded(p.get("accuracy"), 4), "y": rounded(p.get("variance"), 4), "name": words(p.get("id") or "?", 200),
         "group": " level ".join(words(p.get(k), 60) for k in ("skill", "level") if p.get(k) not in (None, "–", ""))}
        for p in probe.get("problems") or ()
        if isinstance(p, dict)
    ]  # fmt: skip
    if not points:
        return None
    return signal_section(points, "problem", "One dot per problem.", "probe.json")


def _lines(probe: dict[str, Any]) -> Section | None:
    lines = [line for line in probe.get("lines") or () if isinstance(line, dict)]
    if len(lines) < 2:
        return None
    names = [name for name in TILES if any(isinstance(line.get(name), dict) for line in lines)]
    cells = [[_tile(name, line.get(name)) or {"value": None} for name in names] for line in lines]
    rows = [
        f"{words(line.get('skill'), 60)} · level {words(line.get('level'), 20)} ({line.get('problems')})"
        for line in lines
    ]
    data = {"columns": [name.replace("_", " ") for name in names], "rows": rows, "cells": cells}
    return section("lines", "grid", "Skills and levels", data, "probe.json")
