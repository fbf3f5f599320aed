"""From rewards of altered trajectories to credit of steps. v(S) is the reward with the steps S alone, N all of them.

    leave_one_out   c_i = v(N) − mean over interventions on i         0 for both of two equivalent steps
    prefix          c_i = v(≤ i) − v(< i)                             telescopes to v(N) − v(∅)
    tail            c_i = v(N) − v(< i)
    shapley         c_i = Σ_S |S|! (n − |S| − 1)! / n! · [v(S + i) − v(S)]      adds up to v(N) − v(∅)
    banzhaf         c_i = mean over all S without i of v(S + i) − v(S)
    vine            c_i = V(≤ i) − V(< i), V the mean reward of the policy's own continuations (VinePPO, 2410.01679)
    step_groups     c_i = v(N) − mean of the other answers that share the steps before i (as GiGPO, 2505.10978)

Each estimator returns Replays: what to replay, and how to solve for the credit afterwards, so all replays of a
collection go to the verifier at once. Unknown rewards (NaN) make unknown credit, never 0. The verifier is taken to be
deterministic.
Which of them are unbiased as advantages is said in counterfactual.py and shown in tests/credit/test_bias_table.py.
Suffixes: S steps, E edits, C coalitions, M permutations, P pairs of coalitions.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from math import comb

import numpy as np

from rlvrlab.batch import Bools, Floats, Ints
from rlvrlab.credit.edits import Edit, Estimate, Intervention, ReplayMode, Replays, before, coalition, intervention

EXACT = 10
"""Up to so many steps Shapley and Banzhaf enumerate all coalitions."""
MAX_REPLAYS = 1 << EXACT
"""Replays of one answer at most, whatever its number of steps."""


def leave_one_out(steps: int, chosen_S: Ints, kinds: Sequence[Intervention], replay: ReplayMode) -> Replays:
    """Intervene on each chosen step; several kinds are averaged."""
    asked = [[intervention(kind, steps, int(i), replay) for kind in kinds] for i in chosen_S]

    def solve(value_SK: Floats, whole: float) -> Estimate:
        credit_S = np.full(steps, np.nan)
        known_SK = ~np.isnan(value_SK)
        count_S = known_SK.sum(axis=1)
        mean_S = np.where(known_SK, value_SK, 0.0).sum(axis=1) / np.maximum(count_S, 1)
        credit_S[chosen_S] = np.where(count_S > 0, whole - mean_S, np.nan)
        return Estimate.exact(credit_S)

    return _replays(asked, solve)


def prefix_difference(steps: int, chosen_S: Ints) -> Replays:
    """What each chosen step adds to the steps before it."""
    return _differences(steps, chosen_S, lambda place: coalition(before(steps, place)))


def vine(steps: int, chosen_S: Ints) -> Replays:
    """The change of the policy's own value across each chosen step; after the last one it is the reward."""
    return _differences(steps, chosen_S, lambda place: Edit("resume", place, before(steps, place).tobytes()))


def shapley(steps: int, samples: int, rng: np.random.Generator) -> Replays:
    """Exact up to EXACT steps, then antithetic permutations: each adds up to v(N) − v(∅) by itself."""
    if steps <= EXACT:
        return _enumerated(steps, np.array([1.0 / (steps * comb(steps - 1, size)) for size in range(steps)]))
    if samples * steps > MAX_REPLAYS:
        return _marginals(steps, samples, rng)
    orders_MS = _antithetic([rng.permutation(steps) for _ in range((samples + 1) // 2)], samples)
    # Each chain begins with no step and has one more each time.
    chains = [[coalition(np.argsort(order_S) < size) for size in range(steps + 1)] for order_S in orders_MS]

    def solve(value_MS: Floats, whole: float) -> Estimate:
        gain_MS = np.empty((len(chains), steps))
        np.put_along_axis(gain_MS, np.array(orders_MS), np.diff(value_MS, axis=1), axis=1)
        return _sampled(gain_MS)

    return _replays(chains, solve)


def banzhaf(steps: int, samples: int, rng: np.random.Generator) -> Replays:
    """Exact up to EXACT steps; then about `samples` coalitions per step, half of them complements, used for all."""
    if steps <= EXACT:
        return _enumerated(steps, np.full(steps, 0.5 ** (steps - 1)))
    half_CS = rng.random((max(2, min(MAX_REPLAYS, samples * steps) // 2), steps)) < 0.5
    kept_CS = np.concatenate([half_CS, ~half_CS])

    def solve(value_1C: Floats, whole: float) -> Estimate:
        with_S, error_with_S = _column_means(value_1C[0], kept_CS)
        without_S, error_without_S = _column_means(value_1C[0], ~kept_CS)
        return Estimate(with_S - without_S, np.sqrt(error_with_S + error_without_S))

    return _replays([[coalition(kept_S) for kept_S in kept_CS]], solve)


def step_groups(prefixes: Sequence[Sequence[Hashable]], reward_B: Floats, group_B: Ints) -> list[Floats]:
    """Each step against the other answers of its group that had come to the same place; no replay at all."""
    members: dict[tuple[int, Hashable], list[int]] = {}
    for row, keys in enumerate(prefixes):
        for key in dict.fromkeys(keys):
            members.setdefault((int(group_B[row]), key), []).append(row)
    credit = []
    for row, keys in enumerate(prefixes):
        credit_S = np.full(len(keys), np.nan)
        for step, key in enumerate(keys):
            peers = [reward_B[j] for j in members[int(group_B[row]), key] if j != row and not np.isnan(reward_B[j])]
            if peers:
                credit_S[step] = reward_B[row] - np.mean(peers)
        credit.append(credit_S)
    return credit


def _replays(asked: Sequence[Sequence[Edit]], solve: Callable[[Floats, float], Estimate]) -> Replays:
    """Each edit replayed once; `solve` gets the values in the shape of `asked`.

    One that leaves the answer whole is not replayed, since its reward is known.
    """
    wanted = dict.fromkeys(edit for edits in asked for edit in edits)
    altered = [edit for edit in wanted if edit.how not in ("keep", "resume") or 0 in edit.kept]
    index = {edit: i for i, edit in enumerate(altered)}
    at = np.array([[index.get(edit, -1) for edit in edits] for edits in asked])  # -1 is the whole, appended last
    return Replays(tuple(altered), lambda value_E, whole: solve(np.append(value_E, whole)[at], whole))


def _differences(steps: int, chosen_S: Ints, stopped: Callable[[int], Edit]) -> Replays:
    """Across each chosen step: the value where the answer is stopped after it, less that where it is before it."""

    def solve(value_S2: Floats, whole: float) -> Estimate:
        credit_S = np.full(steps, np.nan)
        credit_S[chosen_S] = np.diff(value_S2, axis=1)[:, 0]
        return Estimate.exact(credit_S)

    return _replays([[stopped(i), stopped(i + 1)] for i in map(int, chosen_S)], solve)


def _enumerated(steps: int, weight_K: Floats) -> Replays:
    """All coalitions; the weight of a marginal contribution depends on the size of what it is added to."""
    kept_CS = (np.arange(1 << steps)[:, None] >> np.arange(steps)) & 1 == 1
    size_C = kept_CS.sum(axis=1)

    def solve(value_1C: Floats, whole: float) -> Estimate:
        value_C, credit_S = value_1C[0], np.empty(steps)
        for i in range(steps):
            without_C = np.flatnonzero(~kept_CS[:, i])
            credit_S[i] = weight_K[size_C[without_C]] @ (value_C[without_C | 1 << i] - value_C[without_C])
        return Estimate.exact(credit_S)

    return _replays([[coalition(kept_S) for kept_S in kept_CS]], solve)


def _marginals(steps: int, samples: int, rng: np.random.Generator) -> Replays:
    """Too many steps for whole permutations: single marginals of randomly chosen steps; the others stay unknown."""
    count = max(1, min(steps, MAX_REPLAYS // (2 * samples)))
    chosen_S = np.sort(rng.choice(steps, size=count, replace=False))
    pairs: list[tuple[Edit, Edit]] = []
    for i in map(int, chosen_S):
        orders = _antithetic([rng.permutation(steps) for _ in range((samples + 1) // 2)], samples)
        places = [np.argsort(order_S) for order_S in orders]
        # The steps before i in an order, without it and with it.
        pairs += [(coalition(place_S < place_S[i]), coalition(place_S <= place_S[i])) for place_S in places]

    def solve(value_P2: Floats, whole: float) -> Estimate:
        gain_MS = np.full((samples, steps), np.nan)
        gain_MS[:, chosen_S] = np.diff(value_P2, axis=1).reshape(count, samples).T
        return _sampled(gain_MS)

    return _replays(pairs, solve)


def _antithetic(orders: Sequence[Ints], samples: int) -> list[Ints]:
    return [one for order_S in orders for one in (order_S, order_S[::-1])][:samples]


def _sampled(gain_MS: Floats) -> Estimate:
    """Mean and its standard error over antithetic pairs, which are what is independent."""
    pairs = [gain_MS[m : m + 2].mean(axis=0) for m in range(0, len(gain_MS), 2)]
    mean_S = gain_MS.mean(axis=0)
    if len(pairs) < 2:
        return Estimate(mean_S, np.full(len(mean_S), np.nan))
    return Estimate(mean_S, np.std(pairs, axis=0, ddof=1) / np.sqrt(len(pairs)))


def _column_means(value_C: Floats, kept_CS: Bools) -> tuple[Floats, Floats]:
    """Mean over the coalitions that have each step, and its squared standard error; NaN where there is none."""
    known_C = ~np.isnan(value_C)
    value_C, kept_CS = value_C[known_C], kept_CS[known_C].astype(np.float64)
    count_S = np.where(kept_CS.sum(axis=0) > 0, kept_CS.sum(axis=0), np.nan)
    mean_S = value_C @ kept_CS / count_S
    spread_S = np.maximum(value_C**2 @ kept_CS / count_S - mean_S**2, 0.0)
    return mean_S, spread_S / np.maximum(count_S - 1, 1)
