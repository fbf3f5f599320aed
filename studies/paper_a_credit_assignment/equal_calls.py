"""Step credit against GRPO at equal verifier calls, as equal_calls.md declares it.

    python studies/paper_a_credit_assignment/equal_calls.py tuning --processes 12    # SFT once per seed, then the runs
    python studies/paper_a_credit_assignment/equal_calls.py choose          # writes equal_calls_chosen.json: commit it
    python studies/paper_a_credit_assignment/equal_calls.py final --processes 12
    python studies/paper_a_credit_assignment/equal_calls.py report          # and equal_calls_results.json

`--design equal_calls_small` does the smaller comparison that equal_calls_small.md declares.
Seeds are the units: one number per run, paired by seed, Student's t over the differences.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from spending import MACHINE, WORK, examined, from_start, pretrained, spending

from rlvrlab.evals.statistics import holm
from rlvrlab.recipe import load_recipe
from rlvrlab.student import t_quantile
from rlvrlab.train.lab import build_lab
from rlvrlab.train.loop import bare_steps

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent))
from job_lines import Row, rows_of, run_missing  # noqa: E402


@dataclass(frozen=True)
class Design:
    """How large a comparison is; each has a declaration of its name."""

    name: str
    calls: int
    """Verdicts per run."""
    candidates: int
    """So many settings of each arm are tried, the first ones listed; with one there is nothing to tune."""
    tuning: tuple[int, ...]
    """Seeds that choose among them."""
    final: tuple[int, ...]

    def file(self, what: str) -> Path:
        """A committed file of this comparison."""
        return HERE / f"{self.name}_{what}.json"

    @property
    def runs(self) -> Path:
        """Where finished runs are noted."""
        return WORK / f"{self.name}_runs.jsonl"


DESIGNS = {
    one.name: one
    for one in (
        Design("equal_calls", 14_000, 3, (100, 101, 102), tuple(range(8))),
        Design("equal_calls_small", 3_000, 1, (), tuple(range(20, 28))),
    )
}
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
STARTS = WORK / "equal_calls_starts.jsonl"
Job = tuple[Design, str, int, int, int]
"""Arm, candidate, seed and the most steps."""


def recipe(arm: str, candidate: int, seed: int, words: tuple[str, ...] = ()) -> Any:
    """An arm's recipe with one of its candidates, with data and training of this seed."""
    given = [f"seed={seed}", f"data.seed={seed}", *CANDIDATES[arm][candidate], *words]
    return load_recipe(HERE / f"equal_calls_{arm}.toml", given)


def start_folder(seed: int) -> Path:
    """Where the policy lies that every arm of a seed begins with."""
    return WORK / f"equal_calls_start_{seed}"


def start(seed: int) -> Row:
    """Make that policy."""
    return {"seed": seed, "accuracy": pretrained(recipe("grpo", 0, seed, ('phases=["sft"]',)), start_folder(seed))}


def start_accuracy(seed: int) -> float:
    """What it solves of the held-out problems."""
    return next(row["accuracy"] for row in rows_of(STARTS) if row["seed"] == seed)


def run(job: Job) -> Row:
    """One run, up to the step in which its calls are spent; one that fails is begun again, once."""
    try:
        return attempt(job)
    except Exception as error:
        first = repr(error)
    try:
        return attempt(job) | {"failed": first}
    except Exception as error:
        return failed_twice(job, f"{first}; {error!r}")


def attempt(job: Job) -> Row:
    """One run from its start."""
    design, arm, candidate, seed, most_steps = job
    lab = build_lab(recipe(arm, candidate, seed, tuple(from_start(start_folder(seed), most_steps))))
    traced = tokens = 0.0
    lab.engine.freeze_reference()
    row: Row = {"arm": arm, "candidate": candidate, "seed": seed, "machine": MACHINE, "start": start_accuracy(seed)}
    with spending(lab) as spent:
        for step, outcome in enumerate(bare_steps(lab, lab.resolved.phase("grpo"), WORK)):
            written = float(sum(len(rollout.completion.tokens) for rollout in outcome.rollouts))
            tokens += outcome.metrics.get("tree/drawn_tokens", written)
            traced += outcome.metrics.get("credit/traced", 0.0)
            if spent.calls >= design.calls or step + 1 == most_steps:
                more = {"tokens": tokens, "traced": traced, "whole": spent.calls >= design.calls}
                row["end"] = examined(lab, spent, step + 1) | more
                break
    return row


def failed_twice(job: Job, words: str) -> Row:
    """As declared: it is reported, and counts with the accuracy of its start."""
    _, arm, candidate, seed, _ = job
    known = start_accuracy(seed)
    end = {"step": 0, "tokens": 0.0, "accuracy": known, "whole": True}
    facts = {"arm": arm, "candidate": candidate, "seed": seed, "machine": MACHINE}
    return facts | {"start": known, "end": end, "failed": words}


def whole(rows: list[Row]) -> list[Row]:
    """The runs that came to their end."""
    return [row for row in rows if row["end"]["whole"]]


def chosen(rows: list[Row], design: Design) -> dict[str, int]:
    """The best candidate of each arm on the tuning seeds; the first of equal ones."""
    if design.candidates == 1:
        return dict.fromkeys(CANDIDATES, 0)
    best = {}
    for arm in CANDIDATES:
        means = []
        for number in range(design.candidates):
            own = [row for row in rows if (row["arm"], row["candidate"]) == (arm, number)]
            mine = {row["seed"]: row["end"]["accuracy"] for row in own}
            missing = [seed for seed in design.tuning if seed not in mine]
            if missing:
                raise SystemExit(f"{arm}, candidate {number}: no run of tuning seeds {missing}; run `tuning` first")
            means.append(float(np.mean([mine[seed] for seed in design.tuning])))
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


def report(rows: list[Row], settings: dict[str, int], design: Design) -> str:
    """Every arm minus GRPO of the same seed, over the final seeds that every arm has run on."""
    by = {(row["arm"], row["seed"]): row["end"] for row in rows if row["candidate"] == settings[row["arm"]]}
    lines = ["| arm | setting | seeds | steps | tokens | accuracy | minus GRPO [95 %] | p (Holm) |", "|---" * 8 + "|"]
    versus, cells = dict[str, float](), list[list[str]]()
    seeds = [seed for seed in design.final if all((arm, seed) in by for arm in CANDIDATES)]
    if not seeds:
        raise SystemExit(f"{design.name}: no final seed has runs of all arms; run `final` first")
    for arm in CANDIDATES:
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


def jobs(design: Design, which: str, most_steps: int) -> dict[str, Job]:
    """The runs of the tuning or of the final seeds, by name."""
    if which == "tuning":
        triples = [(arm, k, seed) for seed in design.tuning for arm in CANDIDATES for k in range(design.candidates)]
    else:
        settings = json.loads(design.file("chosen").read_text())
        triples = [(arm, settings[arm], seed) for seed in design.final for arm in CANDIDATES]
    return {" ".join(map(str, one)): (design, *one, most_steps) for one in triples}


def run_all(path: Path, named: dict[str, Job], processes: int, seconds: float) -> None:
    """What is missing: the starts of the seeds, then the runs."""
    began, seeds = time.monotonic(), {str(seed): seed for *_, seed, _ in named.values()}
    left = run_missing(STARTS, seeds, start, lambda row: str(row["seed"]), processes, seconds)
    if not left:
        seconds -= time.monotonic() - began
        left = run_missing(path, named, run, lambda r: f"{r['arm']} {r['candidate']} {r['seed']}", processes, seconds)
    print(f"{left} left; the same command goes on" if left else f"all {len(named)} runs are there")


def main() -> None:
    """tuning, choose, final or report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=("tuning", "choose", "final", "report"))
    parser.add_argument("--design", choices=DESIGNS, default="equal_calls")
    parser.add_argument("--processes", type=int, default=1, help="runs at a time; finished ones are not run again")
    parser.add_argument("--seconds", type=float, default=math.inf, help="no run is started that would not end by then")
    parser.add_argument("--steps", type=int, default=1000, help="the most steps of a run")
    asked = parser.parse_args()
    design, rows = DESIGNS[asked.design], whole(rows_of(DESIGNS[asked.design].runs))
    settings, results = design.file("chosen"), design.file("results")
    if asked.verb == "choose":
        settings.write_text(json.dumps(chosen(rows, design), indent=1) + "\n")
        print(settings.read_text(), end="")
    elif asked.verb == "report":
        if rows:
            results.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")
        print(report(json.loads(results.read_text()), json.loads(settings.read_text()), design))
    else:
        run_all(design.runs, jobs(design, asked.verb, asked.steps), asked.processes, asked.seconds)


if __name__ == "__main__":
    main()
