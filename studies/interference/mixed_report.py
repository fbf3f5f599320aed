"""The table of skills trained at once, from results/mixed_safe.json: python studies/interference/mixed_report.py"""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path

import numpy as np

from rlvrlab.evals.statistics import estimate

ROWS = json.loads((Path(__file__).parent / "results" / "mixed_safe.json").read_text())
KEYS = ("average", "worst", "lost")


def points(values: np.ndarray, sign: str = "") -> str:
    """Mean and t interval over seeds, in points."""
    mean, low, high, *_ = estimate(100 * values, share=False)
    return f"{mean:{sign}.1f} [{low:{sign}.1f}, {high:{sign}.1f}]"


def main() -> None:
    """Every arm, and the differences of pairs of equal seed."""
    arms = list(dict.fromkeys(row["arm"] for row in ROWS))
    own = {(arm, key): np.array([row[key] for row in ROWS if row["arm"] == arm]) for arm in arms for key in KEYS}
    for arm in arms:
        print(f"| {arm} | {' | '.join(points(own[arm, key]) for key in KEYS)} |")
    for one, other in permutations(arms, 2):
        gaps = [points(own[one, key] - own[other, key], "+") for key in KEYS]
        print(f"{one} - {other}: {'; '.join(gaps)}")


if __name__ == "__main__":
    main()
