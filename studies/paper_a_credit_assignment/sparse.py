"""Compare step credit with group advantages on the sparse testbed.

    python studies/paper_a_credit_assignment/sparse.py [--seeds 24] [--methods NAME …] [--output FILE] [--reuse FILE]
    python studies/paper_a_credit_assignment/sparse.py --report        # the table again, from sparse_results.json

Each method's learning rate is chosen on seeds of its own, then frozen; the baselines get their best rate on the
reported seeds themselves. Paired by seed: a sign-flip permutation test on the log of trajectories against GRPO, Holm
over all comparisons.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from testbed import CAP, Method, Result, train

from rlvrlab.credit.counterfactual import Counterfactual
from rlvrlab.evals.statistics import estimate, holm, sign_flip

RATES = (0.14, 0.2, 0.28)
MORE_RATES = (0.1, 0.14, 0.17, 0.2, 0.25)
"""For the baseline, whose best rate is narrow: above it runs get stuck."""
TUNING_SEEDS = range(1000, 1012)
TUNING_CAP = 6400
DELETE = ("delete",)


class Entry(NamedTuple):
    """A method and the rates it is tried with."""

    method: Method
    rates: tuple[float, ...] = RATES
    hindsight: bool = False
    """A baseline gets the rate with the lowest median on the reported seeds themselves, which favours it."""


def _with(name: str, **keys: Any) -> Entry:
    return Entry(Method(name, credit=Counterfactual(**keys)))


ALL_DELETED: dict[str, Any] = {"intervention_types": DELETE, "counterfactual_k": 0}
ENTRIES = (
    Entry(Method("GRPO"), MORE_RATES, hindsight=True),
    Entry(Method("Dr. GRPO", "dr_grpo"), RATES, hindsight=True),
    Entry(Method("RLOO", "rloo"), RATES, hindsight=True),
    _with("delete, k=16", **ALL_DELETED),
    _with("delete, k=16, zscore", **ALL_DELETED, credit_normalization="zscore"),
    _with("delete, k=4", intervention_types=DELETE, weight=2.0),
    _with("delete + truncate, k=4", weight=2.0),
    _with("prefix, k=16", estimator="prefix", counterfactual_k=0),
    _with("Shapley, 2 orders", estimator="shapley", samples=2),
    _with("delete, k=16, redistribute", **ALL_DELETED, credit_normalization="share", mapping="redistribute"),
    _with("delete, k=16, gate", **ALL_DELETED, mapping="gate"),
    _with("step groups", estimator="step_groups"),
    _with("tail, k=16", estimator="tail", counterfactual_k=0),
    _with("vine, k=4", estimator="vine", samples=2, weight=2.0),
    _with("substitute, k=4", intervention_types=("substitute",), samples=1, weight=2.0),
)


def tuned(entry: Entry) -> tuple[float, dict[str, int]]:
    """The rate with the lowest geometric mean of trajectories on the tuning seeds."""
    scores = {}
    for rate in entry.rates:
        taken = [result.trajectories for result in train(entry.method, TUNING_SEEDS, rate, TUNING_CAP)]
        scores[rate] = float(np.exp(np.mean(np.log(taken))))
    return min(scores, key=lambda rate: scores[rate]), {f"{rate:g}": round(score) for rate, score in scores.items()}


def measured(entry: Entry, seeds: int) -> dict[str, Any]:
    """Tune one method and run it."""
    if not entry.hindsight:
        rate, tuning = tuned(entry)
        return summary(entry.method, rate, tuning, train(entry.method, range(seeds), rate))
    runs = {rate: train(entry.method, range(seeds), rate) for rate in entry.rates}
    medians = {rate: float(np.median([one.trajectories for one in found])) for rate, found in runs.items()}
    rate = min(medians, key=lambda one: medians[one])
    return summary(entry.method, rate, {f"{r:g}": round(m) for r, m in medians.items()}, runs[rate])


def summary(method: Method, rate: float, tuning: dict[str, int], results: list[Result]) -> dict[str, Any]:
    """One row."""
    taken = [result.trajectories for result in results]
    return {
        "method": method.name,
        "label": method.credit.label if method.credit else "unbiased",
        "learning_rate": rate,
        "weight": method.credit.weight if method.credit else None,
        "tuning": tuning,
        "reached": sum(result.reached for result in results),
        "median_trajectories": float(np.median(taken)),
        "least": min(taken),
        "most": max(taken),
        "median_verifier_calls": float(np.median([result.verifier_calls for result in results])),
        "median_tokens": float(np.median([result.tokens for result in results])),
        "trajectories": taken,
    }


def compared(rows: list[dict[str, Any]]) -> None:
    """Against the first row, in place."""
    base = np.log(rows[0]["trajectories"])
    p_values = []
    for row in rows[1:]:
        gain = base - np.log(row["trajectories"])
        _, low, high, *_ = estimate(gain, share=False)
        row["speedup_of_medians"] = rows[0]["median_trajectories"] / row["median_trajectories"]
        row["speedup"] = [float(np.exp(x)) for x in (gain.mean(), low, high)]
        p_values.append(sign_flip(gain, "sparse", row["method"], resamples=100_000))
    for row, p, adjusted in zip(rows[1:], p_values, holm(p_values), strict=True):
        row["p"], row["p_holm"] = p, adjusted


def table(rows: list[dict[str, Any]]) -> str:
    """In Markdown."""
    lines = [
        "| method | label | rate, weight | reached | trajectories, median [least, most] | × fewer (median) "
        "| × fewer (geometric mean, 95 %) | p | p (Holm) | verifier calls | tokens |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        spread = f"{row['median_trajectories']:.0f} [{row['least']}, {row['most']}]"
        versus = ["–"] * 4
        if "p" in row:
            mean, low, high = row["speedup"]
            versus = [
                f"{row['speedup_of_medians']:.2f}",
                f"{mean:.2f} [{low:.2f}, {high:.2f}]",
                f"{row['p']:.2g}",
                f"{row['p_holm']:.2g}",
            ]
        setting = f"{row['learning_rate']:g}" + (f", {row['weight']:g}" if row["weight"] else "")
        cells = [row["method"], row["label"], setting, f"{row['reached']}/{len(row['trajectories'])}"]
        cells += [spread, *versus, f"{row['median_verifier_calls']:.0f}", f"{row['median_tokens']:.0f}"]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def write(rows: list[dict[str, Any]], seeds: int, path: Path) -> None:
    """After every method, so that a run cut short has its results."""
    compared(rows)
    facts = {"seeds": seeds, "cap": CAP, "tuning_seeds": list(TUNING_SEEDS), "tuning_cap": TUNING_CAP}
    path.write_text(json.dumps({**facts, "methods": rows}, indent=1) + "\n")


def main() -> None:
    """Tune, run, compare, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=24)
    parser.add_argument("--methods", nargs="*", default=[])
    parser.add_argument("--output", type=Path, default=Path(__file__).with_name("sparse_results.json"))
    parser.add_argument("--reuse", type=Path, help="results of methods that need not be run again")
    parser.add_argument("--report", action="store_true", help="compare and print what --output holds; run nothing")
    asked = parser.parse_args()
    if asked.report:
        stored = json.loads(asked.output.read_text())["methods"]
        compared(stored)
        print(table(stored))
        return
    stored = json.loads(asked.reuse.read_text())["methods"] if asked.reuse else []
    known = {row["method"]: row for row in stored}
    rows, started = [], time.process_time()
    for entry in ENTRIES:
        if asked.methods and entry.method.name not in (*asked.methods, "GRPO"):
            continue
        rows.append(known.get(entry.method.name) or measured(entry, asked.seeds))
        write(rows, asked.seeds, asked.output)
        spent = time.process_time() - started
        print(f"{rows[-1]['method']}: {rows[-1]['median_trajectories']:.0f}, {spent:.0f} CPU s so far", flush=True)
    print(table(rows))


if __name__ == "__main__":
    main()
