"""The table of rounds/11_kinds_of_statements.md: python studies/paper_a_credit_assignment/qwen_kinds.py

Reads results/qwen_kinds.csv, which is analysis/tables/credit_by_kind.csv of the run as it was written.
"""

from __future__ import annotations

import csv
from pathlib import Path

FILE = Path(__file__).parent / "results" / "qwen_kinds.csv"
FEW = 15
"""Kinds with fewer steps are told together: their intervals say nothing."""


def interval(row: dict[str, str]) -> str:
    """None where every step of a kind earned the same."""
    return f" [{float(row['low']):.2f}, {float(row['high']):.2f}]" if row["low"] else ""


def main() -> None:
    """Print the table, kinds that earn most first."""
    rows = list(csv.DictReader(FILE.read_text(encoding="utf-8").splitlines()))
    many = sorted((row for row in rows if int(row["steps"]) >= FEW), key=lambda row: -float(row["mean_credit"]))
    few = [f"{row['kind']} {row['steps']}" for row in rows if int(row["steps"]) < FEW]
    print("| kind of statement | steps with known credit | mean credit [95 %, new problems] | not zero, % |")
    print("| --- | --- | --- | --- |")
    for row in many:
        mean = f"{float(row['mean_credit']):.2f}{interval(row)}"
        print(f"| {row['kind']} | {row['steps']} | {mean} | {100 * float(row['share_with_credit']):.1f} |")
    print(f"\n{sum(int(row['steps']) for row in rows)} steps; fewer than {FEW}: {', '.join(few)}")


if __name__ == "__main__":
    main()
