"""The entropy of the updates, arm by arm: python studies/entropy/curves.py

results/curves.jsonl has a line for each run: means over fifteen updates, ten in all.
"""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean

HERE = Path(__file__).parent
ARMS = ("plain", "bonus", "floor", "kl")


def main() -> None:
    """Print the table."""
    rows = [json.loads(line) for line in (HERE / "results" / "curves.jsonl").read_text().splitlines()]
    print("| arm | entropy, updates 1–15 | 76–90 | 136–150 | by seed, 136–150 | dead groups, 136–150 |")
    print("|---|---|---|---|---|---|")
    for arm in ARMS:
        own = [row for row in rows if row["arm"] == arm]
        means = " | ".join(f"{fmean(row['entropy'][i] for row in own):.3f}" for i in (0, 5, 9))
        seeds = ", ".join(f"{row['entropy'][9]:.3f}" for row in own)
        print(f"| {arm} | {means} | {seeds} | {fmean(row['dead_groups'][9] for row in own):.2f} |")
    floor = [row for row in rows if row["arm"] == "floor"]
    drawn = ", ".join(f"{row['drawn'][9]:.3f}" for row in floor)
    counted = fmean(fmean(row["bonus_counted"]) for row in floor) / 0.1
    print(
        f"\nfloor: of all drawn answers {drawn} at the end; the bonus counted in {100 * counted:.0f} % of the updates"
    )


if __name__ == "__main__":
    main()
