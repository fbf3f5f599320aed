"""make mutants: plants small bugs all over the package and reports those that no test notices.

python tests/mutants [--seconds 7200] [--jobs 2] [--sample N] [--seed S] [--record FILE] [--only NAME] [--list]

Which bugs: those of reviewed.toml, and so many of each room (mutant_rooms.py), chosen by their names; with --sample, N
of them from all rooms in turn. Survivors that are no loss are in accepted.toml with the reason; any other makes the
exit code 1. With --record what becomes of each is appended to a file, and what stands there is not tried again.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

from mutant_lists import accepted, every_plant, recorded, sampled
from mutant_plants import Plant
from mutant_runs import Fate, fates


def asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python tests/mutants")
    parser.add_argument("--seconds", type=float, default=float(os.environ.get("MUTANT_SECONDS", "7200")))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--sample", type=int, help="so many bugs, from all rooms in turn")
    parser.add_argument("--seed", type=int, default=0, help="which ones of a room are in the sample")
    parser.add_argument("--record", type=Path, help="append what became of each bug; leave out those that stand there")
    parser.add_argument("--only", default="", help="bugs whose name has this in it")
    parser.add_argument("--list", action="store_true", help="show the bugs, plant none")
    return parser.parse_args()


def wanted(given: argparse.Namespace) -> list[Plant]:
    plants = [plant for plant in every_plant() if given.only in plant.name]
    if given.sample is not None:
        plants = sampled(plants, given.sample, given.seed)
    known = recorded(given.record) if given.record else {}
    untried, lost = [plant for plant in plants if plant.name not in known], accepted()
    return sorted(untried, key=lambda plant: plant.name in lost)  # no loss, and no test ends them early: the last


def note(path: Path, word: str, fate: Fate) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(f"{word}\t{fate.by}\t{fate.plant.name}\n")


def main() -> int:
    given, known = asked(), accepted()
    plants = wanted(given)
    if given.list:
        for plant in plants:
            print(plant.name)
        return 0
    print(f"{len(plants)} bugs, {given.jobs} at a time, for {given.seconds:g} s at most", flush=True)
    until = time.monotonic() + given.seconds
    counts = {"noticed": 0, "accepted": 0, "SURVIVED": 0}
    with tempfile.TemporaryDirectory(prefix="mutants_") as work:
        for fate in fates(plants, given.jobs, until, lambda words: print(words, flush=True), Path(work)):
            word = "noticed" if fate.noticed else "accepted" if fate.plant.name in known else "SURVIVED"
            counts[word] += 1
            print(f"{word} {fate.seconds:.0f} s  {fate.plant.name}  {fate.by}", flush=True)
            if given.record:
                note(given.record, word, fate)
    for name in sorted(known.keys() - {plant.name for plant in every_plant()}):
        print(f"accepted.toml: planted no more, take it out: {name}")
    tried = sum(counts.values())
    late = f", {len(plants) - tried} not tried for want of time" if tried < len(plants) else ""
    print(f"{tried} bugs tried, {counts['SURVIVED']} survived, {counts['accepted']} accepted survivors{late}")
    return 1 if counts["SURVIVED"] else 0


if __name__ == "__main__":
    sys.exit(main())
