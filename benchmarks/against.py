"""Does a command take less CPU time than with another version? Runs it with both, turn and turn about.

    git worktree add ../before COMMIT
    python benchmarks/against.py ../before/src [--rounds 5] -- benchmarks/data_eval.py audit --documents 4000
    python benchmarks/against.py ../before/src -- benchmarks/tasks.py --size 600
    python benchmarks/against.py ../before/src -- benchmarks/report.py
    python benchmarks/against.py ../before/src -- benchmarks/study.py --trials 40
    python benchmarks/against.py ../before/src -- -m rlvrlab report RUN

The words after `--` are given to Python, in the working directory. Only `rlvrlab` is imported from the other version: a
benchmark is this tree's own, and has to work with both. Ratios are this version over the other, of each round's two
runs: below 1 this version takes less. CPU seconds are those of the command and of all processes that it awaits, with
what a benchmark prepares: a command by itself (`-m rlvrlab …`) shows a small difference more clearly.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from turns import OTHER, THIS, children_cpu_s, environment, in_turn, refuse_without_package, sources


def measured(source: Path, words: list[str]) -> dict[str, float]:
    """One run of the command with the package of this folder."""
    cpu, began = children_cpu_s(), time.perf_counter()
    done = subprocess.run(
        [sys.executable, *words], env=environment(source), capture_output=True, text=True, check=False
    )
    took = time.perf_counter() - began
    if done.returncode:
        raise SystemExit(f"{source}: the command ended with {done.returncode}\n{done.stderr[-2000:]}")
    return {"cpu_s": round(children_cpu_s() - cpu, 3), "wall_s": round(took, 3)}


def ratios(rounds: list[dict[str, dict[str, float]]]) -> dict[str, list[float]]:
    """This version over the other by what was measured: median, least and most of the rounds."""
    found = {}
    for key in rounds[0][THIS]:
        values = [one[THIS][key] / one[OTHER][key] for one in rounds]
        found[key] = [round(value, 3) for value in (median(values), min(values), max(values))]
    return found


def main() -> None:
    """Print the ratios, the medians and every round."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, metavar="SRC", help="the src folder of the other version")
    parser.add_argument("--rounds", type=int, default=5, help="an even number has each version first as often [5]")
    parser.add_argument("command", nargs="+", metavar="WORD", help="of the command, after --")
    asked = parser.parse_args()
    folders = sources(asked.source)
    for folder in folders.values():
        refuse_without_package(folder)
    rounds = in_turn(folders, asked.rounds, lambda side: measured(folders[side], asked.command))
    medians = {
        side: {key: round(median(one[side][key] for one in rounds), 3) for key in rounds[0][side]} for side in folders
    }
    print(json.dumps({"command": asked.command, f"{THIS} / {OTHER}": ratios(rounds), **medians, "rounds": rounds}))


if __name__ == "__main__":
    main()
