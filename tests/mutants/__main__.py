"""make mutants: plants small bugs all over the package and reports those that no test notices.

python tests/mutants [--seconds 7200] [--jobs 2] [--first N] [--only NAME] [--list]

Which bugs: those of reviewed.toml, and so many of each room (mutant_rooms.py), chosen by their names. Survivors that
are no loss are in accepted.toml with the reason; any other makes the exit code 1.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

from mutant_lists import accepted, every_plant
from mutant_runs import fates


def main() -> int:
    parser = argparse.ArgumentParser(prog="python tests/mutants")
    parser.add_argument("--seconds", type=float, default=float(os.environ.get("MUTANT_SECONDS", "7200")))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--first", type=int, default=1, help="begin with the n-th bug")
    parser.add_argument("--only", default="", help="bugs whose name has this in it")
    parser.add_argument("--list", action="store_true", help="show the bugs, plant none")
    given = parser.parse_args()
    plants = [plant for plant in every_plant() if given.only in plant.name][given.first - 1 :]
    known = accepted()
    if given.list:
        for plant in plants:
            print(plant.name)
        return 0
    print(f"{len(plants)} bugs, {given.jobs} at a time, for {given.seconds:g} s at most", flush=True)
    until = time.monotonic() + given.seconds
    tried = survivors = excused = 0
    with tempfile.TemporaryDirectory(prefix="mutants_") as work:
        for fate in fates(plants, given.jobs, until, lambda words: print(words, flush=True), Path(work)):
            tried += 1
            survived = not fate.noticed and fate.plant.name not in known
            survivors += survived
            excused += not fate.noticed and not survived
            word = "noticed" if fate.noticed else "SURVIVED" if survived else "accepted"
            print(f"{word} {fate.seconds:.0f} s  {fate.plant.name}  {fate.by}", flush=True)
    for name in sorted(known.keys() - {plant.name for plant in every_plant()}):
        print(f"accepted.toml: planted no more, take it out: {name}")
    late = f", {len(plants) - tried} not tried for want of time" if tried < len(plants) else ""
    print(f"{tried} bugs tried, {survivors} survived, {excused} accepted survivors{late}")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
