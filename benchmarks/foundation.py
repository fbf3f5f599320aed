"""The foundation's figures: how fast `rlvr --help` answers, 200 toy GRPO steps, what of the package a toy run loads.

    python benchmarks/foundation.py [--json] [--fresh]

`--fresh` also clones the repository into an empty folder and times `make quick` there, install included.
CPU time where it says so; wall time depends on what else the machine is doing, so its load is printed beside it.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from rlvrlab.record.facts import machine, package_versions

ROOT = Path(__file__).resolve().parents[1]
RLVR = Path(sys.executable).parent / "rlvr"
STARTS = 15


def cpu_of(words: list[str]) -> float:
    """CPU seconds of one child process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def help_time() -> dict[str, Any]:
    """`rlvr --help` beside a bare interpreter, taking turns."""
    pairs = [(cpu_of([str(RLVR), "--help"]), cpu_of([sys.executable, "-c", "pass"])) for _ in range(STARTS)]
    ours, bare = (statistics.median(column) for column in zip(*pairs, strict=True))
    return {"what": "rlvr --help", "cpu_ms": 1000 * ours, "bare_python_cpu_ms": 1000 * bare, "asked": "≤ 150 ms CPU"}


def grpo_time(steps: int = 200) -> dict[str, Any]:
    """The shipped recipe's GRPO phase, 16 problems × 8 answers, with everything recorded and checkpointed."""
    with tempfile.TemporaryDirectory() as folder:
        words = [str(RLVR), "train", str(ROOT / "recipes/toy_countdown.toml"), f"output_dir={folder}",
                 f"grpo.steps={steps}", "grpo.batch_size=16", "rollout.n=8", "--json"]  # fmt: skip
        started = time.perf_counter()
        done = subprocess.run(words, check=True, capture_output=True, text=True)
        seconds = time.perf_counter() - started
        run = Path(json.loads(done.stdout)["folder"])
        rows = [json.loads(line) for line in (run / "logs/metrics.jsonl").read_text().splitlines()]
    inside = sum(row.get("time/step_s", 0.0) for row in rows if row["phase"] == "grpo")
    return {"what": f"{steps} toy GRPO steps", "wall_s": inside, "whole_run_wall_s": seconds, "asked": "≤ 60 s"}


def own_modules() -> dict[str, Any]:
    """How many modules of rlvrlab a short run of the shipped recipe has imported at its end, packages counted."""
    code = (
        "import sys\nfrom rlvrlab.cli import main\n"
        "try: main()\nfinally: print(sum(n.partition('.')[0] == 'rlvrlab' for n in sys.modules), file=sys.stderr)"
    )
    with tempfile.TemporaryDirectory() as folder:
        words = ["train", str(ROOT / "recipes/toy_countdown.toml"), f"output_dir={folder}", "grpo.steps=2"]
        done = subprocess.run([sys.executable, "-c", code, *words], check=True, capture_output=True, text=True)
    return {"what": "own modules of a toy run", "modules": float(done.stderr.split()[-1]), "asked": "≤ 100"}


def fresh_clone() -> dict[str, Any]:
    """What a newcomer waits for: clone, `make quick`, done."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["git", "clone", "--quiet", str(ROOT), f"{folder}/clone"], check=True)
        clean = {k: v for k, v in os.environ.items() if k not in ("VIRTUAL_ENV", "PYTHONPATH")}
        started = time.perf_counter()
        subprocess.run(["make", "quick"], cwd=f"{folder}/clone", check=True, capture_output=True, env=clean)
        return {"what": "make quick, fresh clone", "wall_s": time.perf_counter() - started, "asked": "< 120 s"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--fresh", action="store_true")
    options = parser.parse_args()
    facts = {**machine(), **package_versions(), "load": round(os.getloadavg()[0], 1)}
    rows = [help_time(), grpo_time(), own_modules(), *([fresh_clone()] if options.fresh else [])]
    if options.json:
        print(json.dumps({"machine": facts, "figures": rows}, indent=2))
        return
    print(", ".join(f"{key} {value}" for key, value in facts.items()))
    for row in rows:
        figures = ", ".join(f"{k} {v:.1f}" for k, v in row.items() if isinstance(v, float))
        print(f"{row['what']:<28} {figures}   (asked: {row['asked']})")


if __name__ == "__main__":
    main()
