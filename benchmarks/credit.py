"""What step credit costs.

    python benchmarks/credit.py [--json] [--engine toy|hf|smollm2] [--steps 12] [--sft 240] [--arms grpo,tree,trace]

Segmentation and altering in microseconds of CPU; then training steps of studies/paper_a_credit_assignment after a
warm-up by SFT, with k = 4 and several choices of what is replayed: the share of a step that credit takes, in CPU
seconds of all processes involved, the judge's included; calls of the verifier; hit rate. hf trains nano, smollm2 a
LoRA of SmolLM2-135M (`rlvr model get smollm2-135m`; some six minutes with --steps 2 --sft 20); both need torch.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from collections import deque
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rlvrlab import __version__
from rlvrlab.credit.counterfactual import Counterfactual
from rlvrlab.recipe import load_recipe
from rlvrlab.rollout.python_steps import canonical_python, python_steps
from rlvrlab.rollout.segment import segment
from rlvrlab.rollout.segments import cut
from rlvrlab.train import step as online
from rlvrlab.train.lab import build_lab
from rlvrlab.train.loop import bare_steps
from rlvrlab.train.state import Memory, State

STUDY = Path(__file__).parents[1] / "studies" / "paper_a_credit_assignment"
CODE = STUDY / "code_counterfactual.toml"
RECIPES = {"toy": STUDY / "toy_counterfactual.toml", "hf": CODE, "smollm2": CODE}
WORDS = {
    "toy": [],
    "hf": ["data.train_size=2000"],
    "smollm2": [
        *("engine.model=smollm2-135m", "engine.lora_rank=16", "sft.batch_size=16", "sft.learning_rate=5e-4"),
        *("data.train_size=2000", "data.dev_size=20", "sft.references=960", "grpo.batch_size=4"),
        *("grpo.learning_rate=5e-5", "optimizer.warmup_steps=5"),
    ],
}
PROGRAM = " x=[v for v in x if v>4]\n x=[1]+x\n for v in x:\n  if v:\n   x=x+[v]\n return len(x)\n"
REPEATS, WARM = 300, 1
DELETE = 'credit.intervention_types=["delete"]'
CHOICES = ("all", "earning", "live")
REPLAYS = {"delete, all": [DELETE], **{f"delete + truncate, {one}": [f"credit.examined={one}"] for one in CHOICES}}
OTHERS = {name: [f"credit.type={name}"] for name in ("tree", "trace", "doubly_robust")}
ARMS = {"grpo": ["credit.weight=0", "credit.estimator=step_groups"], **REPLAYS, **OTHERS}
"""grpo is credit that changes nothing and replays nothing."""
SLOW = ("delete + truncate, all", "delete + truncate, earning")
"""The arms of a model whose steps take half a minute."""
COUNTED = ("examined", "replays", "verifier_calls", "hit_rate", "nonzero", "asked", "traced")


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


def cpu_seconds(pid: int | None = None) -> float:
    """CPU time of a process and all below it, living and ended: the judge works in children of its own."""
    pid = pid or os.getpid()
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    total = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError):  # a thread that ended meanwhile has no children any more
            total += sum(cpu_seconds(int(child)) for child in (task / "children").read_text().split())
    return total


class Meter:
    """Seconds and counts of one arm."""

    def __init__(self) -> None:
        self.step_s, self.credit_s, self.metrics = list[float](), list[float](), list[dict[str, float]]()

    def figures(self) -> dict[str, float]:
        mean = {key: float(np.mean([m.get(f"credit/{key}", 0.0) for m in self.metrics])) for key in COUNTED}
        return {
            "credit_share": round(sum(self.credit_s) / sum(self.step_s), 3),
            "step_cpu_s": round(float(np.mean(self.step_s)), 3),
            "credit_cpu_s": round(float(np.mean(self.credit_s)), 3),
            **{key: round(value, 3) for key, value in mean.items()},
        }


def training(engine: str, steps: int, sft: int, names: str) -> dict[str, dict[str, float]]:
    """The arms take turns, step by step, on one policy, so that load and progress hit all alike."""
    words = WORDS[engine] + ([f"sft.steps={sft}"] if engine != "toy" else [])
    lab = build_lab(load_recipe(RECIPES[engine], words))
    wanted = names.split(",") if names else SLOW if engine == "smollm2" else REPLAYS
    chosen = {name: ARMS[name] for name in wanted}
    arms = {name: replace(lab, resolved=load_recipe(RECIPES[engine], [*words, *more])) for name, more in chosen.items()}
    meters, whole, now = {name: Meter() for name in arms}, online.credit_of, Meter()
    memories = {name: Memory() for name in arms}

    def timed(*given: Any) -> Any:
        started = cpu_seconds()
        found = whole(*given)
        now.credit_s.append(cpu_seconds() - started)
        return found

    online.credit_of = timed
    with tempfile.TemporaryDirectory() as folder:
        for name in lab.recipe.phases:
            phase = lab.resolved.phase(name)
            if not phase.online:
                deque(bare_steps(lab, phase, Path(folder)), maxlen=0)
        turns = [(turn, arm) for turn in range(WARM + steps) for arm in arms]
        for step, (turn, arm) in enumerate(turns):  # other problems each time: the judge remembers what it has judged
            now, started = (meters[arm] if turn >= WARM else Meter()), cpu_seconds()
            state = State(phase_step=step, step=step)
            outcome = phase.step(arms[arm], phase.prepare(lab, Path(folder)), state, memories[arm])
            memories[arm] = outcome.memory
            now.metrics.append(outcome.metrics)
            now.step_s.append(cpu_seconds() - started)
            print(f"{arm}, step {turn}: {now.credit_s[-1]:.2f} of {now.step_s[-1]:.2f} CPU s", file=sys.stderr)
    return {name: meter.figures() for name, meter in meters.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--engine", choices=tuple(RECIPES), default="toy")
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--sft", type=int, default=240)
    parser.add_argument("--arms", default="", help="some of them, separated by commas; by default those of replays")
    asked = parser.parse_args()
    facts = {"rlvrlab": __version__, "python": platform.python_version(), "cores": os.cpu_count()}
    result = {**facts, "parts": parts(), asked.engine: training(asked.engine, asked.steps, asked.sft, asked.arms)}
    print(json.dumps(result, indent=None if asked.json else 2))


if __name__ == "__main__":
    main()
