"""Step credit against GRPO on minicode with nano: equal generated tokens, and equal calls of the verifier.

    python studies/paper_a_credit_assignment/code_runs.py start 0 1 2 3 --processes 2    # SFT, once per seed
    python studies/paper_a_credit_assignment/code_runs.py run 0 1 2 3 --processes 2      # every arm from the same start
    python studies/paper_a_credit_assignment/code_runs.py report                         # the table, code_results.json

An arm trains until it has spent both budgets, and is examined (greedy, held-out problems) where it spends each of them.
Tokens are those generated, continuations included; calls are different programs handed to the verifier, the answers'
own and replays. Intervals resample seeds and, within them, problems; every difference is paired by both.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from spending import MACHINE, WORK, Spent, examined, from_start, pretrained, spending

from rlvrlab.evals.statistics import compare_seeds, holm, sign_flip
from rlvrlab.recipe import load_recipe
from rlvrlab.train.lab import build_lab
from rlvrlab.train.loop import bare_steps

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent))
from job_lines import Row, rows_of, run_missing  # noqa: E402

STARTS, RUNS, RESULTS = WORK / "starts.jsonl", WORK / "runs.jsonl", HERE / "code_results.json"
TOKENS, CALLS = 350_000, 14_000
"""GRPO spends the tokens in about 130 steps of 32 problems with 8 answers each, the calls in about 180."""
BUDGETS = {"tokens": TOKENS, "calls": CALLS}
HELD_OUT = 300
SHORT = ("sft.references=250", "sft.steps=200")
"""Less SFT than the recipe's: on a policy that solves most problems anyway there is little to tell apart."""
CREDIT = "credit.type=counterfactual"
DELETE = 'credit.intervention_types=["delete"]'
ARMS: dict[str, list[str]] = {
    "grpo": [],
    "rloo": ["advantage.type=rloo"],
    "delete + truncate": [CREDIT],
    "delete + truncate, earning": [CREDIT, "credit.examined=earning"],
    "delete, zscore, earning": [CREDIT, DELETE, "credit.examined=earning", "credit.credit_normalization=zscore"],
    "step groups": [CREDIT, "credit.estimator=step_groups"],
    "substitute": [CREDIT, 'credit.intervention_types=["substitute"]', "credit.samples=1"],
    "vine": [CREDIT, "credit.estimator=vine", "credit.counterfactual_k=2", "credit.samples=4"],
}


def recipe(seed: int, words: list[str]) -> Any:
    """The study's recipe with data and training of this seed."""
    given = [f"seed={seed}", f"data.seed={seed}", "data.train_size=4000", f"data.dev_size={HELD_OUT}", *SHORT, *words]
    return load_recipe(HERE / "code_grpo.toml", given)


def start(seed: int) -> Row:
    """The policy that every arm of a seed begins with."""
    return {"seed": seed, "accuracy": pretrained(recipe(seed, ['phases=["sft"]']), WORK / f"start_{seed}")[1]}


def run(job: tuple[str, int, int]) -> Row:
    """One arm of a seed, up to the step in which both budgets are spent, or to the last of `steps`."""
    arm, seed, steps = job
    lab = build_lab(recipe(seed, [*from_start(WORK / f"start_{seed}", steps), *ARMS[arm]]))
    lab.engine.freeze_reference()
    accuracy = []
    with spending(lab) as spent:
        found = {"start": examined(lab, spent, 0)}
        for step, outcome in enumerate(bare_steps(lab, lab.resolved.phase("grpo"), WORK)):
            accuracy.append(round(outcome.metrics.get("train/acc", float("nan")), 4))
            for budget in [budget for budget in BUDGETS if budget not in found and not within(budget, spent)]:
                found[budget] = examined(lab, spent, step + 1)
            if found.keys() >= BUDGETS.keys():
                break
    return {"arm": arm, "seed": seed, "machine": MACHINE, "examined": found, "train": accuracy}


def within(budget: str, spent: Spent) -> bool:
    """Is some of it left?"""
    return {"tokens": spent.tokens, "calls": spent.calls}[budget] < BUDGETS[budget]


def bits(row: dict[str, Any], at: str) -> np.ndarray:
    """Outcome of each held-out problem."""
    return np.array([int(one) for one in row["examined"][at]["right"]], dtype=np.float64)


def report(rows: list[dict[str, Any]]) -> str:
    """Each arm minus GRPO at both budgets."""
    by = {(row["arm"], row["seed"]): row for row in rows}
    lines = ["| arm | budget | seeds | steps | tokens | calls | accuracy | minus GRPO [95 %] | p over seeds (Holm) |"]
    lines.append("|---" * 9 + "|")
    for budget in BUDGETS:
        cells, p_values = [], []
        for arm in ARMS:
            seeds = [s for a, s in by if a == arm and budget in by[a, s]["examined"]]
            seeds = sorted(s for s in seeds if budget in by.get(("grpo", s), {"examined": {}})["examined"])
            if not seeds:
                continue
            mine = np.stack([bits(by[arm, s], budget) for s in seeds])
            base = np.stack([bits(by["grpo", s], budget) for s in seeds])
            spent = [by[arm, s]["examined"][budget] for s in seeds]
            means = [f"{np.mean([one[k] for one in spent]):,.0f}" for k in ("step", "tokens", "calls")]
            versus = ""
            if arm != "grpo":
                found = compare_seeds(base, mine, paired=True)
                versus = f"{100 * found.mean:+.1f} [{100 * found.low:+.1f}, {100 * found.high:+.1f}]"
                p_values.append(sign_flip((mine - base).mean(axis=1), budget, arm))
            cells.append([arm, budget, str(len(seeds)), *means, f"{100 * mine.mean():.1f}", versus])
        adjusted = iter(zip(p_values, holm(p_values), strict=True))
        for line in cells:
            p = "" if line[0] == "grpo" else "{:.2f} ({:.2f})".format(*next(adjusted))
            lines.append(f"| {' | '.join([*line, p])} |")
    return "\n".join(lines)


def main() -> None:
    """start, run or report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=("start", "run", "report"))
    parser.add_argument("seeds", nargs="*", type=int)
    parser.add_argument("--processes", type=int, default=1, help="runs at a time; finished ones are not run again")
    parser.add_argument("--steps", type=int, default=1000)
    asked = parser.parse_args()
    if asked.verb == "start":
        run_missing(STARTS, {str(s): s for s in asked.seeds}, start, lambda row: str(row["seed"]), asked.processes)
    elif asked.verb == "run":
        jobs = {f"{arm} {seed}": (arm, seed, asked.steps) for seed in asked.seeds for arm in ARMS}
        run_missing(RUNS, jobs, run, lambda row: f"{row['arm']} {row['seed']}", asked.processes)
    else:
        if rows := rows_of(RUNS):
            RESULTS.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")
        print(report(json.loads(RESULTS.read_text())))


if __name__ == "__main__":
    main()
