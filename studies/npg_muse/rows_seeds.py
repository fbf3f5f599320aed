"""What GRPO adds to SFT in the graph study's first command: three new seeds, all six, and answers that were drawn.

python studies/npg_muse/rows_seeds.py studies/npg_muse/rows_results

nano_rows_720_SEED.json are the new seeds' runs; again_SEED.json is what the weights of the older ones answer to the
same 720 test problems, with a mark on those that had been looked at before. The marks of a card are in the order of
the problems' ids, so those of a task stand together.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from rlvrlab.evals.statistics import LEVEL, compare_seeds
from rlvrlab.student import t_quantile

TASKS = ("GED", "MCP", "MCS", "MIS", "MVC", "TSP")
"""In the order of the ids."""
Kept = dict[str, Any]


def found(folder: Path, kind: str) -> dict[int, Kept]:
    """Kept files of one kind by seed."""
    paths = folder.glob(f"{kind}_*.json")
    return {int(path.stem.rpartition("_")[2]): json.loads(path.read_text(encoding="utf-8")) for path in sorted(paths)}


def marks(kept: Kept, phase: str, among: str = "", wanted: str = "0") -> list[float]:
    """1 or 0 of each problem after a phase; of those marked `wanted` in `among` where it is given."""
    (card,) = (card for card in kept["cards"] if card["phase"] == phase)
    return [float(mark) for i, mark in enumerate(card["outcomes"]) if not among or among[i] == wanted]


def signed(value: float) -> str:
    """In points."""
    return f"{100 * value:+.1f}"


def greedy_row(name: str, runs: list[Kept], among: str = "", wanted: str = "0") -> str:
    """The change by seed, and its mean for new seeds and problems."""
    before, after = ([marks(kept, phase, among, wanted) for kept in runs] for phase in ("sft", "grpo"))
    change = compare_seeds(before, after, paired=True)
    by_seed = ", ".join(signed(mean(b) - mean(a)) for a, b in zip(before, after, strict=True))
    interval = f"{signed(change.mean)} [{signed(change.low)}, {signed(change.high)}]"
    return f"| {name} | {len(before[0])} | {by_seed} | {interval} |"


def drawn_row(runs: list[Kept]) -> str:
    """The same for the share of right ones among the answers that were drawn, by Student's t over the seeds."""
    cards = [{card["phase"]: card["metrics"] for card in kept["cards"]} for kept in runs]
    changes = [card["grpo"]["mean_at_n"] - card["sft"]["mean_at_n"] for card in cards]
    half = t_quantile(LEVEL, len(changes) - 1) * stdev(changes) / len(changes) ** 0.5
    interval = f"{signed(mean(changes))} [{signed(mean(changes) - half)}, {signed(mean(changes) + half)}]"
    problems, by_seed = cards[0]["grpo"]["problems"], ", ".join(map(signed, changes))
    return f"| drawn at T = 1, new seeds | {problems:.0f} | {by_seed} | {interval} |"


def task_rows(runs: dict[int, Kept]) -> list[str]:
    """After SFT and after GRPO by task, in %."""
    lines = []
    for task in TASKS:
        pairs = [[by_task(marks(kept, phase))[task] for phase in ("sft", "grpo")] for kept in runs.values()]
        change = mean(after - before for before, after in pairs)
        lines.append(f"| {task} | {' | '.join(f'{b:.1f} → {a:.1f}' for b, a in pairs)} | {change:+.1f} |")
    return lines


def without(task: str, count: int) -> str:
    """Marks of `count` problems: 0 where a problem is of another task, in the order of the ids."""
    size = count // len(TASKS)
    return "".join(("1" if one == task else "0") * size for one in TASKS)


def by_task(right: list[float]) -> dict[str, float]:
    """The share of right answers of each task, in %."""
    size = len(right) // len(TASKS)
    return {task: 100 * mean(right[i * size : (i + 1) * size]) for i, task in enumerate(TASKS)}


def main(folder: Path) -> None:
    """Print the tables."""
    new, old = found(folder, "nano_rows_720"), found(folder, "again")
    looked_at = old[min(old)]["looked_at"]
    print("| answers | test problems | grpo − sft by seed | mean [95 %] |")
    print(greedy_row("greedy, new seeds", [*new.values()]))
    print(greedy_row("greedy, new seeds, not looked at before", [*new.values()], looked_at))
    print(greedy_row("greedy, new seeds, looked at before", [*new.values()], looked_at, wanted="1"))
    print(greedy_row("greedy, new seeds, all tasks but MVC", [*new.values()], without("MVC", len(looked_at))))
    print(greedy_row("greedy, all seeds, not looked at before", [*old.values(), *new.values()], looked_at))
    print(drawn_row([*new.values()]))
    print(f"\n| task | {' | '.join(f'seed {seed}' for seed in new)} | mean change |")
    print("\n".join(task_rows(new)))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
