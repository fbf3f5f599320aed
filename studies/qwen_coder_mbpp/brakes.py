"""Question 2 (rounds/02_entropy.md): what slows the collapse of the entropy? Its tables, from results/ and round2/.

`python studies/qwen_coder_mbpp/recompute.py` prints them. One or two seeds per variant: differences are given seed by
seed, with intervals for new problems only, and no p.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain, product
from pathlib import Path
from typing import Any

import numpy as np
from mbpp_tables import MEASURES, SAMPLES, Measure, first_last, interval, label, markdown, points

from rlvrlab.batch import Floats
from rlvrlab.evals.statistics import compare
from rlvrlab.shares import pass_at_k

RESULTS = Path(__file__).parent / "results"
FIRST = "round1_"
"""Before the names of arms of the first round, so that both runs of grpo_s0 have a name."""
GRPO = [f"{FIRST}grpo_s0", "grpo_s0", f"{FIRST}grpo_s1", f"{FIRST}grpo_s2"]
VARIANTS = [
    "kl_s0", "kl_s1", "refill_s0", "refill_s1", "entropy_s0", "entropy_s1", "lowrate_s0", "minibatches_s0",
    "clip_higher_s0", "hot_s0", "pass_ratio_s0",
]  # fmt: skip
SPREAD = [(GRPO[0], other) for other in GRPO[1:]]
"""Pairs without any change of method: the same seed once more, and other seeds."""
WINDOWS = ((0, 1_600), (3_600, 6_200), (7_200, 9_800), (10_800, 13_400), (15_400, 17_984))
"""Answers drawn so far; a step belongs to the window in which it ends."""
DRAWS = {"mbpp": ("0", "1"), "humaneval": ("0", "1", "2", "3")}
"""Sampling seeds with which the model before training was examined; 0 is the first round's."""


TITLES = {"mbpp": "MBPP", "humaneval": "HumanEval"}


class Brakes:
    """Both rounds: arms, outcomes and metrics by step."""

    def __init__(self, folder: Path = RESULTS) -> None:
        second = folder / "round2"
        self.outcomes: dict[str, dict[str, dict[str, list[int]]]] = json.loads((second / "outcomes.json").read_text())
        self.arms: dict[str, dict[str, Any]] = json.loads((second / "arms.json").read_text())
        self.metrics: dict[str, dict[str, list[float]]] = json.loads((second / "metrics.json").read_text())
        self.profile: dict[str, dict[str, Any]] = json.loads((second / "profile.json").read_text())
        outcomes, arms = (json.loads((folder / name).read_text()) for name in ("outcomes.json", "arms.json"))
        for arm in [*(one for one in GRPO if one.startswith(FIRST)), f"{FIRST}base"]:
            name = arm.removeprefix(FIRST)
            self.arms[arm] = arms[name]
            for data, kind in product(DRAWS, ("greedy", "sampled")):
                self.outcomes[data][kind][arm] = outcomes[data][kind][name]
            if name != "base":
                rows = map(json.loads, (folder / "metrics" / f"{name}.jsonl").read_text().splitlines())
                steps = [row for row in rows if "time/step_s" in row]
                self.metrics[arm] = {
                    key: [row[key] for row in steps] for key in self.metrics["grpo_s0"] if key in steps[0]
                }

    def scores(self, arm: str, measure: Measure) -> Floats:
        """One number per problem: right or not, the share of right samples, or whether any was."""
        right_P = np.array(self.outcomes[measure.data][measure.answers][arm], dtype=np.float64)
        if measure.reach:
            return (right_P > 0).astype(np.float64)
        return right_P / (1 if measure.answers == "greedy" else SAMPLES)

    def column(self, arm: str, key: str) -> Floats:
        """A metric of every training step."""
        return np.array(self.metrics[arm][key])

    def base_draws(self, data: str) -> dict[str, list[int]]:
        """Right samples of 16 per problem before training, by sampling seed."""
        parts = self.outcomes[data]
        return {
            seed: parts["sampled"][f"{FIRST}base"] if seed == "0" else parts[f"sampled/{seed}"]["base"]
            for seed in DRAWS[data]
        }

    def base_together(self, data: str) -> tuple[Floats, Floats]:
        """Per problem before training, from the samples of all draws: pass@1, and the unbiased estimate of pass@16."""
        draws = list(self.base_draws(data).values())
        right_P, drawn = np.sum(draws, axis=0), SAMPLES * len(draws)
        return right_P / drawn, np.array([pass_at_k(drawn, int(right), SAMPLES) for right in right_P])


def brake_tables(results: Brakes) -> Iterator[tuple[str, list[str]]]:
    """Title and Markdown lines of every table of question 2."""
    yield "Question 2: examined after the last step, in %", brake_table(results)
    yield "Question 2: against grpo of the same seed, in points", brake_pair_table(results)
    yield "Question 2: base, drawn again, in %", base_table(results)
    yield "Question 2: pass@16 against all samples of base, in points", reach_table(results)
    yield "Question 2: entropy at equal answers", window_table(results)
    yield "Question 2: seconds per step", brake_time_table(results)
    yield "One update on an H200", profile_table(results.profile)


def named(arm: str) -> str:
    """grpo_s0 -> grpo 0; round1_grpo_s0 -> grpo 0 (round 1)."""
    return label(arm.removeprefix(FIRST)) + (" (round 1)" if arm.startswith(FIRST) else "")


def brake_table(results: Brakes) -> list[str]:
    """What every arm scored, and how its policy changed in training."""
    rows = []
    for arm in [*GRPO, *VARIANTS]:
        scores = [f"{100 * results.scores(arm, measure).mean():.1f}" for measure in MEASURES]
        facts = results.arms[arm]
        rows.append([
            named(arm), f"{facts['answers']:,.0f}", *scores,
            first_last(results.column(arm, "actor/entropy"), "{:.3f}"),
            first_last(results.column(arm, "groups/zero_variance"), "{:.2f}"),
            f"{results.column(arm, 'train/acc')[-5:].mean():.2f}",
            f"{facts['examined']['mbpp/sampled']['neg_logp']:.3f}",
            f"{facts['train_s'] / 60:.1f}",
        ])  # fmt: skip
    heads = [
        "arm", "answers", *map(str, MEASURES), "entropy", "dead groups", "training accuracy, last 5 steps",
        "−log p per token, MBPP test", "minutes of training",
    ]  # fmt: skip
    return markdown(heads, rows)


def references(arm: str) -> list[str]:
    """The grpo runs of the same seed."""
    return [one for one in GRPO if one.endswith(arm[-3:])]


def brake_pair_table(results: Brakes) -> list[str]:
    """Every variant against each grpo run of its seed, and what runs of grpo do to one another."""
    pairs = [(before, after) for after in VARIANTS for before in references(after)]
    rows = []
    for before, after in chain(pairs, [("minibatches_s0", "clip_higher_s0")], SPREAD):
        cells = [compare(results.scores(before, measure), results.scores(after, measure)) for measure in MEASURES]
        changes = [f"{points(cell.mean)} {interval(cell.low, cell.high)}" for cell in cells]
        rows.append([f"{named(after)} − {named(before)}", *changes])
    return markdown(["", *map(str, MEASURES)], rows)


def base_table(results: Brakes) -> list[str]:
    """The model before training, examined with several sampling seeds, and what all its samples say together."""
    rows = []
    for data, title in TITLES.items():
        for seed, right in results.base_draws(data).items():
            reached = np.mean(np.array(right) > 0)
            rows.append([title, seed, f"{100 * np.mean(right) / SAMPLES:.1f}", f"{100 * reached:.1f}"])
        shares_P, reached_P = results.base_together(data)
        error = np.sqrt((shares_P * (1 - shares_P)).sum() / SAMPLES) / len(shares_P)
        reach_error = np.sqrt((reached_P * (1 - reached_P)).sum()) / len(reached_P)
        rows.append([
            title, "together (standard error of one draw)", f"{100 * shares_P.mean():.1f} ({100 * error:.1f})",
            f"{100 * reached_P.mean():.1f} ({100 * reach_error:.1f})",
        ])  # fmt: skip
    return markdown(["data", "sampling seed", "pass@1, T=1", "pass@16"], rows)


def reach_table(results: Brakes) -> list[str]:
    """pass@16 of every arm, drawn once, beside that of the model before training by all its samples."""
    rows = []
    for arm in [*GRPO, *VARIANTS]:
        gaps = [
            results.scores(arm, measure).mean() - results.base_together(measure.data)[1].mean()
            for measure in MEASURES
            if measure.reach
        ]
        rows.append([f"{named(arm)} − base", *map(points, gaps)])
    return markdown(["pass@16", *TITLES.values()], rows)


def window_table(results: Brakes) -> list[str]:
    """Entropy of the answers trained on, by answers drawn so far."""
    rows = []
    for arm in [*GRPO, *VARIANTS]:
        drawn, entropy = (
            np.cumsum(SAMPLES * results.column(arm, "groups/collected")),
            results.column(arm, "actor/entropy"),
        )
        rows.append([named(arm), *(f"{entropy[(a < drawn) & (drawn <= b)].mean():.3f}" for a, b in WINDOWS)])
    return markdown(["answers drawn", *(f"{a:,}–{b:,}" for a, b in WINDOWS)], rows)


def brake_time_table(results: Brakes) -> list[str]:
    """Where the time of a step goes, and the update's time by the answers it was made from."""
    rows = []
    for arm in [*GRPO, *VARIANTS]:
        sample, judge, update, step = (
            results.column(arm, f"time/{part}_s") for part in ("sample", "judge", "update", "step")
        )
        collected = results.column(arm, "groups/collected")
        live = SAMPLES * (collected * (1 - results.column(arm, "groups/zero_variance"))).sum()
        rest = step - sample - judge - update
        means = [f"{part.mean():.2f}" for part in (sample, judge, update, rest, step)]
        rows.append([named(arm), *means, f"{live:,.0f}", f"{100 * (update + rest).sum() / live:.2f}"])
    heads = [
        "arm",
        "sampling",
        "judging",
        "update",
        "rest",
        "whole step",
        "answers in live groups",
        "update and rest per 100 of them",
    ]
    return markdown(heads, rows)


def profile_table(profile: dict[str, dict[str, Any]]) -> list[str]:
    """Where the time of one update goes; one column for each of the two models."""
    cases = [profile[name] for name in ("135m", "1b5")]
    part, traced, lines = ([case[key] for case in cases] for key in ("clocked_s", "profile", "synchronising_lines"))
    heads = ["forward", "backward in all", "head forward", "head backward", "gramian", "optimiser step"]
    rows = [
        ["whole update: answers", *(f"{case['rows']}" for case in cases)],
        ["answer tokens", *(f"{case['answer_tokens']:,}" for case in cases)],
        ["`engine.micro_tokens`", *(f"{case['micro_tokens']:,}" for case in cases)],
        ["seconds (median of so many)", *(f"{case['wall_s']:.2f} ({len(case['walls_s'])})" for case in cases)],
        ["CPU seconds of the process", *(f"{case['cpu_s']:.2f}" for case in cases)],
        ["answer tokens per second", *(f"{case['tokens_per_s']:,.0f}" for case in cases)],
        ["peak memory, GB", *(f"{case['peak_gb']:.1f}" for case in cases)],
        ["looked into: answers", *(f"{case['few_rows']}" for case in cases)],
        ["seconds, once, nothing attached", *(f"{case['few_wall_s']:.2f}" for case in cases)],
        *([f"of it {name}, with synchronisations", *(f"{one[name]:.3f}" for one in part)] for name in heads),
        ["kernel launches", *(f"{one['launches']:,}" for one in traced)],
        ["device busy, ms", *(f"{one['busy_ms']:.0f}" for one in traced)],
        [
            "device busy, share of the seconds",
            *(f"{case['profile']['busy_ms'] / 10 / case['few_wall_s']:.0f} %" for case in cases),
        ],
        ["µs per launch", *(f"{1e6 * case['few_wall_s'] / case['profile']['launches']:.0f}" for case in cases)],
        ["times a line waited for the device", *(f"{sum(one.values())}" for one in lines)],
    ]
    return markdown(["", "SmolLM2-135M's shape, LoRA r8", "Qwen2.5-1.5B's shape, LoRA r32"], rows)
