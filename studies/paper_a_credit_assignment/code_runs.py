"""Step credit against GRPO on minicode with nano: equal generated tokens, and equal calls of the verifier.

    python studies/paper_a_credit_assignment/code_runs.py start 0 1 2 3            # SFT, once per seed
    python studies/paper_a_credit_assignment/code_runs.py list 0 1 2 3 | xargs -P 2 -L 1 \\
        python studies/paper_a_credit_assignment/code_runs.py run                  # every arm from the same start
    python studies/paper_a_credit_assignment/code_runs.py report                   # code_results.json and the table

An arm trains until it has spent both budgets, and is examined (greedy, held-out problems) where it spends each of them.
Tokens are those generated, continuations included; calls are different programs handed to the verifier, the answers'
own and replays. Intervals resample seeds and, within them, problems; every difference is paired by both.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections import deque
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rlvrlab.evals.by_skill import evaluate_skills
from rlvrlab.evals.statistics import compare_seeds, holm, sign_flip
from rlvrlab.recipe import load_recipe
from rlvrlab.train.lab import Lab, build_lab
from rlvrlab.train.loop import bare_steps
from rlvrlab.types import Problem, Verdict

HERE = Path(__file__).parent
WORK = HERE.parents[1] / ".cache" / "paper_a"
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


def start(seed: int) -> None:
    """The policy that every arm of a seed begins with."""
    lab = build_lab(recipe(seed, ['phases=["sft"]']))
    deque(bare_steps(lab, lab.resolved.phase("sft"), WORK), maxlen=0)
    lab.engine.publish()
    lab.engine.save(WORK / f"start_{seed}")
    found = evaluate_skills(lab.engine, lab.env, lab.dev, lab.recipe.rollout.max_tokens)
    print(f"start {seed}: {found.value:.3f} of {HELD_OUT} held-out problems")


class Spent:
    """Counts what an arm asks for, from outside."""

    def __init__(self, lab: Lab) -> None:
        self.tokens = self.calls = 0
        sample, verify_many = lab.engine.sample, type(lab.env).verify_many
        self.on = True

        def sampled(requests: Any) -> Any:
            found = sample(requests)
            self.tokens += self.on * sum(len(answer.tokens) for group in found for answer in group)
            return found

        def verified(env: Any, items: list[tuple[Problem, str]]) -> list[Verdict]:
            self.calls += self.on * len(items)
            return verify_many(env, items)

        lab.engine.sample = sampled
        type(lab.env).verify_many = verified

    def within(self, budget: str) -> bool:
        """Is some of it left?"""
        return getattr(self, budget) < BUDGETS[budget]


def examined(lab: Lab, spent: Spent, step: int, started: float) -> dict[str, Any]:
    """Greedy answers to the held-out problems; not counted."""
    from rlvrlab.evals.answering import EngineAnswerer
    from rlvrlab.evals.evaluate import evaluate
    from rlvrlab.evals.protocol import eval_at_1

    spent.on = False
    protocol = replace(eval_at_1(lab.recipe.rollout.max_tokens), run_timeout_s=None, memory_mb=None)
    found = evaluate(EngineAnswerer(lab.engine), lab.env, lab.dev, protocol)
    spent.on = True
    right = "".join("01"[one.verdict.correct is True] for one in sorted(found.judged, key=lambda one: one.problem.id))
    facts = {"step": step, "tokens": spent.tokens, "calls": spent.calls, "seconds": round(time.time() - started, 1)}
    return {**facts, "accuracy": right.count("1") / len(right), "right": right}


def run(arm: str, seed: int, output: Path, steps: int = 1000) -> None:
    """One arm; written after every examination, so that a run cut short has its results."""
    import torch

    torch.set_num_threads(1)
    words = [
        'phases=["grpo"]',
        f"engine.model={WORK / f'start_{seed}' / 'huggingface'}",
        "optimizer.warmup_steps=0",
        "optimizer.decay=constant",
        *ARMS[arm],
    ]
    lab = build_lab(recipe(seed, [*words, f"grpo.steps={steps}"]))
    phase, spent, started = lab.resolved.phase("grpo"), Spent(lab), time.time()
    lab.engine.freeze_reference()
    found = {"start": examined(lab, spent, 0, started)}
    row = {
        "arm": arm,
        "seed": seed,
        "machine": f"{os.sysconf('SC_NPROCESSORS_ONLN')} × {platform.machine()}",
        "examined": found,
    }
    accuracy, path = [], output / f"{arm.replace(', ', '_').replace(' ', '')}_{seed}.json"
    for step, outcome in enumerate(bare_steps(lab, phase, WORK)):
        accuracy.append(round(outcome.metrics.get("train/acc", float("nan")), 4))
        for budget in [budget for budget in BUDGETS if budget not in found]:
            if not spent.within(budget):
                found[budget] = examined(lab, spent, step + 1, started)
        if step % 10 == 9:
            write(path, {**row, "train": accuracy})
        if found.keys() >= BUDGETS.keys():
            break
    write(path, {**row, "train": accuracy})
    print(f"{arm} {seed}: {len(accuracy)} steps, {(time.time() - started) / len(accuracy):.2f} s each")


def write(path: Path, row: dict[str, Any]) -> None:
    """Whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_suffix(".draft").write_text(json.dumps(row))
    path.with_suffix(".draft").replace(path)


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
    """start, list, run or report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=("start", "list", "run", "report"))
    parser.add_argument("names", nargs="*", help="seeds; of run: arm and seed")
    parser.add_argument("--output", type=Path, default=WORK / "runs")
    parser.add_argument("--steps", type=int, default=1000)
    asked = parser.parse_args()
    if asked.verb == "start":
        for seed in asked.names:
            start(int(seed))
    elif asked.verb == "list":
        print("\n".join(f'"{arm}" {seed}' for seed in asked.names for arm in ARMS))
    elif asked.verb == "run":
        run(asked.names[0], int(asked.names[1]), asked.output, asked.steps)
    else:
        rows = [json.loads(path.read_text()) for path in sorted(asked.output.glob("*.json"))]
        kept = HERE / "code_results.json"
        if rows:
            kept.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")
        print(report(json.loads(kept.read_text())))


if __name__ == "__main__":
    main()
