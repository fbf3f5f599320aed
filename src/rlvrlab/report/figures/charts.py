"""Sections of a gathered document -> Vega-Lite specifications; each says what its band or bar means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rlvrlab.report.figures.style import COLUMN, GAIN, HEIGHT, INK, LOSS, PALE, SOFT, Spec, colour, figure, quantity
from rlvrlab.shares import signed

Series = Mapping[str, Any]
SMALL = 100
"""Width of a small multiple, in points."""
SHARES = {"axis": {"format": ".0%"}}


def learning_curve(data: Mapping[str, Any], note: str = "") -> Spec | None:
    """Held-out accuracy over steps: lines with bands of seeds or intervals, dashed rules where phases begin."""
    series = [one for one in data["main"]["series"] if one["x"] and not one.get("faint")]
    if not series:
        return None
    layers = _bands(series, "step", "accepted@1 on dev problems", SHARES)
    marks = [{"x": mark["x"], "name": mark["name"]} for mark in data.get("marks", [])]
    if len(marks) > 1:
        layers = [*_rules(marks, "step"), *layers]
    return figure(note or "accepted@1 on dev problems over steps", width=COLUMN, height=HEIGHT, layer=layers)


def small_multiples(panels: Sequence[Mapping[str, Any]], title: str, note: str = "") -> Spec | None:
    """One small picture per skill, on shared axes."""
    rows = [{**row, "panel": panel["name"]} for panel in panels for row in _rows(panel["series"])]
    if not rows:
        return None
    names = list(dict.fromkeys(row["name"] for row in rows))
    several = any(len(panel["series"]) > 1 for panel in panels)
    encoding: Spec = {"x": quantity("x", "step"), "y": quantity("y", title, **SHARES)}
    encoding["color"] = colour(names) if several else {"value": "#0072b2"}
    layer = [{"mark": {"type": "area", "opacity": 0.2}, "encoding": {"y": quantity("low"), "y2": {"field": "high"}}},
             {"mark": "line"}]  # fmt: skip
    spec = {"width": SMALL, "height": SMALL * 0.75, "encoding": encoding, "layer": layer}
    facet = {"field": "panel", "type": "nominal", "title": None, "sort": [panel["name"] for panel in panels]}
    return figure(note or title, data={"values": rows}, facet=facet, columns=3, spacing=12, spec=spec)


def pass_at_k(data: Mapping[str, Any], note: str = "") -> Spec | None:
    """pass@k over k on a logarithmic axis, with intervals over problems."""
    series = [one for one in data["curves"] if one["x"]]
    if not series:
        return None
    ticks = sorted({k for one in series for k in one["x"]})
    scale = {"scale": {"type": "log", "base": 2}, "axis": {"values": ticks, "format": "d"}}
    layers = _bands(series, "k", "pass@k", SHARES, scale)
    return figure(note or "pass@k with 95 % intervals over problems", width=COLUMN, height=HEIGHT, layer=layers)


def forgetting(data: Mapping[str, Any], note: str = "") -> Spec | None:
    """Success on every skill over steps, a ring at each peak."""
    series = [one for one in data["curves"] if one["x"]]
    if not series:
        return None
    layers = _bands(series, "step", "success", SHARES)
    peaks = [{"name": one["name"], "x": one["peak"][0], "y": one["peak"][1]} for one in series if one.get("peak")]
    ring = {"type": "point", "size": 60, "strokeWidth": 1.2, "filled": False}
    hue = colour([one["name"] for one in series])
    place = {"x": quantity("x", "step"), "y": quantity("y", "success", **SHARES), "color": hue}
    layers += [{"data": {"values": peaks}, "mark": ring, "encoding": place}, *_rules(data.get("marks", []), "step")]
    return figure(note or "Success on every skill over steps", width=COLUMN, height=HEIGHT, layer=layers)


def matrix(data: Mapping[str, Any], note: str = "") -> Spec:
    """Cells with their interval below; grey where the interval holds zero or there is none."""
    rows: list[Spec] = []
    for row, cells in zip(data["rows"], data["cells"], strict=True):
        for column, cell in zip(data["columns"], cells, strict=True):
            value, low, high = (cell.get(key) for key in ("value", "low", "high"))
            told = {"row": row, "column": column, "value": value, "label": "–" if value is None else _signed(value)}
            known = low is not None and high is not None
            bounds = f"[{_signed(low)}, {_signed(high)}]" if known else ""
            rows.append({**told, "bounds": bounds, "shown": known and bool(low > 0 or high < 0)})
    top = max((abs(row["value"]) for row in rows if row["value"] is not None), default=1.0) or 1.0
    axis = {"axis": {"labelAngle": 0, "ticks": False, "domain": False, "labelLimit": 70}}
    x = {"field": "column", "type": "nominal", "sort": None, "title": data.get("column_title"), **axis}
    y = {"field": "row", "type": "nominal", "sort": None, "title": data.get("row_title"), **axis}
    y["axis"] = {**axis["axis"], "labelLimit": 90}
    x["axis"] = {**axis["axis"], "orient": "top", "labelOverlap": False}
    scale = {"domain": [-top, 0, top], "range": [LOSS, "#f7f7f7", GAIN]}
    strong = {"test": "datum.shown", "field": "value", "type": "quantitative", "scale": scale, "legend": None}
    fill = {"condition": strong, "value": PALE}
    ink = {"condition": {"test": f"datum.shown && abs(datum.value) > {0.6 * top}", "value": "white"}, "value": INK}
    layers = [
        {"mark": {"type": "rect", "stroke": "white"}, "encoding": {"color": fill}},
        {"mark": {"type": "text", "dy": -4, "fontSize": 8.5}, "encoding": {"text": {"field": "label"}, "color": ink}},
        {"mark": {"type": "text", "dy": 6, "fontSize": 6}, "encoding": {"text": {"field": "bounds"}, "color": ink}},
    ]
    side = max(44, min(64, COLUMN // max(1, len(data["columns"]))))
    return figure(note, data={"values": rows}, width={"step": side}, height={"step": 30}, encoding={"x": x, "y": y},
                  layer=layers)  # fmt: skip


def forest(rows: Sequence[Mapping[str, Any]], title: str, note: str = "") -> Spec | None:
    """Differences with their intervals against zero; filled where the interval leaves zero out."""
    values = [
        {**row, "shown": bool(row["low"] > 0 or row["high"] < 0)}
        for row in rows
        if None not in (row.get("mean"), row.get("low"), row.get("high"))
    ]
    if not values:
        return None
    labels, axis = list(dict.fromkeys(row["label"] for row in values)), {"labelLimit": 180, "ticks": False}
    y = {"field": "label", "type": "nominal", "sort": labels, "title": None, "axis": axis}
    strong = {"condition": {"test": "datum.shown", "value": "#0072b2"}, "value": SOFT}
    fill = {"condition": {"test": "datum.shown", "value": "#0072b2"}, "value": "white"}
    layers = [
        {"data": {"values": [{"zero": 0}]}, "mark": {"type": "rule", "color": SOFT, "strokeDash": [3, 2]},
         "encoding": {"x": quantity("zero", title)}},
        {"mark": {"type": "rule", "strokeWidth": 1.2},
         "encoding": {"y": y, "x": quantity("low", title), "x2": {"field": "high"}, "color": strong}},
        {"mark": {"type": "point", "size": 30, "opacity": 1},
         "encoding": {"y": y, "x": quantity("mean", title), "stroke": strong, "fill": fill}},
    ]  # fmt: skip
    return figure(note, data={"values": values}, width=COLUMN, height={"step": 16}, layer=layers)


def dots(data: Mapping[str, Any], note: str = "", *, shared: bool = False) -> Spec | None:
    """Rows down, columns across, each number as a dot with its interval; `shared`: the columns have one scale."""
    rows = [
        {"arm": row, "metric": column, "value": cell["value"], "low": cell.get("low"), "high": cell.get("high")}
        for row, cells in zip(data["rows"], data["cells"], strict=True)
        for column, cell in zip(data["columns"], cells, strict=True)
        if cell.get("value") is not None
    ]
    if not rows:
        return None
    y = {"field": "arm", "type": "nominal", "sort": None, "title": None, "axis": {"labelLimit": 160, "ticks": False}}
    layer = [
        {"mark": {"type": "rule", "color": "#0072b2"},
         "encoding": {"y": y, "x": quantity("low"), "x2": {"field": "high"}}},
        {"mark": {"type": "point", "filled": True, "size": 30, "color": "#0072b2", "opacity": 1},
         "encoding": {"y": y, "x": quantity("value")}},
    ]  # fmt: skip
    facet = {"field": "metric", "type": "nominal", "title": None, "sort": list(data["columns"])}
    spec = {"width": SMALL, "height": {"step": 15}, "layer": layer}
    columns = len(data["columns"]) if len(data["columns"]) <= 4 else 3
    resolve = {"scale": {"x": "shared" if shared else "independent"}}
    return figure(note, data={"values": rows}, facet=facet, columns=columns, spec=spec, resolve=resolve)


def pareto(data: Mapping[str, Any], note: str = "") -> Spec | None:
    """Two goals against each other, intervals both ways, a line through what nothing else dominates."""
    points = [
        {"name": point["name"], "group": point.get("group") or point["name"], "front": bool(point.get("front")),
         **{f"{axis}{side}": point[axis].get(key) for axis in "xy" for side, key in
            (("", "value"), ("_low", "low"), ("_high", "high"))}}
        for point in data["points"]
    ]  # fmt: skip
    if not points:
        return None
    groups = list(dict.fromkeys(point["group"] for point in points))
    near = {"scale": {"zero": False, "nice": True}}
    x, y = (quantity(axis, data.get(f"{axis}_title"), **near) for axis in "xy")
    hue = {"color": colour(groups, "group")}
    best = sorted((point for point in points if point["front"]), key=lambda point: point["x"])
    bar = {"type": "rule", "strokeWidth": 0.8, "opacity": 0.5}
    layers: list[Spec] = [
        {"data": {"values": best}, "mark": {"type": "line", "color": SOFT, "strokeDash": [3, 2], "strokeWidth": 1},
         "encoding": {"x": x, "y": y}},
        {"mark": bar, "encoding": {"x": {**x, "field": "x_low"}, "x2": {"field": "x_high"}, "y": y, **hue}},
        {"mark": bar, "encoding": {"y": {**y, "field": "y_low"}, "y2": {"field": "y_high"}, "x": x, **hue}},
        {"mark": {"type": "point", "filled": True, "size": 32, "opacity": 1}, "encoding": {"x": x, "y": y, **hue}},
    ]  # fmt: skip
    # The names of the best ones stand in turn above and below, so that neighbours keep apart.
    for every_other, shift in ((best[::2], -6), (best[1::2], 7)):
        mark = {"type": "text", "align": "left", "dx": 5, "dy": shift, "fontSize": 7}
        place = {"x": x, "y": y, "text": {"field": "name"}}
        layers.append({"data": {"values": every_other}, "mark": mark, "encoding": place})
    return figure(note, data={"values": points}, width=COLUMN, height=COLUMN * 0.8, layer=layers)


def _rows(series: Sequence[Series]) -> list[Spec]:
    """One row per point; bounds only where there are both."""
    rows = []
    for one in series:
        lows, highs = one.get("low") or [None] * len(one["x"]), one.get("high") or [None] * len(one["x"])
        for x, y, low, high in zip(one["x"], one["y"], lows, highs, strict=True):
            rows.append({"name": one["name"], "x": x, "y": y, "low": low, "high": high})
    return rows


def _bands(
    series: Sequence[Series], x_title: str, y_title: str, y_more: Spec, x_more: Spec | None = None
) -> list[Spec]:
    data = {"values": _rows(series)}
    names = [one["name"] for one in series]
    x, hue = quantity("x", x_title, **(x_more or {})), {"color": colour(names)}
    band = {"y": quantity("low", y_title, **y_more), "y2": {"field": "high"}}
    valid = [{"filter": "isValid(datum.low) && isValid(datum.high)"}]
    area, line = {"type": "area", "opacity": 0.18}, {"x": x, "y": quantity("y", y_title, **y_more), **hue}
    layers: list[Spec] = [
        {"data": data, "transform": valid, "mark": area, "encoding": {"x": x, **band, **hue}},
        {"data": data, "mark": "line", "encoding": line},
    ]
    if all(len(one["x"]) <= 40 for one in series):
        point = {"type": "point", "filled": True, "size": 12, "opacity": 1}
        layers.append({"data": data, "mark": point, "encoding": line})
    return layers


def _rules(marks: Sequence[Mapping[str, Any]], title: str) -> list[Spec]:
    """Vertical rules at the steps where something begins, each with its name at the top."""
    data = {"values": [{"x": mark["x"], "name": mark["name"]} for mark in marks]}
    words = {"type": "text", "align": "left", "dx": 3, "y": 4, "fontSize": 7, "color": SOFT}
    return [
        {"data": data, "mark": {"type": "rule", "color": PALE}, "encoding": {"x": quantity("x", title)}},
        {"data": data, "mark": words, "encoding": {"x": quantity("x", title), "text": {"field": "name"}}},
    ]


def _signed(value: float) -> str:
    return signed(value).replace("-", "−")
