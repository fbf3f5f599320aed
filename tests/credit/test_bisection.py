"""Halving finds the steps that a right answer needs, with the credit of one-by-one deletion and fewer replays."""

from __future__ import annotations

import sys
from math import ceil, log2
from pathlib import Path

import numpy as np
import pytest

from rlvrlab.credit.bisection import bisect
from rlvrlab.credit.counterfactual import Counterfactual
from rlvrlab.credit.edits import COALITION, Edit
from rlvrlab.envs.minicode.environment import Minicode
from rlvrlab.rewards.binary import Binary
from rlvrlab.train.credit.methods import credit_of
from rlvrlab.types import Problem, Sampling

sys.path.insert(0, str(Path(__file__).parent))
from pieces import CountedPieces
from test_bias_of_text_steps import Silent
from test_trace_credit import judged


def worth(edit: Edit, needed: set[int]) -> float:
    return float(all(edit.kept_S[i] for i in needed))


def played(steps: int, needed: set[int], chosen: list[int] | None = None) -> tuple[np.ndarray, int, int]:
    """Credit, replays and rounds of a game in which an answer is right as long as it has the needed steps."""
    plan = bisect(steps, np.array(range(steps) if chosen is None else chosen))
    edits, rounds = list(plan.edits), 1
    while more := plan.then(np.array([worth(edit, needed) for edit in edits]), 1.0):
        edits, rounds = [*edits, *more], rounds + 1
    return plan.solve(np.array([worth(edit, needed) for edit in edits]), 1.0).credit_S, len(edits), rounds


@pytest.mark.parametrize("steps", [1, 2, 7, 16, 33])
def test_the_credit_is_that_of_deleting_one_by_one(steps: int) -> None:
    rng = np.random.default_rng(steps)
    for _ in range(20):
        needed = set(np.flatnonzero(rng.random(steps) < rng.random()).tolist())
        credit_S, replays, rounds = played(steps, needed)
        assert credit_S.tolist() == [float(i in needed) for i in range(steps)]
        assert replays <= max(1, 2 * steps - 2) and rounds <= max(1, ceil(log2(max(2, steps))))
        assert replays <= 2 + 2 * len(needed) * log2(max(2, steps))


def test_few_needed_steps_take_few_replays_and_many_take_more_than_one_by_one() -> None:
    assert played(32, {5})[1] == 10 and played(32, {5, 6})[1] <= 18
    assert played(32, set(range(32)))[1] == 62


def test_only_the_chosen_steps_are_asked_about_and_single_ones_may_stay_unknown() -> None:
    credit_S, replays, _ = played(8, {1, 6}, [1, 2, 7])
    assert credit_S[[1, 2, 7]].tolist() == [1, 0, 0] and np.isnan(credit_S[[0, 3, 4, 5, 6]]).all() and replays <= 4
    plan = bisect(4, np.arange(4))
    assert [edit.step for edit in plan.edits] == [COALITION, COALITION]
    more = plan.then(np.array([np.nan, 1.0]), 1.0)
    assert [edit.step for edit in more] == [0, 1], "a set that leaves nothing that runs is halved"
    credit_S = plan.solve(np.array([np.nan, 1.0, np.nan, 0.0]), 1.0).credit_S
    assert np.isnan(credit_S[0]) and credit_S[1:].tolist() == [1, 0, 0]


def test_programs_by_halves_and_one_by_one_get_the_same_credit() -> None:
    """Idle statements around a right program; failed answers are left to their group."""
    cases = [[[[3, 1, 4, 1]], 4], [[[9, 2]], 9], [[[1, 2, 3, 8]], 3]]
    problem = Problem("p", "minicode", "gen", "", {"skill": "gen", "header": "def f(x):\n", "hidden": cases})
    idle = "".join(f" a{i}={i}\n" for i in range(11))
    env, texts = Minicode(), [f"{idle} x=x[:3]\n return max(x)\n", f"{idle} return 0\n"]
    rollouts = judged(problem, env, texts)

    def found(**settings: object):
        plugin = Counterfactual(counterfactual_k=0, intervention_types=("delete",), **settings)
        return credit_of(
            plugin, rollouts, env, Binary(), Silent(CountedPieces(tuple(map(chr, range(128))))), Sampling(max_tokens=64)
        )

    halved, single = found(estimator="bisect"), found(examined="earning")
    assert halved.answers.keys() == single.answers.keys() == {"g/0"}
    assert halved.answers["g/0"].raw_S.tolist() == single.answers["g/0"].raw_S.tolist()
    assert halved.metrics["credit/verifier_calls"] < single.metrics["credit/verifier_calls"] == 13
