"""Tables of kept runs: the score on test problems after every phase, and what each phase changed.

    python studies/card_tables.py studies/countdown_gsm8k/results        # files made by keep_results.py
    python studies/card_tables.py studies/paper_b_conflict_aware/results --against first_equal

One row per run and phase, in %: accepted@1 with its Wilson interval, pass@8 and the number of different right answers
among those drawn for it, where they were drawn, and the change against the phase it started from, paired by problem.
These intervals are for new problems. The second table: changes over seeds, for new seeds and problems, of runs whose
names differ in their last number only; left out where nothing was repeated. With --against NAME, a third: the last card
of every other run minus that run's, on the problems of both.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

from rlvrlab.evals.statistics import compare, compare_seeds, wilson


def outcomes(card: dict[str, Any]) -> list[float]:
    """1 or 0 of every test problem."""
    return [float(mark) for mark in card["outcomes"]]


def changes(cards: list[dict[str, Any]]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Each phase with the card it started from: the last one before it that is no control arm."""
    return [
        (next(before for before in reversed(cards[:i]) if not before["control"]), card)
        for i, card in enumerate(cards)
        if i and len(cards[i]["outcomes"]) == len(cards[0]["outcomes"])
    ]


def rows(name: str, cards: list[dict[str, Any]], diverse: bool) -> list[str]:
    """One line per phase; `diverse` adds how many different right answers there were."""
    started = {id(after): compare(outcomes(before), outcomes(after)) for before, after in changes(cards)}
    lines = []
    for card in cards:
        right = outcomes(card)
        low, high = wilson(int(sum(right)), len(right))
        score = f"{100 * sum(right) / len(right):.1f} [{100 * low:.1f}, {100 * high:.1f}]"
        reach = f"{100 * card['metrics']['pass@8']:.1f}" if "pass@8" in card["metrics"] else "–"
        if diverse:
            distinct = card["metrics"].get("distinct_accepted")
            reach += " | –" if distinct is None else f" | {distinct:.2f}"
        found = started.get(id(card))
        change = f"{100 * found.mean:+.1f} [{100 * found.low:+.1f}, {100 * found.high:+.1f}]" if found else ""
        phase = f"{card['phase']} (control)" if card["control"] else card["phase"]
        lines.append(f"| {name} | {phase} | {len(right)} | {score} | {reach} | {change} |")
    return lines


def against(name: str, runs: dict[str, list[dict[str, Any]]]) -> list[str]:
    """What the other runs ended with, minus what this one did: accuracy paired by problem, the rest as it is."""
    ends = {run: [card for card in cards if not card["control"]][-1] for run, cards in runs.items()}
    lines = []
    for run in (run for run in ends if run != name and len(ends[run]["outcomes"]) == len(ends[name]["outcomes"])):
        found = compare(outcomes(ends[name]), outcomes(ends[run]))
        pairs = [
            (ends[run]["metrics"].get(key), ends[name]["metrics"].get(key)) for key in ("pass@8", "distinct_accepted")
        ]
        more = [
            "–" if own is None or other is None else f"{scale * (own - other):+.{digits}f}"
            for (own, other), scale, digits in zip(pairs, (100, 1), (1, 2), strict=True)
        ]
        change = f"{100 * found.mean:+.1f} [{100 * found.low:+.1f}, {100 * found.high:+.1f}]"
        lines.append(f"| {run} − {name} | {change} | {' | '.join(more)} |")
    return lines


def over_seeds(runs: dict[str, list[dict[str, Any]]]) -> list[str]:
    """What a phase changed, with every run of the same kind as one replicate."""
    kinds: dict[tuple[str, str], list[tuple[list[float], list[float]]]] = {}
    for name, cards in runs.items():
        kind = re.sub(r"_\d+$", "", name)
        for before, after in changes(cards):
            kinds.setdefault((kind, f"{after['phase']} − {before['phase']}"), []).append(
                (outcomes(before), outcomes(after))
            )
    lines = []
    for (kind, what), pairs in kinds.items():
        if len(pairs) > 1 and len({len(before) for before, _ in pairs}) == 1:
            found = compare_seeds([a for a, _ in pairs], [b for _, b in pairs], paired=True)
            change = f"{100 * found.mean:+.1f} [{100 * found.low:+.1f}, {100 * found.high:+.1f}]"
            lines.append(f"| {kind} | {what} | {len(pairs)} seeds | {change} |")
    return lines


def main() -> None:
    """Print the tables of every folder named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--against", metavar="NAME")
    options = parser.parse_args()
    for folder in options.folders:
        runs = {path.stem: json.loads(path.read_text())["cards"] for path in sorted(folder.glob("*.json"))
                if '"cards"' in path.read_text()}  # fmt: skip
        diverse = any("distinct_accepted" in card["metrics"] for cards in runs.values() for card in cards)
        more = " distinct right answers of 8 |" if diverse else ""
        print(f"| run | after | test problems | accepted@1 [95 %] | pass@8 |{more} change [95 %, new problems] |")
        print("\n".join(line for name, cards in runs.items() for line in rows(name, cards, diverse)))
        if repeated := over_seeds(runs):
            print("\n| runs | change | replicates | mean [95 %, new seeds and problems] |")
            print("\n".join(repeated))
        if options.against:
            print("\n| last card | accepted@1 [95 %, new problems] | pass@8 | distinct right answers |")
            print("\n".join(against(options.against, runs)))


if __name__ == "__main__":
    main()
