"""Kills every kind of work −9 at random moments and compares what comes out in the end.

python tests/kills [--kills 300] [--seed 0] [--only KIND] [--seconds 3600]

Prints a row per kind: kills, rounds (a piece of work with up to three kills on its way), and differences. The exit
code is 1 where anything differs.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

import conftest  # noqa: F401 -- finds the helpers of the other rooms

sys.path.insert(0, str(Path(__file__).parents[1]))
from kill_rounds import KINDS, MOST_KILLS, dealt, one_round, parts_of


def main() -> int:
    parser = argparse.ArgumentParser(prog="python tests/kills")
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="kinds with this in their name")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no round after so long")
    given = parser.parse_args()
    wanted = dealt(given.kills, [kind for kind in KINDS if given.only in kind])
    until = time.monotonic() + given.seconds
    print("| kind | what | kills | rounds | differences |\n|---|---|---|---|---|", flush=True)
    total = differences = 0
    for kind, count in wanted.items():
        kills, rounds, different = killed(kind, count, given.seed, until)
        total, differences = total + kills, differences + len(different)
        print(f"| {kind} | {parts_of(kind)} | {kills} | {rounds} | {len(different)} |", flush=True)
        for words in different:
            print(words, file=sys.stderr, flush=True)
    print(f"| all | | {total} | | {differences} |")
    return 1 if differences else 0


def killed(kind: str, wanted: int, seed: int, until: float) -> tuple[int, int, list[str]]:
    """Kills and rounds that were made, and what differed."""
    kills, rounds, different = 0, 0, list[str]()
    while kills < wanted and time.monotonic() < until:
        home = Path(tempfile.mkdtemp(prefix="kills_"))
        rng = random.Random(f"{seed} {kind} {rounds}")
        made = one_round(kind, home, min(rng.randint(1, MOST_KILLS), wanted - kills), rng)
        kills, rounds = kills + made.kills, rounds + 1
        if made.different:
            different.append(f"{kind}, round {rounds} in {home}: {', '.join(made.different)} differ")
        else:
            shutil.rmtree(home)
    return kills, rounds, different


if __name__ == "__main__":
    sys.exit(main())
