"""Tables of the run on five code skills at once: python studies/interference/code_skills_tables.py

Reads results/code_skills.json (made by keep_results.py). Its outcomes stand in the order of the problems' ids, which
begin with the number of the skill in the mixture, HumanEval before MBPP: so each set is a block of 100. That is checked
against the score of every set on the card. Changes are paired by problem; Holm among the six sets.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rlvrlab.evals.statistics import Difference, compare, holm

FILE = Path(__file__).parent / "results" / "code_skills.json"
SETS = {
    "humaneval_test": "HumanEval (not trained on)",
    "mbpp_test": "generation",
    "mbpp_code_repair_test": "repair",
    "mbpp_code_refactor_test": "refactoring",
    "mbpp_code_reasoning_test": "reasoning",
    "sql_test": "SQL",
}
EACH = 100


def blocks(card: dict[str, Any]) -> dict[str, list[float]]:
    """1 or 0 of every problem, set by set."""
    marks = [float(mark) for mark in card["outcomes"]]
    found = {name: marks[EACH * i : EACH * (i + 1)] for i, name in enumerate(SETS)}
    for name, block in found.items():
        told = card["metrics"][f"{name}/accepted_at_1"]
        if len(block) != EACH or abs(sum(block) / EACH - told) > 1e-6:
            raise SystemExit(f"{name}: the card tells {told}, its outcomes {sum(block) / EACH}")
    return found


def row(name: str, before: list[float], after: list[float], p: str) -> str:
    """One line: scores, change with its interval, how many problems were won and lost."""
    one = compare(before, after)
    won = sum(new > old for old, new in zip(before, after, strict=True))
    lost = sum(new < old for old, new in zip(before, after, strict=True))
    scores = " | ".join(f"{100 * sum(marks) / len(marks):.1f}" for marks in (before, after))
    change = f"{100 * one.mean:+.1f} [{100 * one.low:+.1f}, {100 * one.high:+.1f}]".replace("-", "−")
    return f"| {name} | {len(before)} | {scores} | {change} | {won} / {lost} | {p} |"


def p_of(one: Difference) -> float:
    """One run on each side: there is a p."""
    if one.p is None:
        raise SystemExit("a comparison has no p")
    return one.p


def main() -> None:
    """Print the table."""
    before, after = (blocks(card) for card in json.loads(FILE.read_text(encoding="utf-8"))["cards"])
    p_values = holm([p_of(compare(before[name], after[name])) for name in SETS])
    print("| set | problems | before, % | after, % | change [95 %, new problems] | won / lost | p (Holm) |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for (name, words), p in zip(SETS.items(), p_values, strict=True):
        print(row(words, before[name], after[name], f"{p:.2g}"))
    for words, names in (("the five skills", list(SETS)[1:]), ("all six sets", list(SETS))):
        old, new = ([mark for name in names for mark in card[name]] for card in (before, after))
        print(row(words, old, new, "–"))


if __name__ == "__main__":
    main()
