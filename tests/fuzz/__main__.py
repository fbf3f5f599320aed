"""make fuzz: random inputs for everything that reads foreign text, by a seed, for FUZZ_SECONDS.

python tests/fuzz [--seconds 600] [--seed N] [--only NAME]

Each find is printed with its seed and the smallest input, and kept in tests/fuzz/found: test_fuzz.py tries it again.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings

from fuzz_targets import TARGETS
from fuzzing import fuzz, keep


def main() -> int:
    parser = argparse.ArgumentParser(prog="python tests/fuzz")
    parser.add_argument("--seconds", type=float, default=float(os.environ.get("FUZZ_SECONDS", "600")))
    parser.add_argument(
        "--seed", type=int, default=int(os.environ.get("FUZZ_SEED", time.time_ns() // 1_000_000 % 10**9))
    )
    parser.add_argument("--only", default="", help="targets whose name has this in it")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"{len(TARGETS)} targets for {given.seconds:g} s, seed {given.seed}", flush=True)
    tried, finds = fuzz(given.seconds, given.seed, lambda words: print(words, flush=True), given.only)
    for find in finds:
        print(f"kept as {keep(find)}")
    print(f"{tried} inputs, {len(finds)} finds")
    return 1 if finds else 0


if __name__ == "__main__":
    sys.exit(main())
