"""Do the groups' gradients pull against each other, and by more than noise?"""

from __future__ import annotations

from math import comb
from statistics import fmean
from typing import Any

import numpy as np

from rlvrlab.evals.noise import LEVEL
from rlvrlab.report.gather.conflict import last_values, pair_of, pairs_in
from rlvrlab.report.gather.intervals import interval
from rlvrlab.report.gather.reading import rounded
from rlvrlab.report.gather.record import RunRecord
from rlvrlab.report.story import pictures
from rlvrlab.report.story.part import Part, bracket

RATE, FLOOR, PERMUTATION, SELF = (
    "surgery/conflict_rate", "surgery/noise_floor", "surgery/permutation_p", "surgery/self_cosine/",
)  # fmt: skip
MOST_STRETCHES = 10


def conflict(run: RunRecord) -> Part | None:
    """None where no pair of groups was recorded."""
    pairs = pairs_in(run)
    if not pairs:
        return None
    found = {pair_of(key): _over_steps(last_values(run, key), -1.0, 1 - (1 - LEVEL) / len(pairs)) for key in pairs}
    names = sorted({name for pair in found for name in pair})
    cell = {pair: one["value"] for pair, one in found.items()}
    cells = [[cell.get((row, column), cell.get((column, row))) for column in names] for row in names]
    curves = {" · ".join(pair_of(key)): [(x, y) for x, y, _ in run.series(key)] for key in pairs}
    course = [[" · ".join(pair_of(key)), x, y] for key in pairs for x, y, _ in run.series(key)]
    tables = {
        "conflict_matrix": (
            ["group", "other", "mean_cosine", "low", "high", "steps"],
            [[*pair, one["value"], one["low"], one["high"], one["n"]] for pair, one in found.items()],
        ),
        "conflict_cosines": (["pair", "step", "cosine"], course),
    }
    shown = {
        "conflict_matrix": pictures.heat("Mean cosine of the groups' gradients", names, names, cells),
        "conflict_cosines": pictures.lines("Cosine of every pair", curves, "cosine"),
    }
    return Part(tables, shown, _sentences(run, found))


def _over_steps(values: list[float], least: float, level: float = LEVEL) -> dict[str, Any]:
    """Mean and t interval, at most 1. Neighbouring steps are alike, so many steps count as ten stretches of them."""
    found = interval([fmean(part) for part in np.array_split(values, min(MOST_STRETCHES, len(values)))], level)
    found |= {"value": rounded(fmean(values), 4), "n": len(values)}
    if found["low"] is None:
        return found
    return found | {"low": max(least, found["low"]), "high": min(1.0, found["high"])}


def chance_of(small: int, checks: int) -> float:
    """How often so many checks, or more, have p < 0.05 where there is nothing to find."""
    return sum(comb(checks, i) * 0.05**i * 0.95 ** (checks - i) for i in range(small, checks + 1))


def more_than_noise(small: int, checks: int) -> bool:
    """Whether so many checks with p < 0.05 are more than random groups have in 95 runs of 100."""
    return chance_of(small, checks) <= 0.05


def _sentences(run: RunRecord, found: dict[tuple[str, str], dict[str, Any]]) -> list[str]:
    often = ""
    if rates := [value for _, value, _ in run.series(RATE)]:
        rate = _over_steps(rates, 0.0)
        share = f"{100 * rate['value']:.0f} %{bracket(rate['low'], rate['high'], 100, 0)}"
        often = f"In a step {share} of the pairs of groups disagree. "
    lowest = min(found, key=lambda pair: found[pair]["value"])
    worst = found[lowest]
    said = (
        f"**Conflict.** {often}The pair that disagrees most at the end is {lowest[0]} and {lowest[1]}: "
        f"mean cosine {worst['value']:+.2f}{bracket(worst['low'], worst['high'])} over {worst['n']} steps"
        f"{f', as the lowest of {len(found)} pairs' if len(found) > 1 else ''}."
    )
    floors = [value for _, value, _ in run.series(FLOOR)]
    ps = [value for _, value, _ in run.series(PERMUTATION)]
    own = [value for key in run.keys if key.startswith(SELF) for _, value, _ in run.series(key)]
    if not floors or not ps or not own:
        return [said, "What a cosine is worth was not measured (`surgery.noise_every = 0`)."]
    floor, small, agree = sum(floors) / len(floors), sum(p < 0.05 for p in ps), sum(own) / len(own)
    real = more_than_noise(small, len(ps))
    reading = "so the conflict is more than noise" if real else "so nothing here tells this conflict from noise"
    return [said, (
        f"Random groups reach cosines of ±{floor:.2f} (noise floor), a group agrees with its own other half by "
        f"{agree:+.2f}, and the groups disagree more than random ones (p < 0.05) in {small} of {len(ps)} checks: "
        f"{reading}."
    )]  # fmt: skip
