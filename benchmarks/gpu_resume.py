"""Does a run that was killed go on to the same numbers? Six steps straight, and six with a kill after the fourth.

    python benchmarks/gpu_resume.py [--device cuda|cpu] [--model nano] [--lora 8] [--json FILE]

One SFT step and six GRPO steps on Countdown, a checkpoint every third step. Each part is a process of its own; the
second kills itself (SIGKILL) when step 4 is recorded, the third resumes it from the checkpoint of step 3. Compared are
all metrics (less clocks) and the final parameters, bit by bit; what differs is named with its size. The straight run is
done twice: where those two differ already, the device and not the resume is to blame. Exit code 1 when resume differs
and the two straight runs do not.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

RECIPE = """
name = "resume"
phases = ["sft", "grpo"]
[env]
type = "countdown"
numbers = [2]
high = 30
style = "bare"
[reward]
type = "random"
[data]
train_size = 64
dev_size = 16
[rollout]
n = 8
max_tokens = 12
[kl]
coef = 0.01
[sft]
steps = 1
batch_size = 16
references = 64
[grpo]
steps = 6
batch_size = 8
minibatches = 2
learning_rate = 1e-3
[eval]
every = 3
[checkpoint]
every = 3
keep = 9
"""
KILLED_AT = 5
"""Recorded steps, the SFT step counted."""


def child(role: str, folder: Path, keys: list[str]) -> None:
    """Run, run and be killed, or resume."""
    from rlvrlab.recipe import load_recipe
    from rlvrlab.train import session

    def quiet(phase: Any, state: Any, row: dict[str, Any]) -> None:
        if role == "killed" and state.step == KILLED_AT:
            os.kill(os.getpid(), signal.SIGKILL)

    if role == "resume":
        session.resume(run_of(folder), quiet)
        return
    folder.mkdir(parents=True)
    (folder / "resume.toml").write_text(RECIPE)
    session.start(load_recipe(folder / "resume.toml", [*keys, f"output_dir={folder}"]), quiet)


def run_of(folder: Path) -> Path:
    """The only run below."""
    (found,) = folder.glob("resume_*")
    return found


def in_child(role: str, folder: Path, keys: list[str]) -> float:
    """Seconds; a process of its own."""
    start = time.perf_counter()
    words = [sys.executable, __file__, "--child", role, "--folder", str(folder), *keys]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != (-signal.SIGKILL if role == "killed" else 0):
        raise SystemExit(f"{role} ended with {done.returncode}:\n{done.stderr[-3000:]}")
    return round(time.perf_counter() - start, 1)


def metrics(folder: Path) -> list[dict[str, Any]]:
    """One table per recorded step, less the clocks."""
    lines = (run_of(folder) / "logs" / "metrics.jsonl").read_text().splitlines()
    return [{k: v for k, v in json.loads(line).items() if not k.startswith("time/")} for line in lines]


def differences(one: Path, two: Path) -> dict[str, Any]:
    """How many numbers differ, the first and the largest, and whether the last parameters are the same bytes."""
    mine, theirs = metrics(one), metrics(two)
    if len(mine) != len(theirs):
        raise SystemExit(f"{len(mine)} recorded lines and {len(theirs)}: the resumed run is not whole")
    found = [
        {"step": a["step"], "metric": key, "values": [a.get(key), b.get(key)]}
        for a, b in zip(mine, theirs, strict=True)
        for key in sorted(a.keys() | b.keys())
        if a.get(key) != b.get(key)
    ]
    last = Path("checkpoints") / f"global_step_{mine[-1]['step']}" / "actor" / "engine.safetensors"
    same = (run_of(one) / last).read_bytes() == (run_of(two) / last).read_bytes()
    return {"different": len(found), "of": sum(map(len, mine)), "first": found[:1], "same_parameters": same}


def main() -> None:
    """Two straight runs, one with a kill, compared."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--model", default="nano")
    parser.add_argument("--lora", type=int, default=8)
    parser.add_argument("--child")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--json", type=Path)
    a, keys = parser.parse_known_args()
    if a.child:
        child(a.child, a.folder, keys)
        return
    from rlvrlab.record.facts import machine, package_versions

    keys = ["engine.type=hf", f"engine.model={a.model}", f"engine.lora_rank={a.lora}", f"engine.device={a.device}"]
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        seconds = {role: in_child(role, home / role, keys) for role in ("straight", "again", "killed")}
        seconds["resume"] = in_child("resume", home / "killed", keys)
        found = {
            "resumed": differences(home / "straight", home / "killed"),
            "straight_twice": differences(home / "straight", home / "again"),
            "seconds": seconds,
            "device": a.device,
            "model": a.model,
            "lora": a.lora,
        }
    print(json.dumps(found))
    print(json.dumps({**machine(), **package_versions()}))
    if a.json:
        a.json.write_text(json.dumps(found, indent=1))
    resumed, twice = found["resumed"], found["straight_twice"]
    sys.exit(int((resumed["different"] or not resumed["same_parameters"]) and not twice["different"]))


if __name__ == "__main__":
    main()
