"""Tables of the toy study from its result lines; `python studies/interference/run.py report`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import combinations
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np

from rlvrlab.evals.statistics import sign_flip
from rlvrlab.skills.interference import spearman
from rlvrlab.skills.metrics import Retention, retention
from rlvrlab.skills.pareto import area, compare_areas, hypervolume

T95 = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 23: 2.069, 47: 2.012}
"""Student's t by degrees of freedom."""
TUNING = tuple(range(100, 108))
"""The first round has the first two of them, the second none."""
ROUND_4 = "sequential, kl 0.1 throughout, four of eight strengths"
"""Declared before it ran. Forty-eight fresh seeds; every guard gets the four of its eight candidates (the safe update's
are two gradients x four ε) that span the largest area on the tuning seeds. What counts is the area above (0.4, 0.644):
0.644 is what plain training kept in the third round; that above (0.4, 0) is reported beside it."""
REFERENCE = (0.4, 0.644)
SEEDS = 6
Rows = list[dict[str, Any]]
ORDER = ("plain", "safe", "safe_kl", "replay", "ewc", "l2", "kl")
SHOWN = ("average", "worst", "forgetting", "learning")


def report(folder: Path) -> None:
    """Write and print every table there are results for."""
    texts, facts = [], {}
    for name, make in (("guards", guards), ("surgery", surgery), ("matrix", matrix)):
        path = folder / f"{name}.jsonl"
        if path.exists():
            text, facts[name] = make([json.loads(line) for line in path.read_text().splitlines()])
            texts.append(text)
    (folder / "tables.md").write_text("\n".join(texts))
    (folder / "tables.json").write_text(json.dumps(facts, indent=1) + "\n")
    print("\n".join(texts))


def interval(values: Sequence[float]) -> str:
    """Mean and half-width of the 95 % interval."""
    half = T95.get(len(values) - 1, 1.96) * np.std(values, ddof=1) / sqrt(len(values)) if len(values) > 1 else np.nan
    return f"{np.mean(values):.3f} ± {half:.3f}"


def table(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    rows = [heads, ["---"] * len(heads), *lines]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows) + "\n"


def guards(rows: Rows) -> tuple[str, dict[str, Any]]:
    """Every variant for itself."""
    variants = dict.fromkeys(r["variant"] for r in rows)
    found = {variant: _guards(variant, [r for r in rows if r["variant"] == variant]) for variant in variants}
    return "\n".join(text for text, _ in found.values()), {variant: facts for variant, (_, facts) in found.items()}


def _guards(variant: str, rows: Rows) -> tuple[str, dict[str, Any]]:
    """Retention and learning under every guard; hypervolumes; KL as a predictor."""
    found = {(r["name"], r["seed"]): retention(np.array(r["table"]), [0, 1, 2]) for r in rows}
    names = list(dict.fromkeys(r["name"] for r in rows))
    seeds = sorted({r["seed"] for r in rows} - set(TUNING))
    test = {n: [found[n, s] for s in seeds if (n, s) in found] for n in names}
    full = sorted((n for n in names if len(test[n]) == len(seeds)), key=_place)
    tuned = {kind: _tuned(found, [n for n in full if n.split()[0] == kind]) for kind in _kinds(full)}
    chosen = tuned if any(seed in TUNING for _, seed in found) else {}
    costs = {n: np.mean([r["answers"] for r in rows if r["name"] == n]) for n in full}
    lines, facts = [], {"chosen on tuning seeds": chosen}
    for name in full:
        kept = np.array([one.forgetting for one in test[name]])
        plain = np.array([one.forgetting for one in test["plain"]])
        mark = " *" if name in chosen.values() and name != "plain" else ""
        numbers = [interval([getattr(one, key) for one in test[name]]) for key in SHOWN]
        gap = interval(kept - plain) if name != "plain" else ""
        cut = f"{1 - kept.mean() / plain.mean():.0%}" if name != "plain" else ""
        lines.append([name + mark, *numbers, gap, cut, _ratio(test, name), f"{costs[name]:.0f}"])
        facts[name] = {key: float(np.mean([getattr(one, key) for one in test[name]])) for key in SHOWN}
    heads = ["method", *SHOWN, "forgetting − plain's", "cut by", "learning change", "answers"]
    others = len({seed for _, seed in found} & set(TUNING))
    star = f"; * best average on {others} other seeds" if chosen else ""
    text = f"### {variant[0].upper()}{variant[1:]}: {len(seeds)} seeds{star}\n\n"
    curves, more = _areas(test, full, REFERENCE[1] if variant == ROUND_4 else None)
    facts |= more | {"kl against forgetting": _kl(rows)}
    last = f"\nKL(base ‖ policy) against forgetting, over all runs: Spearman {facts['kl against forgetting']:.2f}\n"
    return text + table(heads, lines) + "\n" + curves + last, facts


def best_curves(rows: Rows, names: Sequence[str], reference: tuple[float, float]) -> list[str]:
    """For every guard the four settings whose curve, with plain training's point, has the largest area."""
    found = {name: [retention(np.array(r["table"]), [0, 1, 2]) for r in rows if r["name"] == name] for name in names}
    point = {n: np.mean([(one.learning, 1 - one.forgetting) for one in many], axis=0) for n, many in found.items()}

    def size(four: Sequence[str]) -> float:
        return hypervolume(np.array([point[name] for name in ("plain", *four)]), reference)

    families = dict.fromkeys(name.split()[0].removesuffix("_kl") for name in names if name != "plain")
    own = {family: [n for n in names if n.split()[0] in (family, f"{family}_kl")] for family in families}
    return [name for mine in own.values() for name in max(combinations(sorted(mine, key=_place), 4), key=size)]


def _place(name: str) -> tuple[int, str, float]:
    kind, *gradient, strength = [*name.split(), "0"] if name == "plain" else name.split()
    return ORDER.index(kind), "".join(gradient), float(strength.removeprefix("ε="))


def _kinds(names: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(name.split()[0] for name in names))


def _tuned(found: dict[tuple[str, int], Retention], names: Sequence[str]) -> str:
    def score(name: str) -> float:
        known = [found[name, seed].average for seed in TUNING if (name, seed) in found]
        return float(np.mean(known)) if known else -1.0

    return max(names, key=score)


def _ratio(test: dict[str, list[Retention]], name: str) -> str:
    own, plain = (np.mean([one.learning for one in test[n]]) for n in (name, "plain"))
    return f"{own / plain - 1:+.1%}"


def _areas(test: dict[str, list[Retention]], full: Sequence[str], floor: float | None) -> tuple[str, dict[str, Any]]:
    """Curves of (learning, 1 − forgetting); plain training is every method's point of strength 0."""
    curve = _curves(test, full)
    kept = round(float(np.mean([1 - one.forgetting for one in test["plain"]])), 3)
    references = [(0.4, 0.0), (0.4, kept if floor is None else floor)]
    texts, facts = zip(*(_area_table(curve, reference) for reference in references), strict=True)
    if floor is not None:  # asked after the round: without the settings of the KL gradient
        alone = _curves(test, [name for name in full if not name.startswith("safe kl")])
        texts += tuple(_area_table(alone, one, ", safe with the likelihood gradient alone")[0] for one in references)
    return "\n".join(texts), {**facts[0], "above plain's retention": facts[1]}


def _curves(test: dict[str, list[Retention]], full: Sequence[str]) -> dict[str, Any]:
    """Seeds × settings × (learning, 1 − forgetting) of every kind, plain training's point among them."""
    curve = {}
    for kind in (one for one in _kinds(full) if one != "plain"):
        points = [[(o.learning, 1 - o.forgetting) for o in test[n]] for n in full if n.split()[0] in (kind, "plain")]
        curve[kind] = np.array(points).transpose(1, 0, 2)
    return curve


def _area_table(curve: dict[str, Any], reference: tuple[float, float], which: str = "") -> tuple[str, dict[str, Any]]:
    """The second reference asks what a guard adds: only what is kept beyond plain training counts."""
    lines, facts = [], {}
    for kind, points in curve.items():
        own = area(points, reference)
        cells = [kind, f"{own.value:.3f} [{own.low:.3f}, {own.high:.3f}]"]
        if kind != "safe" and "safe" in curve:
            gap = compare_areas(curve["safe"], points, reference)
            cells += [f"{gap.value:+.3f} [{gap.low:+.3f}, {gap.high:+.3f}]"]
            facts[f"safe minus {kind}"] = gap._asdict()
        lines.append(cells + [""] * (3 - len(cells)))
    heads = ["method", "hypervolume [95 %]", "safe − method [95 %]"]
    title = f"### Pareto: learning against 1 − forgetting, reference point {reference}{which}"
    return f"{title}\n\n{table(heads, lines)}", facts


def _kl(rows: Rows) -> float:
    lost = [retention(np.array(r["table"]), [0, 1, 2]).forgetting for r in rows]
    return spearman(np.array([r["kl_base"][-1] for r in rows]), np.array(lost))


def surgery(rows: Rows) -> tuple[str, dict[str, Any]]:
    """Average and worst skill of mixtures, against equal weights."""
    texts, facts = [], {}
    for variant in dict.fromkeys(r["variant"] for r in rows):
        own = [r for r in rows if r["variant"] == variant]
        names = [n for n in dict.fromkeys(r["name"] for r in own) if sum(r["name"] == n for r in own) == SEEDS]
        if "equal" not in names:
            continue
        ends = {
            n: np.array([r["table"][-1] for r in sorted(own, key=lambda r: r["seed"]) if r["name"] == n]) for n in names
        }
        lines = []
        for name in names:
            mine = [r for r in own if r["name"] == name]
            spread = [np.mean([r["diversity"][k] for r in mine]) for k in ("pass@1", "pass@8", "distinct_accepted")]
            gap = ends[name].min(axis=1) - ends["equal"].min(axis=1)
            p = "" if name == "equal" else f"{sign_flip(gap, variant, name):.2f}"
            apart = "" if name == "equal" else interval(gap)
            rate = np.mean([r["conflict"] for r in mine])
            ways = [f"{number:.2f}" for number in (rate, *spread)]
            means = [interval(ends[name].mean(axis=1)), interval(ends[name].min(axis=1))]
            lines.append([name, *means, apart, p, *ways])
            worst = float(ends[name].min(axis=1).mean())
            facts[f"{variant} {name}"] = {"average": float(ends[name].mean()), "worst": worst}
        heads = ["method", "average", "worst skill", "worst − equal's", "p", "conflict rate", "pass@1", "pass@8"]
        heads += ["distinct right"]
        texts.append(f"### Mixture, {variant}\n\n" + table(heads, lines))
    return "\n".join(texts), facts


def matrix(rows: Rows) -> tuple[str, dict[str, Any]]:
    """Predicted and measured interference."""
    lines, facts = [], {}
    for at in sorted({r["after_stage"] for r in rows}):
        own = [r for r in rows if r["after_stage"] == at]
        away = ~np.eye(3, dtype=bool)
        parts = [
            np.mean([np.array(r[k])[away].mean() for r in own]) for k in ("cosine_SS", "predicted_SS", "measured_SS")
        ]
        ranks = [r["spearman"] for r in own]
        lines.append([f"after stage {at}" if at else "before training", *(f"{p:+.3f}" for p in parts), interval(ranks),
                      f"{np.mean([r['sign'] for r in own]):.2f}"])  # fmt: skip
        facts[f"stage {at}"] = {"spearman": float(np.mean(ranks))}
    heads = ["when", "mean cosine", "predicted", "measured", "Spearman", "same sign"]
    return "### Interference between skills (off the diagonal)\n\n" + table(heads, lines), facts
