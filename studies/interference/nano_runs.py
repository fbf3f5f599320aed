"""Interference between skills of nano: one skill after the other, under every guard.

    python studies/interference/nano_runs.py start minicode 0 1 2        # SFT on all skills, once per seed
    python studies/interference/nano_runs.py list minicode 0 1 2 | xargs -P 2 -L 1 \\
        python studies/interference/nano_runs.py run                     # every arm from the same start
    python studies/interference/nano_runs.py report                      # results/nano.jsonl, results/nano.md

`minicode` trains gen, fix, out in turn, and nobody trains min; `long` does so in longer stages with twice the learning
rate, where much is forgotten; `tasks` trains gen, Countdown's numbers and SQL in turn; `mixture` trains all skills of
minicode at once, 8 : 4 : 2 : 1, with the gradients of groups combined in several ways (../paper_b_conflict_aware).
Success is greedy, on held-out problems, before and after every stage. `alone` trains a later skill from the start, for
intransigence. Intervals are for new seeds; differences are paired by seed and problem.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import time
from collections import deque
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from nano_worlds import WORLDS, arms

from rlvrlab.evals.answering import EngineAnswerer
from rlvrlab.evals.evaluate import evaluate
from rlvrlab.evals.protocol import eval_at_1
from rlvrlab.recipe import load_recipe
from rlvrlab.train.lab import Lab, build_lab
from rlvrlab.train.loop import bare_steps

HERE = Path(__file__).parent
WORK = HERE.parents[1] / ".cache" / "interference"
START = (
    "sft.steps=500",
    "sft.batch_size=48",
    "sft.learning_rate=3e-3",
    "optimizer.beta2=0.95",
    "optimizer.warmup_steps=20",
)
"""Four skills at once need more SFT than one."""


WATCHED = ("train/acc", "surgery/conflict_rate", "surgery/permutation_p", "surgery/self_cosine", "guard/violation",
           "guard/correction")  # fmt: skip
HELD_OUT = 150
"""Per skill."""


def recipe(name: str, seed: int, words: list[str]) -> Any:
    """nano.toml in this world, with data and training of this seed."""
    world = WORLDS[name]
    sizes = [f"data.train_size={len(world.skills) * 500}", f"data.dev_size={len(world.skills) * HELD_OUT}"]
    return load_recipe(HERE / "nano.toml", [f"seed={seed}", f"data.seed={seed}", *sizes, *world.words, *words])


def start(name: str, seed: int) -> None:
    """The policy that every arm of a seed begins with."""
    from rlvrlab.engines.hf.store import export

    lab = build_lab(recipe(name, seed, ['phases=["sft"]', *START, f"sft.references={len(WORLDS[name].skills) * 350}"]))
    deque(bare_steps(lab, lab.resolved.phase("sft"), WORK), maxlen=0)
    lab.engine.publish()
    export(WORK / f"{name}_{seed}", lab.engine.model, lab.engine.tokenizer, quantized=False)
    print(name, seed, {skill: round(np.mean([b == "1" for b in right]), 3) for skill, right in rights(lab).items()})


def rights(lab: Lab) -> dict[str, str]:
    """Per skill the outcome of each held-out problem, greedy."""
    protocol = replace(eval_at_1(lab.recipe.rollout.max_tokens), run_timeout_s=None, memory_mb=None)
    found = evaluate(EngineAnswerer(lab.engine), lab.env, lab.dev, protocol)
    ordered = sorted(found.judged, key=lambda one: one.problem.id)
    skills = dict.fromkeys(problem.skill for problem in lab.dev)
    return {
        skill: "".join("01"[one.verdict.correct is True] for one in ordered if one.problem.skill == skill)
        for skill in skills
    }


def run(name: str, arm: str, seed: int, output: Path, stage: int) -> None:
    """One arm; written after every stage, so that a run cut short has its results."""
    import torch

    torch.set_num_threads(1)
    world, started = WORLDS[name], time.time()
    count = 1 if arm.startswith("alone") or world.surgeries else len(world.order)
    model = f"engine.model={WORK / f'{world.start or name}_{seed}'}"
    words = ['phases=["grpo"]', model, f"grpo.steps={count * stage}", *arms(world)[arm]]
    lab = build_lab(recipe(name, seed, words))
    phase = lab.resolved.phase("grpo")
    lab.engine.fresh_optimizer()
    lab.engine.freeze_reference()
    row: dict[str, Any] = {"world": name, "arm": arm, "seed": seed, "rights": [rights(lab)], "watched": {}}
    row["machine"] = f"{os.sysconf('SC_NPROCESSORS_ONLN')} × {platform.machine()}"
    watched: dict[str, list[float]] = {}
    path = output / f"{name}_{re.sub('[^a-z0-9.-]+', '_', arm)}_{seed}.json"
    for step, outcome in enumerate(bare_steps(lab, phase, WORK)):
        for key, value in outcome.metrics.items():
            if key.startswith(WATCHED) or key.endswith("/self_cosine"):
                watched.setdefault(key, []).append(value)
        if (step + 1) % stage == 0:
            row["rights"].append(rights(lab))
            row["watched"] = {key: round(float(np.mean(values)), 5) for key, values in watched.items()}
            row["seconds"] = round(time.time() - started, 1)
            write(path, row)


def write(path: Path, row: dict[str, Any]) -> None:
    """Whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_suffix(".draft").write_text(json.dumps(row))
    path.with_suffix(".draft").replace(path)


def main() -> None:
    """start, list, run or report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=("start", "list", "run", "report"))
    parser.add_argument("names", nargs="*", help="world and seeds; of run: world, arm and seed")
    parser.add_argument("--output", type=Path, default=WORK / "runs")
    parser.add_argument("--stage", type=int, help="GRPO steps per skill, if not the world's own")
    asked = parser.parse_args()
    if asked.verb == "start":
        for seed in asked.names[1:]:
            start(asked.names[0], int(seed))
    elif asked.verb == "list":
        print(
            "\n".join(
                f"{asked.names[0]} '{arm}' {seed}" for seed in asked.names[1:] for arm in arms(WORLDS[asked.names[0]])
            )
        )
    elif asked.verb == "run":
        stage = asked.stage or WORLDS[asked.names[0]].stage
        run(asked.names[0], asked.names[1], int(asked.names[2]), asked.output, stage)
    else:
        kept = HERE / "results" / "nano.jsonl"
        lines = [*kept.read_text().splitlines(), *(path.read_text() for path in sorted(asked.output.glob("*.json")))]
        rows = {(row["world"], row["arm"], row["seed"]): row for row in map(json.loads, lines)}
        kept.write_text("".join(json.dumps(row) + "\n" for row in rows.values()))
        from nano_report import report

        text = report(list(rows.values()))
        kept.with_suffix(".md").write_text(text)
        print(text)


if __name__ == "__main__":
    main()
