"""Tables of nano's runs: python studies/interference/nano_runs.py report."""

from __future__ import annotations

from typing import Any

import numpy as np
from nano_worlds import WORLDS, World, arms
from tables import interval, table

from rlvrlab.evals.statistics import compare_seeds
from rlvrlab.skills.metrics import retention

Runs = dict[tuple[str, int], dict[str, Any]]
"""By arm and seed."""
SHOWN = (
    "average",
    "worst",
    "forgetting",
    "untrained",
    "backward_transfer",
    "forward_transfer",
    "learning",
    "intransigence",
)


def success(row: dict[str, Any]) -> np.ndarray:
    """Before and after every stage, by skill in the world's order."""
    skills = WORLDS[row["world"]].skills
    return np.array([[at[skill].count("1") / len(at[skill]) for skill in skills] for at in row["rights"]])


def retained(row: dict[str, Any], by: Runs) -> dict[str, float]:
    """The metrics of skills/metrics.py; of a mixture only those that need no stages."""
    world, seed, table = WORLDS[row["world"]], row["seed"], success(row)
    order = [world.skills.index(skill) for skill in world.order]
    alone = np.full(len(world.skills), np.nan)
    alone[order[0]] = success(by["sequential", seed])[1, order[0]]
    for skill in world.order[1:]:
        alone[world.skills.index(skill)] = success(by[f"alone:{skill}", seed])[-1, world.skills.index(skill)]
    found = retention(table, order, alone)._asdict()
    if row["arm"] == "mixed":
        found |= dict.fromkeys(("forgetting", "backward_transfer", "forward_transfer"), float("nan"))
        found["learning"] = float(table[-1, order].mean())
        found["intransigence"] = float((alone - table[-1])[order].mean())
    found["untrained"] = float(
        np.mean([table[-1, i] - table[0, i] for i in range(len(alone)) if i not in order] or [np.nan])
    )
    return found


def bits(row: dict[str, Any]) -> np.ndarray:
    """Every held-out problem of every skill at the end; skills weigh alike because they have as many."""
    return np.array([int(bit) for right in row["rights"][-1].values() for bit in right], dtype=np.float64)


def apart(gap_RP: np.ndarray) -> str:
    """Mean and 95 % interval in points, for new seeds: that of `rlvr compare --paired`."""
    found = compare_seeds(np.zeros_like(gap_RP), gap_RP, paired=True)
    return f"{100 * found.mean:+.1f} [{100 * found.low:+.1f}, {100 * found.high:+.1f}]"


def report(rows: list[dict[str, Any]]) -> str:
    """Each arm of each world, and its end minus plain sequential training's, or equal weighting's."""
    texts = []
    for name, world in WORLDS.items():
        by = {(row["arm"], row["seed"]): row for row in rows if row["world"] == name}
        seeds = sorted({seed for _, seed in by})
        if not seeds:
            continue
        first, *others = [arm for arm in arms(world) if all((arm, seed) in by for seed in seeds)]
        base = np.mean([success(by[first, seed])[0] for seed in seeds], axis=0)
        columns = _surgeries if world.surgeries else _stages
        lines = []
        for arm in [first, *(arm for arm in others if not arm.startswith("alone"))]:
            gap = np.stack([bits(by[arm, seed]) - bits(by[first, seed]) for seed in seeds])
            ends = np.mean([success(by[arm, seed])[-1] for seed in seeds], axis=0)
            took = np.mean([by[arm, seed]["seconds"] for seed in seeds])
            versus = "" if arm == first else apart(gap)
            cells = columns([by[arm, seed] for seed in seeds], by)
            lines.append([arm, _skills(ends), *cells.values(), versus, f"{took:.0f}"])
        heads = ["arm", f"end: {' / '.join(world.skills)}", *cells, f"end, mean of skills, minus {first}'s", "seconds"]
        texts += [_head(name, world, len(seeds)), f"Start: {_skills(base)}.", table(heads, lines)]
    return "\n\n".join(texts)


def _head(name: str, world: World, seeds: int) -> str:
    return f"### {name}: {' → '.join(world.order) or ' and '.join(world.skills)}, {seeds} seeds"


def _skills(success_S: np.ndarray) -> str:
    return " / ".join(f"{100 * share:.0f}" for share in success_S)


def _stages(runs: list[dict[str, Any]], by: Runs) -> dict[str, str]:
    own = [retained(run, by) for run in runs]
    return {key: _points([one[key] for one in own]) for key in SHOWN}


def _surgeries(runs: list[dict[str, Any]], by: Runs) -> dict[str, str]:
    """Of a mixture; a self-cosine near zero says that a group's gradient is noise."""
    ends = [success(run)[-1] for run in runs]
    watched = [run["watched"] for run in runs]
    own = [np.mean([value for key, value in one.items() if "self_cosine" in key]) for one in watched]
    return {
        "average": _points([float(end.mean()) for end in ends]),
        "worst": _points([float(end.min()) for end in ends]),
        "conflict rate": f"{np.mean([one['surgery/conflict_rate'] for one in watched]):.2f}",
        "permutation p": f"{np.mean([one['surgery/permutation_p'] for one in watched]):.2f}",
        "self-cosine": f"{np.mean(own):.2f}",
    }


def _points(values: list[float]) -> str:
    """In points, with the half-width of a t interval over seeds."""
    if np.isnan(values).all():
        return "–"
    mean, half = interval([100 * value for value in values]).split(" ± ")
    return f"{float(mean):+.1f} ± {float(half):.1f}"
