"""Figures for papers and CSV tables: made from gathered documents, drawn by the real Vega-Lite."""

from __future__ import annotations

import csv
import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from run_folders import lines, made_evaluation, made_run, metrics_row

from rlvrlab.errors import UserError
from rlvrlab.report.csv_tables import write_tables
from rlvrlab.report.figures import charts, draw, drawing, figures_of, write_figures
from rlvrlab.report.gather import gather


def cell(value: float, half: float | None) -> dict[str, Any]:
    bounds = {"low": None, "high": None} if half is None else {"low": value - half, "high": value + half}
    return {"value": value, **bounds, "n": 3}


DOCUMENT: dict[str, Any] = {
    "sections": [
        {"view": "curves", "id": "curves", "note": "the band is the range over seeds", "data": {
            "main": {"name": "accuracy", "series": [
                {"name": "grpo", "x": [0, 5, 9], "y": [0.0, 0.4, 0.8], "low": [0.0, 0.3, 0.7], "high": [0.1, 0.5, 0.9]},
                {"name": "dr_grpo", "x": [0, 5, 10], "y": [0.0, 0.5, 0.6]}]},
            "skills": [{"name": skill, "series": [{"name": skill, "x": [0, 10], "y": [0.1, 0.9]}]} for skill in "ab"],
            "marks": [{"x": 0, "name": "sft"}, {"x": 5, "name": "grpo"}]}},
        {"view": "passk", "id": "passk", "note": "", "data": {"curves": [
            {"name": "base", "x": [1, 2, 8], "y": [0.1, 0.2, 0.3], "low": [0.0, 0.1, 0.2], "high": [0.2, 0.3, 0.4]}]}},
        {"view": "matrix", "id": "interference", "note": "", "data": {
            "rows": ["add", "sort"], "columns": ["add", "sort"], "row_title": "trained on",
            "column_title": "success on",
            "cells": [[cell(0.5, 0.1), cell(-0.02, 0.1)], [cell(-0.3, 0.1), cell(0.4, None)]]}},
        {"view": "pareto", "id": "pareto", "note": "", "data": {
            "x_title": "learning", "y_title": "kept", "points": [
                {"name": f"safe ε={e}", "group": "safe", "front": e > 0, "x": cell(e, 0.1), "y": cell(0.9 - e, 0.1)}
                for e in (0.0, 0.1, 0.2)]}},
        {"view": "decisions", "id": "decisions", "note": "", "data": [
            {"stage": "reward", "words": "partial was chosen", "comparisons": [
                {"metric": "acc", "arm": "partial", "versus": "binary", "mean": 0.1, "low": 0.02, "high": 0.18},
                {"metric": "acc", "arm": "partial", "versus": "none", "mean": 0.01, "low": -0.02, "high": 0.04},
                {"metric": "acc", "arm": "partial", "versus": "odd", "mean": "?", "low": None, "high": None}]}]},
        {"view": "forgetting", "id": "forgetting", "note": "", "data": {"marks": [], "curves": [
            {"name": "add", "x": [0, 5, 9], "y": [0.1, 0.9, 0.4], "peak": [5, 0.9]}]}},
        {"view": "unknown", "id": "x", "data": {}},
    ]
}  # fmt: skip
NAMES = ["learning_curve", "skills", "pass_at_k", "interference", "pareto", "decision_reward_acc", "forgetting"]


def test_each_view_makes_its_figure() -> None:
    assert list(figures_of(DOCUMENT)) == NAMES
    assert figures_of({}) == {}


@pytest.fixture(scope="module")
def drawn() -> dict[str, ET.Element]:
    pytest.importorskip("vl_convert", reason="figures need vl-convert-python: pip install 'rlvrlab[figures]'")
    return {name: ET.fromstring(draw(spec, "svg")) for name, spec in figures_of(DOCUMENT).items()}


def texts(svg: ET.Element) -> list[str]:
    return [one.text or "" for one in svg.iter("{http://www.w3.org/2000/svg}text")]


def marks(svg: ET.Element, kind: str) -> list[ET.Element]:
    """What a mark drew: the paths below its groups, axes and legends left out."""
    groups = [one for one in svg.iter() if f"mark-{kind} role-mark" in one.get("class", "")]
    return [path for group in groups for path in group]


@pytest.mark.slow
def test_a_learning_curve_has_lines_a_band_points_and_its_words(drawn) -> None:
    svg = drawn["learning_curve"]
    assert len(marks(svg, "line")) == 2 and len(marks(svg, "symbol")) == 6
    bands = [one for one in marks(svg, "area") if one.get("d")]
    assert len(bands) == 1  # the second arm has one seed and no interval
    assert {"step", "accepted@1 on dev problems", "grpo", "dr_grpo", "sft"} <= set(texts(svg))
    assert any("%" in text for text in texts(svg))


@pytest.mark.slow
def test_a_matrix_greys_what_is_not_shown(drawn) -> None:
    svg = drawn["interference"]
    assert {"+0.50", "−0.30", "[+0.40, +0.60]", "−0.02", "trained on", "success on"} <= set(texts(svg))
    fills = [one.get("fill") for one in marks(svg, "rect")]
    assert len(fills) == 4 and fills.count("#d9d9d9") == 2  # the interval holds 0; no interval at all


@pytest.mark.slow
def test_a_forest_shows_intervals_against_zero(drawn) -> None:
    svg = drawn["decision_reward_acc"]
    assert {"partial − binary", "partial − none"} <= set(texts(svg)) and "partial − odd" not in texts(svg)
    assert len(marks(svg, "symbol")) == 2 and len(marks(svg, "rule")) == 3  # two intervals and the zero
    assert [one.get("fill") for one in marks(svg, "symbol")] == ["#0072b2", "white"]


@pytest.mark.slow
def test_pareto_pass_at_k_and_skills(drawn) -> None:
    assert {"learning", "kept", "safe ε=0.1", "safe ε=0.2"} <= set(texts(drawn["pareto"]))
    assert "safe ε=0.0" not in texts(drawn["pareto"])  # dominated: only its point
    assert len(marks(drawn["pareto"], "rule")) == 6
    assert {"1", "2", "8", "k", "pass@k"} <= set(texts(drawn["pass_at_k"]))
    assert {"a", "b"} <= set(texts(drawn["skills"])) and len(marks(drawn["skills"], "line")) == 2


@pytest.mark.slow
def test_figures_fit_a_papers_column_and_can_be_read(drawn) -> None:
    for name in ("learning_curve", "pass_at_k", "pareto"):
        assert 234 <= float(drawn[name].get("width")) <= 290
    for name, svg in drawn.items():
        sizes = {float(one.get("font-size", "9").removesuffix("px")) for one in svg.iter() if one.get("font-size")}
        assert min(sizes) >= 6, name


@pytest.mark.slow
def test_hostile_names_stay_text() -> None:
    pytest.importorskip("vl_convert")
    evil = '</text><script>alert(1)</script>&"'
    spec = charts.learning_curve({"main": {"series": [{"name": evil, "x": [0, 1], "y": [0, 1]},
                                                      {"name": "b", "x": [0], "y": [0]}]}})  # fmt: skip
    svg = ET.fromstring(draw(spec, "svg"))
    assert not [one for one in svg.iter() if one.tag.endswith("script")]
    assert any("<script>" in text for text in texts(svg))


@pytest.mark.slow
def test_files_in_every_format(tmp_path) -> None:
    pytest.importorskip("vl_convert")
    short = {"sections": DOCUMENT["sections"][1:2]}
    found = {path.name: path.read_bytes() for path in write_figures(short, tmp_path / "figures")}
    assert list(found) == ["pass_at_k.vl.json", "pass_at_k.svg", "pass_at_k.png", "pass_at_k.pdf"]
    assert found["pass_at_k.png"].startswith(b"\x89PNG") and found["pass_at_k.pdf"].startswith(b"%PDF")
    assert json.loads(found["pass_at_k.vl.json"])["layer"]
    width = int.from_bytes(found["pass_at_k.png"][16:20], "big")
    assert width > 234 * 300 / 72  # 300 dots per inch


def test_without_the_drawing_package_the_remedy_is_told(monkeypatch) -> None:
    monkeypatch.setattr(drawing, "available", lambda: False)
    with pytest.raises(UserError, match=r"pip install 'rlvrlab\[figures\]'"):
        draw({}, "svg")


# -- tables ----------------------------------------------------------------------------------------------------------


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_tables_of_a_run(tmp_path) -> None:
    run = made_run(tmp_path, "one", steps=4)
    made_evaluation(run / "evaluations/last")
    (run / "rollouts").mkdir()
    answers = [{"skill": "add", "correct": c, "reward": r, "tokens": [1, 2], "error": "syntax", "completion": "=1+1"}
               for c, r in ((True, 1.0), (False, 0.0), (None, None))]  # fmt: skip
    (run / "rollouts/step_4.jsonl").write_text(lines(answers) + '{"torn')
    found = {path.name: read(path) for path in write_tables(gather(run), run, tmp_path / "tables")}
    assert [row["step"] for row in found["metrics.csv"]] == ["0", "1", "2", "3", "4"]
    assert found["metrics.csv"][4]["train/acc"] == "0.4" and found["metrics.csv"][0]["train/acc"] == ""
    assert found["evaluations.csv"][0]["pass@4"] == "0.29"
    (summary,) = found["rollouts.csv"]
    assert {k: summary[k] for k in ("step", "answers", "right", "wrong", "unjudged", "reward_mean")} == {
        "step": "4", "answers": "3", "right": "1", "wrong": "1", "unjudged": "1", "reward_mean": "0.5"}  # fmt: skip
    assert summary["errors"] == "syntax:1"


def test_matrices_and_points_become_lines(tmp_path) -> None:
    found = {path.stem: read(path) for path in write_tables(DOCUMENT, tmp_path / "none", tmp_path)}
    assert set(found) == {"interference", "pareto"}
    cells = [(row["row"], row["column"], row["value"], row["high"], row["seeds"]) for row in found["interference"]]
    assert cells[1] == ("add", "sort", "-0.02", "0.08", "3") and cells[3][3] == ""
    assert [row["front"] for row in found["pareto"]] == ["0", "1", "1"]


def test_no_cell_is_a_formula(tmp_path) -> None:
    run = made_run(tmp_path, "=cmd", steps=1)
    (run / "logs/metrics.jsonl").write_text(lines([metrics_row(1, **{"@evil": 1, "phase": "=HYPERLINK(1)"})]))
    (path,) = write_tables({}, run, tmp_path / "out")
    text = path.read_text()
    assert "'=HYPERLINK(1)" in text and "'=cmd" in text and "'@evil" in text
