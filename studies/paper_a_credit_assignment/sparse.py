"""Step credit against GRPO on the sparse testbed: operations.py, trained as sparse.toml says, by the product's steps.

    python studies/paper_a_credit_assignment/sparse.py [--seeds 8] [--processes 2] [--output FILE]
    python studies/paper_a_credit_assignment/sparse.py --report        # the table again, from sparse_results.json

Runs that --output already holds are not run again. The learning rate of each credit is chosen on seeds of its own, then
frozen; GRPO gets the rate with the lowest median on the reported seeds themselves, which favours it. Paired by seed: a
sign-flip permutation test on the log of answers against GRPO, Holm over all comparisons.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rlvrlab.evals.statistics import estimate, holm, sign_flip
from rlvrlab.recipe import load_recipe
from rlvrlab.rollout.collect import collect
from rlvrlab.train.lab import Lab, build_lab
from rlvrlab.train.loop import bare_steps

HERE = Path(__file__).parent
THRESHOLD = 0.8
EVALUATE_EVERY, ANSWERS_EACH = 4, 4
"""Steps between evaluations, and sampled answers to each of the 32 dev problems."""
STEPS = 150
"""After which a run is given up; it then counts as that many."""
RATES = (0.014, 0.02, 0.028)
TUNING_SEEDS = range(1000, 1003)
BASELINE = "GRPO"
EVERY_STEP = ("credit.type=counterfactual", "credit.segmentation=characters", "credit.counterfactual_k=0")
FOUR_STEPS = (*EVERY_STEP[:2], "credit.counterfactual_k=4")
DELETE, TRUNCATE = 'credit.intervention_types=["delete"]', 'credit.intervention_types=["truncate"]'
METHODS: dict[str, tuple[str, ...]] = {
    BASELINE: (),
    "delete, k=16": (*EVERY_STEP, DELETE),
    "delete, k=16, zscore": (*EVERY_STEP, DELETE, "credit.credit_normalization=zscore"),
    "truncate, k=16": (*EVERY_STEP, TRUNCATE),
    "delete + truncate, k=4": FOUR_STEPS,
}


class Trial(NamedTuple):
    """One run."""

    method: str
    rate: float
    seed: int


class Found(NamedTuple):
    """What it took to reach the threshold."""

    reached: bool
    answers: int
    verifier_calls: int
    """Different programs that were judged: answers, and altered answers."""
    tokens: int
    label: str
    """What the metrics line of every step said about the credit: unbiased or shaping; – without credit."""
    cpu_s: float


def train(trial: Trial) -> Found:
    """The steps of `rlvr train sparse.toml` with these keys, until 80 % of sampled answers are right, or to the end."""
    started = time.process_time()
    words = [f"seed={trial.seed}", f"env.world={trial.seed}", f"grpo.learning_rate={trial.rate}", f"grpo.steps={STEPS}"]
    resolved = load_recipe(HERE / "sparse.toml", [*words, *METHODS[trial.method]])
    lab, phase = build_lab(resolved), resolved.phase("grpo")
    lab.engine.fresh_optimizer()
    lab.engine.freeze_reference()
    answers = calls = tokens = 0
    reached, labels = False, set[str]()
    for step, outcome in enumerate(bare_steps(lab, phase, HERE), start=1):
        answers += len(outcome.rollouts)
        calls += len(outcome.rollouts) + int(outcome.metrics.get("credit/verifier_calls", 0))
        tokens += sum(len(rollout.completion.tokens) for rollout in outcome.rollouts)
        tokens += int(outcome.metrics.get("credit/extra_tokens", 0))
        if "credit/unbiased" in outcome.metrics:
            labels.add("unbiased" if outcome.metrics["credit/unbiased"] else "shaping")
        reached = step % EVALUATE_EVERY == 0 and success(lab, step) >= THRESHOLD
        if reached:
            break
    label = "shaping" if "shaping" in labels else "unbiased" if labels else "–"
    return Found(reached, answers, calls, tokens, label, round(time.process_time() - started, 2))


def success(lab: Lab, step: int) -> float:
    """Share of right answers, sampled as in training."""
    key = (lab.recipe.seed, "sparse evaluation", step)
    found = collect(lab.engine, lab.env, lab.reward, lab.dev, n=ANSWERS_EACH, sampling=lab.sampling, key=key)
    return float(np.mean([rollout.verdict.correct is True for rollout in found]))


class Runs:
    """Results by trial, kept in a file after each one, so that what is cut short is not lost."""

    def __init__(self, path: Path, processes: int) -> None:
        self.path, self.processes = path, processes
        rows = json.loads(path.read_text())["runs"] if path.exists() else []
        self.found = {
            Trial(row["method"], row["rate"], row["seed"]): Found(*(row[name] for name in Found._fields))
            for row in rows
        }

    def wanted(self, trials: Iterable[Trial]) -> None:
        """Run those that are not there yet."""
        missing = [trial for trial in trials if trial not in self.found]
        with ProcessPoolExecutor(self.processes, get_context("spawn")) as pool:
            for trial, found in zip(missing, pool.map(train, missing), strict=True):
                self.found[trial] = found
                self.write()
                print(*trial, *found, flush=True)

    def write(self) -> None:
        """One line per run."""
        lines = [
            json.dumps(trial._asdict() | found._asdict(), ensure_ascii=False) for trial, found in self.found.items()
        ]
        facts = json.dumps({"steps": STEPS, "threshold": THRESHOLD, "tuning_seeds": list(TUNING_SEEDS)})
        self.path.write_text(facts[:-1] + ', "runs": [\n' + ",\n".join(lines) + "\n]}\n", encoding="utf-8")

    def answers(self, method: str, rate: float, seeds: Iterable[int]) -> list[int]:
        """Until the threshold, by seed."""
        return [self.found[Trial(method, rate, seed)].answers for seed in seeds]

    def rate(self, method: str, seeds: Sequence[int]) -> float:
        """GRPO's by the median on the reported seeds; credit's by the geometric mean on the tuning seeds."""
        if method == BASELINE:
            return min(RATES, key=lambda rate: float(np.median(self.answers(method, rate, seeds))))
        return min(RATES, key=lambda rate: float(np.log(self.answers(method, rate, TUNING_SEEDS)).mean()))


def measure(runs: Runs, seeds: Sequence[int]) -> None:
    """Tune, then run what was chosen."""
    runs.wanted(Trial(BASELINE, rate, seed) for seed in seeds for rate in RATES)
    for method in METHODS:
        if method != BASELINE:
            runs.wanted(Trial(method, rate, seed) for seed in TUNING_SEEDS for rate in RATES)
            runs.wanted(Trial(method, runs.rate(method, seeds), seed) for seed in seeds)


def rows(runs: Runs, seeds: Sequence[int]) -> list[list[str]]:
    """The table: what each method took, and how it compares with GRPO."""
    base = np.log(runs.answers(BASELINE, runs.rate(BASELINE, seeds), seeds))
    own, gains = {}, {}
    for method in METHODS:
        rate = runs.rate(method, seeds)
        own[method] = (rate, [runs.found[Trial(method, rate, seed)] for seed in seeds])
        gains[method] = base - np.log([one.answers for one in own[method][1]])
    others = [method for method in METHODS if method != BASELINE]
    p = [sign_flip(gains[method], "sparse", method, resamples=100_000) for method in others]
    tests = dict(zip(others, zip(p, holm(p), strict=True), strict=True))
    table = []
    for method, (rate, found) in own.items():
        taken = [one.answers for one in found]
        versus = ["–"] * 4
        if method in tests:
            mean, low, high, *_ = estimate(gains[method], share=False)
            fewer = float(np.median(np.exp(base))) / float(np.median(taken))
            factor = f"{np.exp(mean):.2f} [{np.exp(low):.2f}, {np.exp(high):.2f}]"
            versus = [f"{fewer:.2f}", factor, *(f"{value:.2g}" for value in tests[method])]
        counts = [f"{np.median([getattr(one, name) for one in found]):.0f}" for name in ("verifier_calls", "tokens")]
        reached = f"{sum(one.reached for one in found)}/{len(found)}"
        spread = f"{np.median(taken):.0f} [{min(taken)}, {max(taken)}]"
        table.append([method, found[0].label, f"{rate:g}", reached, spread, *versus, *counts])
    return table


def table(runs: Runs, seeds: Sequence[int]) -> str:
    """In Markdown."""
    head = ["method", "label", "rate", "reached", "answers, median [least, most]", "× fewer (median)"]
    head += ["× fewer (geometric mean, 95 %)", "p", "p (Holm)", "verifier calls", "tokens"]
    lines = [head, ["---"] * len(head), *rows(runs, seeds)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines).replace("| --- ", "|---").replace("--- |", "---|")


def main() -> None:
    """Run what is missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--output", type=Path, default=HERE / "sparse_results.json")
    parser.add_argument("--report", action="store_true", help="only the table of what --output holds; runs nothing")
    asked = parser.parse_args()
    runs, seeds = Runs(asked.output, asked.processes), range(asked.seeds)
    if not asked.report:
        measure(runs, seeds)
    print(table(runs, seeds))


if __name__ == "__main__":
    main()
