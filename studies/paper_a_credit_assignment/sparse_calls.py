"""Step credit against GRPO at equal verifier calls on the sparse testbed, as sparse_calls.md declares it.

    python studies/paper_a_credit_assignment/sparse_calls.py tuning        # then: choose, final, report

Every finished run is a line of sparse_calls.jsonl; lines already there are not run again.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np
from equal_calls_report import difference, sign_flips
from sparse import THRESHOLD, success

from rlvrlab.evals.statistics import holm
from rlvrlab.recipe import Resolved, load_recipe
from rlvrlab.train.lab import build_lab
from rlvrlab.train.loop import bare_steps

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent))
from job_lines import Row, rows_of, run_missing  # noqa: E402

CALLS, LOOK_EVERY = 4800, 128
"""After so many a run is given up; after so many more it is looked at again."""
TUNING, FINAL = (1100, 1101, 1102), tuple(range(100, 116))
LINES, CHOSEN = HERE / "sparse_calls.jsonl", HERE / "sparse_calls_chosen.json"
BASELINE, STEADY = "grpo", 2
"""The fastest of GRPO's candidates that got there on every tuning seed: a second baseline, sparse_calls.md says why."""
AFTERWARDS = ("tree", 1)
"""The tree at GRPO's steady rate was run when the results were known: described, not tested."""
RATES = (0.02, 0.028, 0.04)
TREE = ("rollout.type=tree", "credit.type=tree", "credit.boundary=tokens")
REPLAYS = ("credit.type=doubly_robust", "credit.segmentation=characters")
Job = tuple[str, int, int]
"""Arm, candidate and seed."""


def rated(rates: tuple[float, ...], *words: str) -> list[tuple[str, ...]]:
    """One candidate for each learning rate."""
    return [(*words, f"grpo.learning_rate={rate}") for rate in rates]


CANDIDATES: dict[str, list[tuple[str, ...]]] = {
    BASELINE: rated((0.014, 0.02, 0.028, 0.04, 0.056, 0.08)),
    "tree": [
        *rated(RATES, *TREE, "credit.branches=[4, 2]", "credit.every=8"),
        *rated(RATES, *TREE, "credit.branches=[2, 2, 2]", "credit.every=5"),
    ],
    "doubly_robust": [
        *rated(RATES, *REPLAYS, "credit.weight=1"),
        *rated(RATES, *REPLAYS, "credit.weight=0.25"),
    ],
}


def recipe(job: Job) -> Resolved:
    """The testbed's recipe with a candidate, and tasks of this seed."""
    arm, candidate, seed = job
    words = [f"seed={seed}", f"env.world={seed}", f"grpo.steps={CALLS}", *CANDIDATES[arm][candidate]]
    return load_recipe(HERE / "sparse.toml", words)


def run(job: Job) -> Row:
    """The product's steps until 80 % of sampled answers are right, or until the calls are spent."""
    started, resolved = time.process_time(), recipe(job)
    lab = build_lab(resolved)
    lab.engine.fresh_optimizer()
    lab.engine.freeze_reference()
    calls = looked = answers = 0
    reached = False
    for step, outcome in enumerate(bare_steps(lab, resolved.phase("grpo"), HERE), start=1):
        answers += len(outcome.rollouts)
        calls += len(outcome.rollouts) + int(outcome.metrics.get("credit/verifier_calls", 0))
        if calls - looked >= LOOK_EVERY:
            looked, reached = calls, success(lab, step) >= THRESHOLD
        if reached or calls >= CALLS:
            break
    facts = {"reached": reached, "calls": calls if reached else CALLS, "answers": answers, "steps": step}
    arm, candidate, seed = job
    seconds = round(time.process_time() - started, 2)
    return {"arm": arm, "candidate": candidate, "seed": seed, **facts, "cpu_s": seconds}


def name_of(row: Row) -> str:
    """What tells a run from all others."""
    return f"{row['arm']} {row['candidate']} {row['seed']}"


def chosen(rows: list[Row]) -> dict[str, int]:
    """The candidate of each arm with the lowest geometric mean of calls on the tuning seeds."""
    calls = {name_of(row): row["calls"] for row in rows}
    return {
        arm: int(np.argmin([np.mean([np.log(calls[f"{arm} {k} {s}"]) for s in TUNING]) for k in range(len(some))]))
        for arm, some in CANDIDATES.items()
    }


def contestants(settings: dict[str, int]) -> list[tuple[str, int]]:
    """Arms with their settings; the baselines come first, what was added afterwards last."""
    others = [(arm, settings[arm]) for arm in CANDIDATES if arm != BASELINE]
    return [*dict.fromkeys([(BASELINE, settings[BASELINE]), (BASELINE, STEADY), *others, AFTERWARDS])]


def report(rows: list[Row], settings: dict[str, int]) -> str:
    """What each arm took on the final seeds, and the calls of either GRPO over its own."""
    by, entered = {name_of(row): row for row in rows}, contestants(settings)
    found = {(arm, k): [by[f"{arm} {k} {seed}"] for seed in FINAL] for arm, k in entered}
    log_calls = {one: np.log([row["calls"] for row in own]) for one, own in found.items()}
    bases = [one for one in entered if one[0] == BASELINE]
    gain = {(one, base): log_calls[base] - log_calls[one] for one in entered if one not in bases for base in bases}
    p = {pair: sign_flips(gain_S) for pair, gain_S in gain.items() if pair[0] != AFTERWARDS}
    adjusted = dict(zip(p, holm(list(p.values())), strict=True))
    head = ["arm", "setting", "reached", "calls, median [least, most]", "answers, median"]
    head += [
        f"× fewer calls than GRPO at {CANDIDATES[BASELINE][k][0].partition('=')[2]} [95 %], p (Holm)" for _, k in bases
    ]
    lines = [head, ["---"] * len(head)]
    for one, own in found.items():
        calls = [row["calls"] for row in own]
        spread = f"{np.median(calls):.0f} [{min(calls)}, {max(calls)}]"
        setting = " ".join(word for word in CANDIDATES[one[0]][one[1]] if word not in (*TREE, *REPLAYS))
        facts = [one[0], setting, f"{sum(row['reached'] for row in own)}/{len(own)}", spread]
        pairs = [(one, base) for base in bases]
        versus = [_factor(gain[x], p.get(x), adjusted.get(x)) if x in gain else "" for x in pairs]
        lines.append([*facts, f"{np.median([row['answers'] for row in own]):.0f}", *versus])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _factor(gain_S: np.ndarray, p: float | None, adjusted: float | None) -> str:
    mean, low, high = np.exp(difference(gain_S))
    return f"{mean:.2f} [{low:.2f}, {high:.2f}], " + ("not tested" if p is None else f"{p:.3f} ({adjusted:.3f})")


def main() -> None:
    """tuning, choose, final or report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=("tuning", "choose", "final", "report"))
    parser.add_argument("--processes", type=int, default=1)
    asked = parser.parse_args()
    if asked.verb == "choose":
        CHOSEN.write_text(json.dumps(chosen(rows_of(LINES)), indent=1) + "\n")
        print(CHOSEN.read_text(), end="")
    elif asked.verb == "report":
        print(report(rows_of(LINES), json.loads(CHOSEN.read_text())))
    else:
        tuning = [(arm, k, seed) for seed in TUNING for arm, some in CANDIDATES.items() for k in range(len(some))]
        settings = json.loads(CHOSEN.read_text()) if asked.verb == "final" else {}
        jobs = [(*one, seed) for seed in FINAL for one in contestants(settings)] if settings else tuning
        run_missing(LINES, {" ".join(map(str, job)): job for job in jobs}, run, name_of, asked.processes)


if __name__ == "__main__":
    main()
