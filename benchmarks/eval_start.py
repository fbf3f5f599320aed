"""Seconds from `rlvr eval` to its first judged answer, or from `rlvr train` to its first step, and to the end.

    python benchmarks/eval_start.py MODEL [--train] [--against SRC] [--rounds 4]
    python benchmarks/eval_start.py MODEL [--rounds 4] -- code path=HumanEval.jsonl.gz role_of=test --max-tokens 512

MODEL is a folder or a name as in `engine.model`. SRC is the `src` folder of another version, which takes turns with
this one. Two problems of Countdown and at most 16 tokens each, for a training eight answers to each and one update of a
LoRA: nearly all of the time is starting and ending. Rewards are random, so that there is a gradient: sixteen tokens are
too few for a right answer, and groups whose answers are all wrong would be passed over.
Words after `--` are an evaluation of your own, with absolute paths. Where other processes judge, answers have their
verdicts while others are drawn, and many are kept together: `first_verdict_s` is when the first had one,
`first_answer_s` when the first was kept.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from statistics import median
from typing import Any

from turns import children_cpu_s, environment, in_turn, refuse_without_package, sources

EVERY_S = 0.01
EXAMINE = ["eval", "countdown", "--engine", "hf", "--size", "2", "--max-tokens", "16", "-o", "out"]
TRAIN = ["train", "short.toml"]
WATCHED = """
from pathlib import Path
from rlvrlab.rollout.collect import Judging
judge = Judging._verified
def told(self, items):
    found = judge(self, items)
    Path("first_verdict").touch()
    return found
Judging._verified = told
from rlvrlab.cli import main
main()
"""
"""The command, which leaves a file when the first verdict comes from another process."""
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


def measured(source: Path, model: str, *, train: bool, words: Sequence[str] = ()) -> dict[str, float]:
    """One command, in a process of its own."""
    asked = ["eval", *words, "--engine", "hf", "-o", "out"] if words else TRAIN if train else EXAMINE
    with tempfile.TemporaryDirectory() as place:
        (Path(place) / "short.toml").write_text(RECIPE, encoding="utf-8")
        awaited, sign = ("experiments/*/logs/metrics.jsonl", b'"step": 1,') if train else ("out/samples.jsonl", b"\n")
        before, began, first, verdict = children_cpu_s(), time.perf_counter(), 0.0, 0.0
        child = subprocess.Popen(
            [sys.executable, "-c", WATCHED, *asked, f"engine.model={model}"],
            env=environment(source), cwd=place, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        while child.poll() is None:
            if not verdict and Path(place, "first_verdict").exists():
                verdict = time.perf_counter() - began
            if not first and any(sign in path.read_bytes() for path in Path(place).glob(awaited)):
                first = time.perf_counter() - began
            time.sleep(EVERY_S)
        took, cpu = time.perf_counter() - began, children_cpu_s() - before
        if child.returncode or not first:
            raise SystemExit(f"the command failed with {child.returncode}")
        if train and not has_learnt(next(Path(place).glob(awaited))):
            raise SystemExit("the update had no group to learn from, so no gradient was made")
    found = {"first_verdict_s": verdict} if verdict else {}
    found |= {"first_step_s" if train else "first_answer_s": first, "command_s": took, "cpu_s": cpu}
    return {name: round(seconds, 2) for name, seconds in found.items()}


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
    own, *words = (list(part) for divider, part in groupby(sys.argv[1:], "--".__eq__) if not divider)
    asked = parser.parse_args(own)
    model = str(Path(asked.model).resolve()) if Path(asked.model).is_dir() else asked.model
    folders = sources(asked.against)
    for folder in folders.values():
        refuse_without_package(folder)
    rounds = in_turn(
        folders,
        asked.rounds,
        lambda name: measured(folders[name], model, train=asked.train, words=words[0] if words else ()),
    )
    for name in folders:
        rows = [one[name] for one in rounds]
        medians: dict[str, Any] = {key: median(row[key] for row in rows) for key in rows[0]}
        print(json.dumps({"version": name, **medians, "rounds": rows}))


if __name__ == "__main__":
    main()
