"""What step credit costs.

    python benchmarks/credit.py [--json] [--engine toy|hf] [--steps 8] [--sft 240]

Segmentation and altering in microseconds of CPU; then training steps of studies/paper_a_credit_assignment with the
default credit (k = 4, delete and truncate) after a warm-up by SFT: seconds per step, the share that credit takes, calls
of the verifier, hit rate. hf trains the nano model and needs torch.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from rlvrlab import __version__
from rlvrlab.credit.counterfactual import Counterfactual
from rlvrlab.recipe import load_recipe
from rlvrlab.rollout.python_steps import canonical_python, python_steps
from rlvrlab.rollout.segment import segment
from rlvrlab.rollout.segments import cut
from rlvrlab.train.lab import build_lab
from rlvrlab.train.phases import online

STUDY = Path(__file__).parents[1] / "studies" / "paper_a_credit_assignment"
RECIPES = {"toy": STUDY / "toy_counterfactual.toml", "hf": STUDY / "code_counterfactual.toml"}
PROGRAM = " x=[v for v in x if v>4]\n x=[1]+x\n for v in x:\n  if v:\n   x=x+[v]\n return len(x)\n"
REPEATS = 300


def micros(work: Any) -> float:
    work()
    started = time.process_time()
    for _ in range(REPEATS):
        work()
    return round((time.process_time() - started) / REPEATS * 1e6, 1)


def parts() -> dict[str, float]:
    segments = segment(PROGRAM)
    kept = [True] * (len(segments) - 1) + [False]
    edited, rng = cut(segments, kept), np.random.default_rng(0)
    plugin, plan = Counterfactual(), Counterfactual().plan(len(segments), rng)
    return {
        "segment_us": micros(lambda: python_steps(PROGRAM)),
        "cut_us": micros(lambda: cut(segments, kept)),
        "canonical_us": micros(lambda: canonical_python.__wrapped__(edited.code)),  # without its memory
        "plan_us": micros(lambda: plugin.plan(len(segments), rng)),
        "solve_us": micros(lambda: plan.solve(np.zeros(len(plan.edits)), 1.0)),
    }


def training(engine: str, steps: int, sft: int) -> dict[str, float]:
    resolved = load_recipe(RECIPES[engine], [f"sft.steps={sft}"] if engine == "hf" else [])
    lab, spent = build_lab(resolved), []
    whole = online.step_credits

    def timed(*given: Any) -> Any:
        started = time.perf_counter()
        found = whole(*given)
        spent.append(time.perf_counter() - started)
        return found

    online.step_credits = timed
    with tempfile.TemporaryDirectory() as folder:
        for name in resolved.recipe.phases:
            phase, rows = resolved.phase(name), []
            phase.prepare(lab, Path(folder))
            for step in range(phase.steps if name == "sft" else steps):
                started = time.perf_counter()
                outcome = phase.step(lab, step)
                rows.append((time.perf_counter() - started, outcome.metrics))
    seconds = [row[0] for row in rows]
    mean = {key: float(np.mean([m[key] for _, m in rows])) for key in rows[0][1] if key.startswith("credit/")}
    return {
        "step_s": round(float(np.median(seconds)), 3),
        "credit_s": round(float(np.median(spent)), 3),
        "credit_share": round(sum(spent) / sum(seconds), 3),
        "replays": round(mean["credit/replays"], 1),
        "verifier_calls": round(mean["credit/verifier_calls"], 1),
        "hit_rate": round(mean["credit/hit_rate"], 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--engine", choices=tuple(RECIPES), default="toy")
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--sft", type=int, default=240)
    asked = parser.parse_args()
    facts = {"rlvrlab": __version__, "python": platform.python_version(), "cores": os.cpu_count()}
    result = {**facts, "parts": parts(), asked.engine: training(asked.engine, asked.steps, asked.sft)}
    print(json.dumps(result, indent=None if asked.json else 2))


if __name__ == "__main__":
    main()
