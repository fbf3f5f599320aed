"""How every figure looks: one column of a paper wide, 8-point text, colours the colour-blind can tell apart."""

from __future__ import annotations

from typing import Any

Spec = dict[str, Any]
"""A Vega-Lite specification."""

COLUMN, HEIGHT = 234, 150
"""In points; 234 is 3.25 inches, the width of a paper's column."""
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#8c6bb1")
"""The colours of Okabe and Ito, strong ones first."""
LINE = 56
"""Letters that fit on one line of a legend."""
INK, SOFT, PALE = "#222222", "#666666", "#d9d9d9"
LOSS, GAIN = "#b35806", "#2166ac"
"""Orange and blue, the ends of colour scales around zero."""

CONFIG: Spec = {
    "font": "Liberation Sans, Arial, Helvetica, sans-serif",
    "background": "white",
    "view": {"stroke": None, "continuousWidth": COLUMN, "continuousHeight": HEIGHT},
    "axis": {
        "labelFontSize": 8, "titleFontSize": 8.5, "titleFontWeight": "normal", "labelColor": INK, "titleColor": INK,
        "domainColor": SOFT, "tickColor": SOFT, "gridColor": "#eeeeee", "tickSize": 3, "titlePadding": 4,
    },
    "legend": {
        "labelFontSize": 8, "titleFontSize": 8, "orient": "bottom", "title": None, "symbolSize": 40,
        "labelLimit": 220, "labelColor": INK, "symbolStrokeWidth": 1.5, "rowPadding": 1, "symbolOpacity": 1,
    },
    "header": {"labelFontSize": 8.5, "titleFontSize": 8.5, "labelColor": INK, "labelPadding": 3},
    "range": {"category": list(PALETTE)},
    "line": {"strokeWidth": 1.5},
    "text": {"fontSize": 8, "color": INK},
    "title": {"fontSize": 9, "fontWeight": "normal", "anchor": "start", "color": INK},
}  # fmt: skip


def figure(description: str, **parts: Any) -> Spec:
    """A complete specification: `parts` with the schema and the common look."""
    schema = "https://vega.github.io/schema/vega-lite/v5.json"
    return {"$schema": schema, "description": description, "config": CONFIG, **parts}


def quantity(field: str, title: str | None = None, **more: Any) -> Spec:
    """The encoding of a numeric field on an axis."""
    return {"field": field, "type": "quantitative", "title": title, **more}


def colour(names: list[str], field: str = "name") -> Spec:
    """One colour per name, in the order given; no legend for a single one."""
    scale = {"domain": names, "range": [PALETTE[i % len(PALETTE)] for i in range(len(names))]}
    legend = {"columns": max(1, min(4, LINE // max(len(name) + 4 for name in names)))} if len(names) > 1 else None
    return {"field": field, "type": "nominal", "scale": scale, "legend": legend}
