"""Do the groups of a mixture pull in different directions? Cosines of their gradients over the steps."""

from __future__ import annotations

from rlvrlab.report.gather.curves import thinned
from rlvrlab.report.reading import Fact, Section, rounded, section
from rlvrlab.report.run_record import METRICS, RunRecord

PREFIX = "surgery/cosine/"
SUMMARY = ("surgery/cosine/mean", "surgery/cosine/min")
PARTS = {
    "conflict_rate": "Share of pairs with a cosine below the threshold",
    "self_cosine": "Cosine of each group with itself (near 0: its gradient is noise)",
    "noise_floor": "Noise floor: 95 % of the cosines between random groups are smaller",
    "weight": "Weight of each group",
    "success": "Training success of each group",
    "size": "Answers of each group",
}
"""Part of `surgery/<part>` or `surgery/<part>/<group>` -> title of its picture."""
NUMBERS = {
    "surgery/noise_floor": "noise floor: cosines of random groups stay below it",
    "surgery/permutation_p": "p against random groups",
    "surgery/norm_ratio": "largest norm over smallest",
    "surgery/effective_rank": "effective rank",
}
LAST = 0.2
"""Share of the last steps that the matrix averages over."""


def conflict(run: RunRecord) -> Section | None:
    """Cosines, how many pairs are below the threshold, what a cosine is worth, and the weights that surgery gave."""
    keys = [key for key in run.keys if key.startswith("surgery/")]
    if not keys:
        return None
    pairs = pairs_in(run)
    panels = [_panel("Cosine of the gradients: mean and lowest pair", run, [k for k in SUMMARY if k in keys])]
    panels.append(_panel("Cosine of every pair", run, pairs))
    for part, title in PARTS.items():
        own = f"surgery/{part}"
        panels.append(_panel(title, run, [key for key in keys if key == own or key.startswith(f"{own}/")]))
    numbers = [
        {"name": name, "value": rounded(values[-1]), "key": key}
        for key, name in NUMBERS.items()
        if (values := [value for _, value, _ in run.series(key)])
    ]
    data = {"panels": [one for one in panels if one["series"]], "matrix": _matrix(run, pairs), "numbers": numbers,
            "absent": [] if pairs else ["cosines of single pairs: none recorded (one group or over ten)"]}  # fmt: skip
    note = (
        "Below 0 two groups point against each other: a step along one harms the other. A cosine means little where a "
        "group hardly agrees with itself."
    )
    return section("conflict", "conflict", "Conflict", data, METRICS, note)


def pairs_in(run: RunRecord) -> list[str]:
    """The metrics that hold the cosine of one pair of groups."""
    return [key for key in run.keys if key.startswith(PREFIX) and key not in SUMMARY and "/" in key[len(PREFIX) :]]


def pair_of(key: str) -> tuple[str, str]:
    """The two groups that such a metric is about."""
    one, _, other = key[len(PREFIX) :].partition("/")
    return one, other


def last_values(run: RunRecord, key: str) -> list[float]:
    """A metric in the last steps that have it."""
    values = [value for _, value, _ in run.series(key)]
    return values[-max(1, round(LAST * len(values))) :]


def _panel(title: str, run: RunRecord, keys: list[str]) -> Fact:
    lines = [{"name": key.removeprefix("surgery/"), "key": key, **thinned(run.series(key))} for key in keys]
    return {"name": title, "series": [line for line in lines if line["x"]]}


def _matrix(run: RunRecord, pairs: list[str]) -> Fact | None:
    """Mean cosine of every pair over the last steps; the diagonal is left empty."""
    means: dict[tuple[str, str], float] = {}
    for key in pairs:
        one, other = pair_of(key)
        if kept := last_values(run, key):
            means[one, other] = means[other, one] = sum(kept) / len(kept)
    names = sorted({name for pair in means for name in pair})
    if not names:
        return None
    cells = [
        [{"value": rounded(means.get((row, column)), 4), "low": None, "high": None,
          "from": {"file": METRICS, "key": f"{PREFIX}{row}/{column}"}} for column in names]
        for row in names
    ]  # fmt: skip
    return {"rows": names, "columns": names, "cells": cells, "row_title": "cosine of", "column_title": "with",
            "certain": False}  # fmt: skip
