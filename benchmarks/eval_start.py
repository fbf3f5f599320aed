"""Seconds from `rlvr eval` to its first judged answer, or from `rlvr train` to its first step, and to the end.

    python benchmarks/eval_start.py MODEL [--train] [--against SRC] [--rounds 4]

MODEL is a folder or a name as in `engine.model`. SRC is the `src` folder of another version, which takes turns with
this one. Two problems of Countdown and at most 16 tokens each, for a training eight answers to each and one update of a
LoRA: nearly all of the time is starting and ending. Rewards are random, so that there is a gradient: sixteen tokens are
too few for a right answer, and groups whose answers are all wrong would be passed over.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from turns import children_cpu_s, environment, in_turn, refuse_without_package, sources

EVERY_S = 0.01
EXAMINE = ["eval", "countdown", "--engine", "hf", "--size", "2", "--max-tokens", "16", "-o", "out"]
TRAIN = ["train", "short.toml"]
RECIPE = """
name = "start"
phases = ["grpo"]
env = {type = "countdown"}
engine = {type = "hf", model = "nano", lora_rank = 8}
reward = {type = "random"}
data = {train_size = 4, dev_size = 2}
rollout = {n = 8, max_tokens = 16}
eval = {every = 0, test_size = 2}
grpo = {steps = 1, batch_size = 2}
record = {log_interval = 1}
"""


def measured(source: Path, model: str, *, train: bool) -> dict[str, float]:
    """One command, in a process of its own."""
    with tempfile.TemporaryDirectory() as place:
        (Path(place) / "short.toml").write_text(RECIPE, encoding="utf-8")
        awaited, words = ("experiments/*/logs/metrics.jsonl", b'"step": 1,') if train else ("out/samples.jsonl", b"\n")
        before, began, first = children_cpu_s(), time.perf_counter(), 0.0
        child = subprocess.Popen(
            [sys.executable, "-m", "rlvrlab", *(TRAIN if train else EXAMINE), f"engine.model={model}"],
            env=environment(source), cwd=place, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        while child.poll() is None:
            if not first and any(words in path.read_bytes() for path in Path(place).glob(awaited)):
                first = time.perf_counter() - began
            time.sleep(EVERY_S)
        took, cpu = time.perf_counter() - began, children_cpu_s() - before
        if child.returncode or not first:
            raise SystemExit(f"the command failed with {child.returncode}")
        if train and not has_learnt(next(Path(place).glob(awaited))):
            raise SystemExit("the update had no group to learn from, so no gradient was made")
    awaited = "first_step_s" if train else "first_answer_s"
    return {awaited: round(first, 2), "command_s": round(took, 2), "cpu_s": round(cpu, 2)}


def has_learnt(metrics: Path) -> bool:
    """Had the only step a group whose answers earned different rewards?"""
    last: dict[str, Any] = json.loads(metrics.read_text(encoding="utf-8").splitlines()[-1])
    return last.get("groups/live", 0) > 0 and "actor/grad_norm" in last


def main() -> None:
    """Print the medians and every round."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--train", action="store_true")
    parser.add_argument("--against", type=Path)
    parser.add_argument("--rounds", type=int, default=4)
    asked = parser.parse_args()
    model = str(Path(asked.model).resolve()) if Path(asked.model).is_dir() else asked.model
    folders = sources(asked.against)
    for folder in folders.values():
        refuse_without_package(folder)
    rounds = in_turn(folders, asked.rounds, lambda name: measured(folders[name], model, train=asked.train))
    for name in folders:
        rows = [one[name] for one in rounds]
        medians: dict[str, Any] = {key: median(row[key] for row in rows) for key in rows[0]}
        print(json.dumps({"version": name, **medians, "rounds": rows}))


if __name__ == "__main__":
    main()
