"""Which estimators are unbiased: the exact expected policy gradient of each, by enumeration of all trajectories.

Four steps of three actions, tabular autoregressive policies, two verifiers: `set` (two actions needed, one harmful in
front) and `stack` (a register must hold 3: order matters). Cosine of the expected gradient with the true one, the mean
over 20 policies; "fixed" policies do not react to what they did before (ar = 0). Steps are actions and their number is
fixed: what becomes of this in texts that the policy ends itself is in test_bias_of_text_steps.py.
"""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np
import pytest

from rlvrlab.credit import estimators
from rlvrlab.credit.counterfactual import Counterfactual
from rlvrlab.credit.edits import Replays

LENGTH, ACTIONS, POLICIES = 4, 3, 20
TRAJECTORIES = list(itertools.product(range(ACTIONS), repeat=LENGTH))
HISTORIES = [h for t in range(LENGTH) for h in itertools.product(range(ACTIONS), repeat=t)]
ALL = np.arange(LENGTH)
PLANS: dict[str, Replays] = {
    "delete": estimators.leave_one_out(LENGTH, ALL, ("delete",), "fixed"),
    "tail": Counterfactual(estimator="tail", counterfactual_k=0).plan(LENGTH, np.random.default_rng(0)),
    "prefix": estimators.prefix_difference(LENGTH, ALL),
    "substitute": estimators.leave_one_out(LENGTH, ALL, ("substitute",), "fixed"),
    "resample": estimators.leave_one_out(LENGTH, ALL, ("delete", "truncate"), "resample"),
    "vine": estimators.vine(LENGTH, ALL),
    "shapley": estimators.shapley(LENGTH, 1, np.random.default_rng(0)),
    "banzhaf": estimators.banzhaf(LENGTH, 1, np.random.default_rng(0)),
}
TABLE = {
    "reward": (1.000, 1.000, 1.000, 1.00),
    "baseline": (1.000, 1.000, 1.000, 0.86),
    "delete": (1.000, 0.943, 0.854, 1.80),
    "tail": (1.000, 1.000, 1.000, 1.43),
    "prefix": (0.389, 0.453, 0.363, 1.58),
    "substitute": (1.000, 0.978, 0.881, 0.75),
    "vine": (1.000, 1.000, 1.000, 0.33),
    "shapley": (0.968, 0.930, 0.521, 0.15),
    "banzhaf": (0.942, 0.911, 0.325, 0.17),
    "half delete": (1.000, 0.987, 0.919, 1.13),
}
"""Mean cosine: set and fixed, set and reacting, stack and reacting; variance relative to REINFORCE in the last."""


def reward(kind: str, actions: tuple[int, ...]) -> float:
    if kind == "set":
        return float(0 in actions and 1 in actions and (not actions or actions[0] != 2))
    register = 1
    for action in actions:
        register = (register + 1, register * 2, register - 1)[action]
    return float(register == 3)


class Enumerated:
    """One random policy, all its trajectories."""

    def __init__(self, kind: str, ar: float, seed: int) -> None:
        rng = np.random.default_rng(seed)
        base = [rng.standard_normal(ACTIONS) for _ in range(LENGTH)]
        logits = {h: base[len(h)] + ar * rng.standard_normal(ACTIONS) for h in HISTORIES}
        self.policy = {h: np.exp(x) / np.exp(x).sum() for h, x in logits.items()}
        self.kind = kind
        self.chance = np.array([np.prod([self.policy[s[:t]][s[t]] for t in range(LENGTH)]) for s in TRAJECTORIES])
        self.score = np.zeros((len(TRAJECTORIES), LENGTH, len(HISTORIES), ACTIONS))
        for i, s in enumerate(TRAJECTORIES):
            for t in range(LENGTH):
                row = HISTORIES.index(s[:t])
                self.score[i, t, row] = -self.policy[s[:t]]
                self.score[i, t, row, s[t]] += 1

    def value(self, history: tuple[int, ...]) -> float:
        """Of going on by the policy."""
        if len(history) == LENGTH:
            return reward(self.kind, history)
        return sum(self.policy[history][a] * self.value((*history, a)) for a in range(ACTIONS))

    def credit(self, plan: Replays) -> np.ndarray:
        """Of each step of each trajectory; sampled edits by their exact expectation."""
        values = {h: self.value(h) for h in HISTORIES}

        def of(s: tuple[int, ...], edit) -> float:
            if edit.how == "resume":
                return values[s[: edit.step]] if edit.step < LENGTH else reward(self.kind, s)
            if edit.how == "substitute":
                others = [(*s[: edit.step], b, *s[edit.step + 1 :]) for b in range(ACTIONS)]
                return float(self.policy[s[: edit.step]] @ [reward(self.kind, other) for other in others])
            return reward(self.kind, tuple(a for a, kept in zip(s, edit.kept, strict=True) if kept))

        rewards = [reward(self.kind, s) for s in TRAJECTORIES]
        return np.array(
            [
                plan.solve(np.array([of(s, edit) for edit in plan.edits]), whole).credit_S
                for s, whole in zip(TRAJECTORIES, rewards, strict=True)
            ]
        )

    def gradient(self, advantage: np.ndarray) -> tuple[np.ndarray, float]:
        """Expectation and total variance of the policy gradient with these step advantages."""
        each = np.einsum("st,sthv->shv", advantage, self.score).reshape(len(TRAJECTORIES), -1)
        mean = self.chance @ each
        return mean, float(self.chance @ (each**2).sum(axis=1) - mean @ mean)


@cache
def measured(kind: str, ar: float) -> dict[str, tuple[float, float, float]]:
    """Mean and least cosine, and mean variance, of each estimator."""
    found: dict[str, list[tuple[float, float]]] = {}
    for seed in range(POLICIES):
        one = Enumerated(kind, ar, seed)
        rewards = np.repeat([[reward(kind, s)] for s in TRAJECTORIES], LENGTH, axis=1)
        advantages = {name: one.credit(plan) for name, plan in PLANS.items()}
        advantages |= {"reward": rewards, "baseline": rewards - one.value(())}
        advantages["half delete"] = 0.5 * advantages["baseline"] + 0.5 * advantages["delete"]
        true, _ = one.gradient(rewards)
        for name, advantage in advantages.items():
            mean, variance = one.gradient(advantage)
            cosine = float(mean @ true / np.linalg.norm(mean) / np.linalg.norm(true))
            found.setdefault(name, []).append((cosine, variance))
    arrays = {name: np.array(rows) for name, rows in found.items()}
    return {name: (x[:, 0].mean(), x[:, 0].min(), x[:, 1].mean()) for name, x in arrays.items()}


@pytest.mark.slow
@pytest.mark.parametrize("column", range(3))
def test_the_table_of_the_documentation_is_exact(column: int) -> None:
    found = measured(*(("set", 0.0), ("set", 1.0), ("stack", 1.0))[column])
    for name, row in TABLE.items():
        assert found[name][0] == pytest.approx(row[column], abs=6e-4), name
        if column == 2:
            assert found[name][2] / found["reward"][2] == pytest.approx(row[3], abs=6e-3), name


@pytest.mark.slow
@pytest.mark.parametrize("name", PLANS)
def test_estimators_that_see_the_past_only_give_the_true_gradient_for_every_policy(name: str) -> None:
    """And each of the others leads some policy elsewhere."""
    least = min(measured(kind, 1.0)[name][1] for kind in ("set", "stack"))
    assert (name in ("tail", "resample", "vine")) == (least > 1 - 1e-9)


NAMES = {"delete": "delete, fixed suffix", "tail": "tail truncation", "prefix": "prefix difference",
         "substitute": "substitute, fixed suffix", "resample": "resample", "vine": "vine", "shapley": "Shapley",
         "banzhaf": "Banzhaf", "half delete": "½ (R − E[R]) + ½ delete"}  # fmt: skip


if __name__ == "__main__":  # the table of docs/credit.md
    columns = [measured(*where) for where in (("set", 0.0), ("set", 1.0), ("stack", 1.0))]
    variances = {name: one[2] / columns[2]["reward"][2] for name, one in columns[2].items()}
    least = [f"{min(column['reward'][0], column['baseline'][0]):.3f}" for column in columns]
    print(f"| R, R − E[R] | {' | '.join(least)} | {variances['reward']:.2f}, {variances['baseline']:.2f} |")
    for name, words in NAMES.items():
        cosines = " | ".join(f"{column[name][0]:.3f}" for column in columns)
        print(f"| {words} | {cosines} | {variances[name]:.2f} |")
