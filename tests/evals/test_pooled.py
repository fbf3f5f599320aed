"""Answers of one problem are alike: means over them have intervals over problems."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rlvrlab.evals.metrics import Sample, dataset_metrics
from rlvrlab.evals.pooled import estimate_pooled
from rlvrlab.evals.statistics import estimate, wilson


def test_one_number_a_problem_is_the_plain_estimate() -> None:
    assert estimate_pooled([[1.0], [0.0], [1.0], []]) == estimate([1.0, 0.0, 1.0])
    assert estimate_pooled([]) == estimate([])


def test_it_is_the_cluster_robust_ratio() -> None:
    groups = [[0.0, 3.0], [5.0], [2.0, 2.0, 8.0]]
    mean = 20 / 6
    sums = [sum(value - mean for value in group) for group in groups]
    error = math.sqrt(3 / 2 * sum(one**2 for one in sums)) / 6
    found = estimate_pooled(groups, share=False)
    assert found.value == pytest.approx(mean) and found.high - mean == pytest.approx(4.302653 * error, rel=1e-6)


def test_answers_of_one_problem_do_not_count_as_many_problems() -> None:
    rng = np.random.default_rng(0)
    held = {"problems": 0, "answers": 0}
    for _ in range(400):
        chance = rng.beta(0.6, 0.9, 40)
        groups = [(rng.random(rng.integers(1, 9)) < one).astype(float).tolist() for one in chance]
        found, right = estimate_pooled(groups), sum(map(sum, groups))
        low, high = wilson(int(right), sum(map(len, groups)))
        held["problems"] += found.low <= 0.4 <= found.high
        held["answers"] += low <= 0.4 <= high
    assert held["problems"] > 0.925 * 400 > 0.85 * 400 > held["answers"]


@pytest.mark.parametrize("score", [0.0, 1.0])
def test_all_equal_is_never_certain(score: float) -> None:
    found = estimate_pooled([[score] * 4] * 10)
    assert found.high - found.low == pytest.approx(wilson(0, 10).high)
    assert estimate_pooled([[score] * 9])[1:3] == (0.0, 1.0), "one problem says nothing about others"


def test_a_recovery_rate_of_several_answers_a_problem_is_one_over_problems() -> None:
    samples = []
    for problem in range(10):
        for sample in range(8):
            given = (f"p{problem}", sample)
            mended = problem < 5
            samples.append(Sample(*given, False, 0.0, "wrong", 0.0, 1, False))
            samples.append(Sample(*given, mended, float(mended), "none" if mended else "wrong", 0.0, 1, False, turn=1))
            samples.append(Sample(*given, mended, float(mended), "none" if mended else "wrong", 0.0, 1, False, turn=-1))
    told = dataset_metrics(samples)
    for name in ("recovery_rate", "blind_recovery_rate"):
        assert told[name] == 0.5 and told[f"{name}_high"] - told[f"{name}_low"] > 0.5 > 2 * wilson(40, 80)[1] - 1
