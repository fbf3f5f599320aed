"""Do the groups' gradients pull against each other, and by more than noise?"""

from __future__ import annotations

from math import comb
from statistics import fmean
from typing import Any

import numpy as np

from rlvrlab.evals.noise import LEVEL
from rlvrlab.report.gather.conflict import last_values, pair_of, pairs_in
from rlvrlab.report.gather.intervals import interval, shared_level
from rlvrlab.report.reading import as_table, number, rounded
from rlvrlab.report.run_record import RunRecord
from rlvrlab.report.story.part import Curve, Part, Table, heat, lines, rows_of
from rlvrlab.shares import difference, percent, signed

FLOOR, PERMUTATION, SELF = "surgery/noise_floor", "surgery/permutation_p", "surgery/self_cosine/"
AGAINST = "below 0"
COMPARISON = (
    "What surgery adds is told by two runs of one recipe: with the method, and with `surgery.type=equal`, which weighs "
    "all groups alike and resolves nothing (`rlvr compare`)."
)
MOST_STRETCHES = 10


def conflict(run: RunRecord) -> Part | None:
    """None where no pair of groups was recorded."""
    pairs = pairs_in(run)
    if not pairs:
        return None
    found = {pair_of(key): _over_steps(last_values(run, key), -1.0, shared_level(len(pairs))) for key in pairs}
    names = sorted({name for pair in found for name in pair})
    cell = {pair: one["value"] for pair, one in found.items()}
    cells = [[cell.get((row, column), cell.get((column, row))) for column in names] for row in names]
    curves = {" · ".join(pair_of(key)): [(x, y) for x, y, _ in run.series(key)] for key in pairs}
    rates, worth = shares_below(run, pairs), _worth(run)
    tables: dict[str, Table] = {
        "conflict_matrix": (
            ["group", "other", "mean_cosine", "low", "high", "steps"],
            [[*pair, one["value"], one["low"], one["high"], one["n"]] for pair, one in found.items()],
        ),
        "conflict_cosines": (["pair", "step", "cosine"], rows_of(curves)),
        "conflict_rate": (["cosine", "step", "share_of_pairs"], rows_of(rates)),
    }
    shown = {
        "conflict_matrix": heat("Mean cosine of the groups' gradients", names, names, cells),
        "conflict_cosines": lines("Cosine of every pair", curves, "cosine"),
        "conflict_rate": lines("Pairs with a low cosine", rates, "share of the step's pairs"),
    }
    if worth:
        tables["noise_floor"] = (["what", "step", "value"], rows_of(worth))
        shown["noise_floor"] = lines("What a cosine is worth", worth, "cosine")
    return Part(tables, shown, _sentences(run, found, rates))


def shares_below(run: RunRecord, pairs: list[str]) -> dict[str, Curve]:
    """Share of each step's pairs with a cosine below 0, and below the run's threshold where that is another number.

    Steps without a pair are left out; records of older versions have a conflict rate of 0 there.
    """
    threshold = number(as_table(run.recipe.get("surgery")).get("conflict_threshold")) or 0.0
    edges = {AGAINST: 0.0} | ({f"below the threshold of {threshold:g}": threshold} if threshold else {})
    cosines: dict[int, list[float]] = {}
    for key in pairs:
        for step, value, _ in run.series(key):
            cosines.setdefault(step, []).append(value)
    return {
        name: [(step, fmean(value < edge for value in cosines[step])) for step in sorted(cosines)]
        for name, edge in edges.items()
    }


def _worth(run: RunRecord) -> dict[str, Curve]:
    """The noise floor, and how far each group agrees with its own other half, where that was measured."""
    keys = {FLOOR: "noise floor"}
    keys |= {key: f"{key.removeprefix(SELF)} with itself" for key in run.keys if key.startswith(SELF)}
    curves = {name: [(x, y) for x, y, _ in run.series(key)] for key, name in keys.items()}
    return {name: curve for name, curve in curves.items() if curve}


def _over_steps(values: list[float], least: float, level: float = LEVEL) -> dict[str, Any]:
    """Mean and t interval, at most 1. Neighbouring steps are alike, so many steps count as ten stretches of them."""
    stretches = [fmean(part) for part in np.array_split(values, min(MOST_STRETCHES, len(values)))]
    return interval(stretches, level, (least, 1.0)) | {"value": rounded(fmean(values), 4), "n": len(values)}


def chance_of(small: int, checks: int) -> float:
    """How often so many checks, or more, have p < 0.05 where there is nothing to find."""
    return sum(comb(checks, i) * 0.05**i * 0.95 ** (checks - i) for i in range(small, checks + 1))


def more_than_noise(small: int, checks: int) -> bool:
    """Whether so many checks with p < 0.05 are more than random groups have in 95 runs of 100."""
    return chance_of(small, checks) <= 0.05


def _often(rates: dict[str, Curve]) -> str:
    """How many pairs point against each other, and how many are below the threshold where that is not 0."""
    told = {}
    for name, curve in rates.items():
        rate = _over_steps([share for _, share in curve], 0.0)
        told[name] = percent(rate["value"], rate["low"], rate["high"], digits=0)
    steps = len(rates[AGAINST])
    said = f"In a step that has pairs of groups ({steps}), {told.pop(AGAINST)} of them point against each other"
    return "; ".join([f"{said} (cosine below 0)", *(f"{share} have a cosine {name}" for name, share in told.items())])


def _sentences(run: RunRecord, found: dict[tuple[str, str], dict[str, Any]], rates: dict[str, Curve]) -> list[str]:
    lowest = min(found, key=lambda pair: found[pair]["value"])
    worst = found[lowest]
    said = (
        f"**Conflict.** {_often(rates)}. The pair with the lowest cosine at the end is {lowest[0]} and {lowest[1]}: "
        f"mean cosine {difference(worst['value'], worst['low'], worst['high'], 1, 2)} over {worst['n']} steps"
        f"{f', as the lowest of {len(found)} pairs' if len(found) > 1 else ''}."
    )
    floors = [value for _, value, _ in run.series(FLOOR)]
    ps = [value for _, value, _ in run.series(PERMUTATION)]
    own = [value for key in run.keys if key.startswith(SELF) for _, value, _ in run.series(key)]
    if not floors or not ps or not own:
        return [said, "What a cosine is worth was not measured (`surgery.noise_every = 0`).", COMPARISON]
    floor, small, agree = sum(floors) / len(floors), sum(p < 0.05 for p in ps), sum(own) / len(own)
    real = more_than_noise(small, len(ps))
    reading = "so the conflict is more than noise" if real else "so nothing here tells this conflict from noise"
    return [said, (
        f"Random groups reach cosines of ±{floor:.2f} (noise floor), a group agrees with its own other half by "
        f"{signed(agree)}, and the cosines are lower than random groups have (p < 0.05) in {small} of {len(ps)} "
        f"checks: {reading}."
    ), COMPARISON]  # fmt: skip
