"""Run a measurement and keep what it printed, with the machine it ran on: benchmarks/results/NAME.json.

    python benchmarks/keep.py NAME -- python benchmarks/judge.py --json

The tables of the documents are made from these files by `python benchmarks/tables.py docs/PAGE.md`, and `make claims`
holds the two against each other. `load` is the machine's before the run: 2 or less means that nothing else ran.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from rlvrlab.record.facts import code_state, machine, package_versions

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"


def kept(name: str, command: list[str]) -> Path:
    """Run the command in the root of the repository; its JSON, or else its lines, go into the file."""
    facts: dict[str, Any] = {"command": " ".join(command), "measured": time.strftime("%Y-%m-%d", time.gmtime())}
    facts |= {"code": code_state(), "load": round(os.getloadavg()[0], 1)}
    words = [sys.executable if word == "python" else word for word in command]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(words, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{facts['command']} ended with {done.returncode}; nothing is kept")
    facts |= {"machine": machine(), "packages": package_versions(), "found": read(done.stdout)}
    path = RESULTS / f"{name}.json"
    RESULTS.mkdir(exist_ok=True)
    path.write_text(json.dumps(facts, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def read(printed: str) -> Any:
    """One JSON document, or a list of lines, each of them JSON where it can be read as that."""
    try:
        return json.loads(printed, parse_constant=lambda name: None)  # NaN is no JSON
    except json.JSONDecodeError:
        return [_line(line) for line in printed.splitlines() if line.strip()]


def _line(line: str) -> Any:
    try:
        return json.loads(line)
    except json.JSONDecodeError:
        return line


if __name__ == "__main__":
    if len(sys.argv) < 4 or sys.argv[2] != "--":
        raise SystemExit(__doc__)
    print(kept(sys.argv[1], sys.argv[3:]).relative_to(ROOT))
