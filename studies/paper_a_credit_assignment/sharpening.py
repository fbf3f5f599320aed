"""Learning or sharpening: pass@1 to pass@64 before and after GRPO and two controls, as sharpening.md declares it.

    python studies/paper_a_credit_assignment/sharpening.py run --processes 12    # SFT once per seed, then the arms
    python studies/paper_a_credit_assignment/sharpening.py report                # tables -> sharpening_results.json

Lines that are there are not run again; `--steps 2` makes a trial that is told apart from a whole run.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from equal_calls_report import difference
from spending import MACHINE, WORK, from_start, pretrained

from rlvrlab.evals.answering import EngineAnswerer
from rlvrlab.evals.evaluate import evaluate
from rlvrlab.evals.protocol import eval_at_1, eval_at_k
from rlvrlab.evals.statistics import holm
from rlvrlab.recipe import Resolved, load_recipe
from rlvrlab.shares import pass_at_k
from rlvrlab.student import t_tails
from rlvrlab.train.lab import Lab, build_lab
from rlvrlab.train.loop import bare_steps

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent))
from job_lines import Row, rows_of, run_missing  # noqa: E402

LINES, RESULTS = WORK / "sharpening_lines.jsonl", HERE / "sharpening_results.json"
SEEDS = tuple(range(60, 68))
STEPS = 100
"""Updates of every arm."""
SAMPLES = 64
KS = (1, 2, 4, 8, 16, 32, 64)
TESTED = (1, 64)
PHASES = {"verified": ("grpo",), "random": ("grpo",), "more_sft": ("sft", "more_sft")}
"""Arm -> phases of its recipe, of which it trains the last; of the two with GRPO one is paid by a coin."""
COMPARISONS = (*((arm, "start") for arm in PHASES), ("verified", "random"), ("verified", "more_sft"))
Job = tuple[str, int, int, int]
"""Arm (or start), seed, updates and samples per problem."""


def recipe(seed: int, words: Sequence[str]) -> Resolved:
    """With data and training of this seed."""
    return load_recipe(HERE / "sharpening.toml", [f"seed={seed}", f"data.seed={seed}", *words])


def words_of(arm: str, seed: int, steps: int) -> list[str]:
    """What makes an arm of the recipe, from the start of a seed."""
    coin = ["reward.type=random", f"reward.seed={seed}"] if arm == "random" else []
    return [*from_start(start_folder(seed), steps, PHASES[arm]), *coin]


def start_folder(seed: int) -> Path:
    """Where the policy lies that every arm of a seed begins with."""
    return WORK / f"sharpening_start_{seed}"


def run(job: Job) -> Row:
    """Train the start or an arm, and examine it."""
    arm, seed, steps, samples = job
    facts = {"name": arm, "seed": seed, "steps": steps, "machine": MACHINE}
    began = time.process_time()
    if arm == "start":
        pretrained(recipe(seed, ['phases=["sft"]']), start_folder(seed))
        lab, skipped = build_lab(recipe(seed, words_of("verified", seed, 1))), 0
    else:
        lab = build_lab(recipe(seed, words_of(arm, seed, steps)))
        lab.engine.freeze_reference()
        outcomes = bare_steps(lab, lab.resolved.phase(PHASES[arm][-1]), WORK)
        skipped = sum(one.skipped or one.silent for one in outcomes)
    trained = time.process_time() - began
    lab.engine.publish()
    return facts | {"skipped": skipped, "cpu_s": round(trained, 1), **examined(lab, seed, samples)}


def examined(lab: Lab, seed: int, samples: int) -> Row:
    """Of each held-out problem: right at temperature 0, and how many of the samples at temperature 1 are."""
    most = lab.recipe.rollout.max_tokens
    found = {}
    for key, protocol in (("greedy", eval_at_1(most)), ("right", eval_at_k(samples, (1, samples), max_tokens=most))):
        limited = replace(protocol, run_timeout_s=None, memory_mb=None)
        judged = evaluate(EngineAnswerer(lab.engine), lab.env, lab.dev, limited, seed=seed).judged
        right = dict.fromkeys(sorted(problem.id for problem in lab.dev), 0)
        for one in judged:
            right[one.problem.id] += one.verdict.correct is True
        found[key] = list(right.values())
    return {"samples": samples, **found}


def pass_at(row: Row, k: int) -> float:
    """Mean over problems, by the estimator without bias."""
    return float(np.mean([pass_at_k(row["samples"], right, k) for right in row["right"]]))


def jobs(names: Sequence[str], seeds: Sequence[int], steps: int, samples: int) -> dict[str, Job]:
    """Seed by seed."""
    return {f"{name} {seed} {steps} {samples}": (name, seed, steps, samples) for seed in seeds for name in names}


def job_name(row: Row) -> str:
    """A line's name among the jobs."""
    return f"{row['name']} {row['seed']} {row['steps']} {row['samples']}"


def run_all(asked: argparse.Namespace) -> None:
    """What is missing: the starts, then the arms."""
    began, left = time.monotonic(), 0
    for names in (["start"], list(PHASES)):
        named = jobs(names, SEEDS[: asked.seeds], asked.steps, asked.samples)
        seconds = asked.seconds - (time.monotonic() - began)
        left = left or run_missing(LINES, named, run, job_name, asked.processes, seconds)
    print(f"{left} or more left; the same command goes on" if left else "all runs are there")


def whole(rows: Sequence[Row]) -> dict[str, dict[int, Row]]:
    """Name -> seed -> its line, if every seed has all arms: with fewer nothing is reported, as declared."""
    found: dict[str, dict[int, Row]] = {name: {} for name in ("start", *PHASES)}
    for row in rows:
        if (row["steps"], row["samples"]) == (STEPS, SAMPLES) and row["seed"] in SEEDS:
            found[row["name"]][row["seed"]] = row
    missing = [f"{name} {seed}" for name, by in found.items() for seed in SEEDS if seed not in by]
    if missing:
        raise SystemExit(f"{len(missing)} of {len(SEEDS) * len(found)} runs are missing; run `run` first")
    return found


def means_table(found: dict[str, dict[int, Row]]) -> str:
    """Greedy and pass@k of every arm, mean over seeds, in %."""
    heads = ["arm", "greedy", *(f"pass@{k}" for k in KS), "updates without effect", "CPU seconds"]
    lines = [heads, ["---"] * len(heads)]
    for name, by in found.items():
        rows = [by[seed] for seed in SEEDS]
        shown = [
            np.mean([np.mean(row["greedy"]) for row in rows]),
            *(np.mean([pass_at(r, k) for r in rows]) for k in KS),
        ]
        facts = [f"{np.mean([row[key] for row in rows]):.0f}" for key in ("skipped", "cpu_s")]
        lines.append([name, *(f"{100 * one:.1f}" for one in shown), *facts])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def t_test(gap_S: np.ndarray) -> float:
    """Two-sided p of a mean difference of zero over seeds."""
    error = float(gap_S.std(ddof=1)) / math.sqrt(len(gap_S))
    return t_tails(float(gap_S.mean()) / error, len(gap_S) - 1) if error > 0 else float(gap_S.mean() == 0)


def comparisons_table(found: dict[str, dict[int, Row]]) -> str:
    """The declared differences, paired by seed, Holm over all of them."""
    value = {
        (name, k): np.array([pass_at(by[seed], k) for seed in SEEDS]) for name, by in found.items() for k in TESTED
    }
    gaps = {(k, one, other): value[one, k] - value[other, k] for k in TESTED for one, other in COMPARISONS}
    adjusted = holm([t_test(gap_S) for gap_S in gaps.values()])
    lines = ["| | difference in points [95 %] | p (Holm) |", "|---|---|---|"]
    for ((k, one, other), gap_S), p in zip(gaps.items(), adjusted, strict=True):
        shown = "{:+.1f} [{:+.1f}, {:+.1f}]".format(*(100 * number for number in difference(gap_S)))
        lines.append(f"| pass@{k}: {one} − {other} | {shown} | {p:.3f} |")
    return "\n".join(lines)


def report() -> str:
    """Both tables, from the lines of this machine where there are any; they are then kept as results."""
    rows = rows_of(LINES) or (json.loads(RESULTS.read_text()) if RESULTS.exists() else [])
    found = whole(rows)
    kept = [by[seed] for by in found.values() for seed in SEEDS]
    RESULTS.write_text("[\n" + ",\n".join(json.dumps(row) for row in kept) + "\n]\n")
    return f"{means_table(found)}\n\n{comparisons_table(found)}"


def main() -> None:
    """run or report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=("run", "report"))
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=math.inf, help="no run is started that would not end by then")
    parser.add_argument("--steps", type=int, default=STEPS, help="updates of an arm, for trials")
    parser.add_argument("--samples", type=int, default=SAMPLES, help="answers per problem, for trials")
    parser.add_argument("--seeds", type=int, default=len(SEEDS), help="so many of the seeds, for trials")
    asked = parser.parse_args()
    print(report()) if asked.verb == "report" else run_all(asked)


if __name__ == "__main__":
    main()
