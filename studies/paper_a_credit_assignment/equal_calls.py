"""Step credit against GRPO at equal verifier calls, as equal_calls.md declares it.

    python studies/paper_a_credit_assignment/equal_calls.py start 100 101 102 0 1 2 3 4 5 6 7    # SFT, once per seed
    python studies/paper_a_credit_assignment/equal_calls.py list tuning | xargs -P 2 -L 1 \\
        python studies/paper_a_credit_assignment/equal_calls.py run
    python studies/paper_a_credit_assignment/equal_calls.py choose          # writes equal_calls_chosen.json: commit it
    python studies/paper_a_credit_assignment/equal_calls.py list final | xargs -P 2 -L 1 \\
        python studies/paper_a_credit_assignment/equal_calls.py run
    python studies/paper_a_credit_assignment/equal_calls.py report          # and equal_calls_results.json

Seeds are the units: one number per run, paired by seed, Student's t over the differences.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
from code_runs import WORK, Spent, examined, write

from rlvrlab.evals.by_skill import evaluate_skills
from rlvrlab.evals.statistics import holm
from rlvrlab.recipe import load_recipe
from rlvrlab.student import t_quantile
from rlvrlab.train.lab import build_lab
from rlvrlab.train.loop import bare_steps

HERE = Path(__file__).parent
CALLS = 14_000
TUNING, FINAL = (100, 101, 102), tuple(range(8))
CANDIDATES: dict[str, tuple[tuple[str, ...], ...]] = {
    "grpo": (("grpo.learning_rate=5e-4",), ("grpo.learning_rate=1e-3",), ("grpo.learning_rate=2.5e-4",)),
    "tree": (
        ("credit.branches=[4, 2]",),
        ("credit.branches=[4, 2]", "credit.credit_normalization=group"),
        ("credit.branches=[2, 2, 2]", "credit.credit_normalization=group"),
    ),
    "trace": (("credit.before=group",), ("credit.before=zero",), ("credit.before=zero", "credit.weight=2")),
    "doubly_robust": (("credit.weight=1",), ("credit.weight=0.5",), ("credit.weight=0.25",)),
}
"""Three settings of each arm; the first is the default."""
CHOSEN, RESULTS = HERE / "equal_calls_chosen.json", HERE / "equal_calls_results.json"
Row = dict[str, Any]


def recipe(arm: str, candidate: int, seed: int, words: tuple[str, ...] = ()) -> Any:
    """An arm's recipe with one of its candidates, with data and training of this seed."""
    given = [f"seed={seed}", f"data.seed={seed}", *CANDIDATES[arm][candidate], *words]
    return load_recipe(HERE / f"equal_calls_{arm}.toml", given)


def start(seed: int) -> None:
    """The policy that every arm of a seed begins with."""
    lab = build_lab(recipe("grpo", 0, seed, ('phases=["sft"]',)))
    deque(bare_steps(lab, lab.resolved.phase("sft"), WORK), maxlen=0)
    lab.engine.save(WORK / f"equal_calls_start_{seed}")
    found = evaluate_skills(lab.engine, lab.env, lab.dev, lab.recipe.rollout.max_tokens)
    print(f"start {seed}: {found.value:.3f} of the held-out problems")


def run(arm: str, candidate: int, seed: int, output: Path, most_steps: int) -> None:
    """One run, up to the step in which its calls are spent."""
    import torch

    torch.set_num_threads(1)
    model = f"engine.model={WORK / f'equal_calls_start_{seed}' / 'huggingface'}"
    words = ('phases=["grpo"]', model, "optimizer.warmup_steps=0", "optimizer.decay=constant")
    lab = build_lab(recipe(arm, candidate, seed, (*words, f"grpo.steps={most_steps}")))
    spent, began, traced, tokens = Spent(lab), time.time(), 0.0, 0.0
    lab.engine.freeze_reference()
    row: Row = {"arm": arm, "candidate": candidate, "seed": seed, "start": examined(lab, spent, 0, began)}
    for step, outcome in enumerate(bare_steps(lab, lab.resolved.phase("grpo"), WORK)):
        written = float(sum(len(rollout.completion.tokens) for rollout in outcome.rollouts))
        tokens += outcome.metrics.get("tree/drawn_tokens", written)
        traced += outcome.metrics.get("credit/traced", 0.0)
        if spent.calls >= CALLS or step + 1 == most_steps:
            more = {"tokens": tokens, "traced": traced, "whole": spent.calls >= CALLS}
            row["end"] = examined(lab, spent, step + 1, began) | more
            break
    write(output / f"{arm}_{candidate}_{seed}.json", row)
    first, last = row["start"]["accuracy"], row["end"]["accuracy"]
    print(f"{arm} {candidate} {seed}: {first:.3f} → {last:.3f}, {row['end']['step']} steps")


def rows_in(output: Path) -> list[Row]:
    """The runs that came to their end."""
    rows = [json.loads(path.read_text()) for path in sorted(output.glob("*.json"))]
    return [row for row in rows if row["end"]["whole"]]


def chosen(rows: list[Row]) -> dict[str, int]:
    """The best candidate of each arm on the tuning seeds; the first of equal ones."""
    best = {}
    for arm, candidates in CANDIDATES.items():
        means = []
        for number in range(len(candidates)):
            own = [row for row in rows if (row["arm"], row["candidate"]) == (arm, number)]
            mine = {row["seed"]: row["end"]["accuracy"] for row in own}
            missing = [seed for seed in TUNING if seed not in mine]
            if missing:
                raise SystemExit(
                    f"{arm}, candidate {number}: no run of tuning seeds {missing}; run `list tuning` first"
                )
            means.append(float(np.mean([mine[seed] for seed in TUNING])))
        best[arm] = int(np.argmax(means))
    return best


def sign_flips(difference_S: np.ndarray) -> float:
    """Share of all 2ⁿ sign patterns whose mean is at least as far from zero as the one seen."""
    flips = np.array(list(itertools.product((1, -1), repeat=len(difference_S))))
    means = np.abs(flips @ difference_S)
    return float(np.mean(means >= means[0] - 1e-12))


def difference(difference_S: np.ndarray) -> tuple[float, float, float]:
    """Mean and 95 % interval of Student's t over seeds."""
    mean, half = float(difference_S.mean()), float("inf")
    if len(difference_S) > 1:
        half = t_quantile(0.95, len(difference_S) - 1) * float(difference_S.std(ddof=1)) / len(difference_S) ** 0.5
    return mean, mean - half, mean + half


def report(rows: list[Row], settings: dict[str, int]) -> str:
    """Every arm minus GRPO of the same seed, over the final seeds."""
    by = {(row["arm"], row["seed"]): row["end"] for row in rows if row["candidate"] == settings[row["arm"]]}
    lines = ["| arm | setting | seeds | steps | tokens | accuracy | minus GRPO [95 %] | p (Holm) |", "|---" * 8 + "|"]
    versus, cells = dict[str, float](), list[list[str]]()
    for arm in CANDIDATES:
        seeds = [seed for seed in FINAL if (arm, seed) in by and ("grpo", seed) in by]
        if not seeds:
            continue
        ends = [by[arm, seed] for seed in seeds]
        gap_S = np.array([by[arm, seed]["accuracy"] - by["grpo", seed]["accuracy"] for seed in seeds])
        told = "" if arm == "grpo" else "{:+.1f} [{:+.1f}, {:+.1f}]".format(*(100 * one for one in difference(gap_S)))
        if arm != "grpo":
            versus[arm] = sign_flips(gap_S)
        means = [np.mean([end[key] for end in ends]) for key in ("step", "tokens", "accuracy")]
        shown = [f"{means[0]:.0f}", f"{means[1]:,.0f}", f"{100 * means[2]:.1f}"]
        cells.append([arm, " ".join(CANDIDATES[arm][settings[arm]]), str(len(seeds)), *shown, told])
    adjusted = dict(zip(versus, holm(list(versus.values())), strict=True))
    for line in cells:
        p = f"{versus[line[0]]:.3f} ({adjusted[line[0]]:.3f})" if line[0] in versus else ""
        lines.append(f"| {' | '.join([*line, p])} |")
    return "\n".join(lines)


def listed(which: str) -> list[str]:
    """Arm, candidate and seed of every run."""
    if which == "tuning":
        return [
            f"{arm} {number} {seed}"
            for seed in TUNING
            for arm, some in CANDIDATES.items()
            for number in range(len(some))
        ]
    settings = json.loads(CHOSEN.read_text())
    return [f"{arm} {settings[arm]} {seed}" for seed in FINAL for arm in CANDIDATES]


def main() -> None:
    """start, list, run, choose or report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=("start", "list", "run", "choose", "report"))
    parser.add_argument("names", nargs="*", help="seeds; of list: tuning or final; of run: arm, candidate and seed")
    parser.add_argument("--output", type=Path, default=WORK / "equal_calls")
    parser.add_argument("--steps", type=int, default=1000)
    asked = parser.parse_args()
    if asked.verb == "start":
        for seed in asked.names:
            start(int(seed))
    elif asked.verb == "list":
        print("\n".join(listed(asked.names[0])))
    elif asked.verb == "run":
        run(asked.names[0], int(asked.names[1]), int(asked.names[2]), asked.output, asked.steps)
    elif asked.verb == "choose":
        CHOSEN.write_text(json.dumps(chosen(rows_in(asked.output)), indent=1) + "\n")
        print(CHOSEN.read_text(), end="")
    else:
        rows = rows_in(asked.output)
        if rows:
            RESULTS.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")
        print(report(json.loads(RESULTS.read_text()), json.loads(CHOSEN.read_text())))


if __name__ == "__main__":
    main()
