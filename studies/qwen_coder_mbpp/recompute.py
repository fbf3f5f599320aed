"""Every number in the tables of README.md and rounds/, from results/ alone: python studies/qwen_coder_mbpp/recompute.py

Question 1 is here, question 2 in brakes.py beside this file. results/outcomes.json has, for every arm and problem,
whether the greedy answer was right (0 or 1) and how many of 16 samples were; results/arms.json how each arm was run and
examined; results/metrics/ARM.jsonl every training step.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from math import sqrt
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from brakes import Brakes, brake_tables
from mbpp_tables import MEASURES, SAMPLES, Measure, first_last, interval, label, markdown, points

from rlvrlab.batch import Floats
from rlvrlab.evals.statistics import Difference, compare, compare_seeds, holm

RESULTS = Path(__file__).parent / "results"
SEEDS = (0, 1, 2)
TRAINED = [f"{kind}_s{seed}" for kind in ("grpo", "random") for seed in SEEDS] + ["entropy_s0"]
AGAINST = {"grpo − base": ("base", "grpo"), "random − base": ("base", "random"), "grpo − random": ("random", "grpo")}
WINDOWS = ((1, 3), (8, 12), (15, 19), (22, 26), (31, 35))
"""First and last step of the windows in which arms are compared at equal steps."""
T_2DF = 4.302652729911275
"""Two-sided 95 % quantile of Student's t with two degrees of freedom: three seeds."""


class OverSeeds(NamedTuple):
    """What three seeds say of a difference: Student's t over seeds, beside the interval for new seeds and problems."""

    per_seed: Floats
    mean: float
    half: float
    p: float
    both: Difference


class Results:
    """The files under results/."""

    def __init__(self, folder: Path = RESULTS) -> None:
        self.arms: dict[str, dict[str, Any]] = json.loads((folder / "arms.json").read_text())
        self.outcomes: dict[str, dict[str, Any]] = json.loads((folder / "outcomes.json").read_text())
        self.steps: dict[str, list[dict[str, float]]] = {}
        for arm in TRAINED:
            rows = map(json.loads, (folder / "metrics" / f"{arm}.jsonl").read_text().splitlines())
            self.steps[arm] = [row for row in rows if "time/step_s" in row]

    def scores(self, arm: str, measure: Measure) -> Floats:
        """One number per problem: right or not, the share of right samples, or whether any was."""
        right_P = np.array(self.outcomes[measure.data][measure.answers][arm], dtype=np.float64)
        if measure.reach:
            return (right_P > 0).astype(np.float64)
        return right_P / (1 if measure.answers == "greedy" else SAMPLES)

    def paired(self, before: str, after: str, measure: Measure) -> Difference:
        """Two arms on the same problems; the interval is for new problems only."""
        return compare(self.scores(before, measure), self.scores(after, measure))

    def over_seeds(self, name: str, measure: Measure) -> OverSeeds:
        """Three seeds of one kind of arm against base, or against three seeds of another, paired by seed number."""
        before_SP, after_SP = (
            np.array([self.scores("base" if kind == "base" else f"{kind}_s{seed}", measure) for seed in SEEDS])
            for kind in AGAINST[name]
        )
        per_seed = after_SP.mean(axis=1) - before_SP.mean(axis=1)
        mean, error = float(per_seed.mean()), float(per_seed.std(ddof=1)) / sqrt(len(SEEDS))
        t = abs(mean) / error
        p = 1 - t / sqrt(2 + t * t)  # Student's distribution has this closed form at two degrees of freedom
        # base is one policy that was examined once, so there are no seeds of it to pair
        once = AGAINST[name][0] == "base"
        both = compare_seeds(before_SP[:1] if once else before_SP, after_SP, paired=not once)
        return OverSeeds(per_seed, mean, T_2DF * error, p, both)

    def column(self, arm: str, key: str) -> Floats:
        """A metric of every training step."""
        return np.array([row[key] for row in self.steps[arm]])

    def sharing(self, arm: str) -> float:
        """How many other arms were at work on the card, on average over this arm's time."""
        begin, length = self.arms[arm]["started"], self.arms[arm]["seconds"]
        others = [self.arms[other] for other in TRAINED if other != arm]
        shared = [min(begin + length, o["started"] + o["seconds"]) - max(begin, o["started"]) for o in others]
        return sum(max(0.0, seconds) for seconds in shared) / length


def main() -> None:
    """Print the table of the README, and those of the rounds."""
    results = Results()
    strict = "For new seeds and problems, in points", strict_table(results)
    for title, lines in (strict, *tables(results), *brake_tables(Brakes())):
        print(f"{title}\n\n" + "\n".join(lines) + "\n")


def tables(results: Results) -> Iterator[tuple[str, list[str]]]:
    """Title and Markdown lines of every table of question 1."""
    yield "Examined after the last step, in %", arm_table(results)
    yield "Over three seeds, in points", seed_table(results)
    yield "Each seed alone, in points", pair_table(results)
    yield "During training", training_table(results)
    yield "Mean entropy at equal steps", entropy_table(results)
    yield "Seconds per step", time_table(results)


def arm_table(results: Results) -> list[str]:
    """What every arm scored."""
    rows = []
    for arm in ["base", *TRAINED]:
        facts = results.arms[arm]
        scores = [f"{100 * results.scores(arm, measure).mean():.1f}" for measure in MEASURES]
        rows.append([label(arm), str(facts.get("steps", 0)), f"{facts.get('answers', 0):,.0f}", *scores])
    return markdown(["arm", "steps", "answers", *map(str, MEASURES)], rows)


def seed_table(results: Results) -> list[str]:
    """Differences over three seeds, by both ways of saying how sure they are."""
    found = [(name, measure, results.over_seeds(name, measure)) for measure in MEASURES for name in AGAINST]
    adjusted = holm([over.p for _, _, over in found])
    rows = []
    for (name, measure, over), p_holm in zip(found, adjusted, strict=True):
        per_seed = ", ".join(points(value) for value in over.per_seed)
        seeds = f"{points(over.mean)} {interval(over.mean - over.half, over.mean + over.half)}"
        again = over.both
        rows.append(
            [str(measure), name, per_seed, seeds, f"{over.p:.2g}", f"{p_holm:.2g}", interval(again.low, again.high)]
        )
    over_both = "[95 %, new seeds and problems]"
    heads = ["", "", "seeds 0, 1, 2", "mean [95 %, t over seeds]", "p of t", "p of t (Holm, 18)", over_both]
    return markdown(heads, rows)


def strict_table(results: Results) -> list[str]:
    """The means with their stricter intervals, as the study's first page tells them."""
    rows = []
    for measure in MEASURES:
        found = [results.over_seeds(name, measure) for name in AGAINST]
        rows.append([str(measure), *(f"{points(one.mean)} {interval(one.both.low, one.both.high)}" for one in found)])
    return markdown(["[95 %, new seeds and problems]", *AGAINST], rows)


def pair_table(results: Results) -> list[str]:
    """Every seed against base and against its control."""
    pairs = [("base", arm) for arm in TRAINED] + [(f"random_s{seed}", f"grpo_s{seed}") for seed in SEEDS]
    rows = []
    for before, after in [*pairs, ("grpo_s0", "entropy_s0")]:
        cells = [results.paired(before, after, measure) for measure in MEASURES]
        changes = [f"{points(cell.mean)} {interval(cell.low, cell.high)}" for cell in cells]
        rows.append([f"{label(after)} − {label(before)}", *changes])
    return markdown(["", *map(str, MEASURES)], rows)


def training_table(results: Results) -> list[str]:
    """How the policy changed while it was trained, and what that took."""
    rows = []
    for arm in ["base", *TRAINED]:
        facts = results.arms[arm]
        parts = facts["examined"].values()
        curves = ["–"] * 3
        if arm != "base":
            entropy, dead = (results.column(arm, key) for key in ("actor/entropy", "groups/zero_variance"))
            curves = [
                first_last(entropy, "{:.3f}"),
                first_last(dead, "{:.2f}"),
                first_last(results.column(arm, "response_length/mean"), "{:.0f}"),
            ]
        sampled = facts["examined"]["mbpp/sampled"]
        minutes = f"{facts.get('train_s', 0) / 60:.1f} + {sum(part['seconds'] for part in parts) / 60:.1f}"
        others = "–" if arm == "base" else f"{results.sharing(arm):.1f}"
        rows.append([label(arm), *curves, f"{sampled['neg_logp']:.3f}", f"{sampled['truncated']:,}", minutes, others])
    heads = [
        "arm", "entropy", "dead groups", "tokens per answer", "−log p per token, MBPP test", "of 7,984 samples cut off",
        "minutes training + examination", "other arms on the card",
    ]  # fmt: skip
    return markdown(heads, rows)


def entropy_table(results: Results) -> list[str]:
    """Entropy in windows of steps that arms have in common."""
    rows = []
    for arm in ("grpo_s0", "grpo_s1", "grpo_s2", "entropy_s0"):
        entropy = results.column(arm, "actor/entropy")
        means = [f"{entropy[a - 1 : b].mean():.3f}" if b <= len(entropy) else "not reached" for a, b in WINDOWS]
        rows.append([label(arm), *means])
    return markdown(["steps", *(f"{a}–{b}" for a, b in WINDOWS)], rows)


def time_table(results: Results) -> list[str]:
    """Where the time of a step goes; in brackets the first five steps and the last five."""
    rows = []
    for arm in TRAINED:
        parts = [results.column(arm, f"time/{part}_s") for part in ("sample", "judge", "update", "step")]
        cells = [f"{s.mean():.2f} ({s[:5].mean():.2f} → {s[-5:].mean():.2f})" for s in parts]
        rows.append([label(arm), *cells, f"{parts[-1].sum():.0f}", f"{results.arms[arm]['memory_gb']:.0f}"])
    return markdown(["arm", "sampling", "judging", "update", "whole step", "all steps", "GB reserved"], rows)


if __name__ == "__main__":
    main()
