"""Guards that train on, project against or average with what they remember: each against an expectation of its own."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import runs
import scipy
from slow_cases import some_slow
from test_guards import SEQUENTIAL, going_on, trained
from test_protocols import SKILLS

from rlvrlab.batch import batch_of
from rlvrlab.errors import UserError
from rlvrlab.rollout.trainable import verified
from rlvrlab.surgery.base import Scene
from rlvrlab.train.guards.gem import Gem
from rlvrlab.train.lab import Lab
from rlvrlab.train.state import Moment
from rlvrlab.train.surgery import operate
from rlvrlab.train.update import Backward, Gradients

PLAIN = [*SEQUENTIAL, "optimizer.max_grad_norm=0", "grpo.steps=12", "sft.steps=20", "filter.dead_groups=keep"]
"""No clipping, and an update in every step."""
FIRST = 6
"""The first step of the second stage."""


class Step(NamedTuple):
    """One optimiser step, as the engine saw it."""

    before: np.ndarray
    vectors: list
    weights: list
    applied: np.ndarray


def recorded(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> list[Step]:
    """Fills up while `lab` is trained."""
    steps, step = [], lab.engine.step

    def watched(vectors, weights, learning_rate):
        before, given = lab.engine.theta, [vector.copy() for vector in vectors]
        applied = step(vectors, weights, learning_rate)
        steps.append(Step(before, given, list(weights), applied))
        return applied

    monkeypatch.setattr(lab.engine, "step", watched)
    return steps


def second_stage(folder: Path, monkeypatch: pytest.MonkeyPatch, *words: str, steps: int = 3):
    """The laboratory, its outcomes and the optimiser's steps of the second stage."""
    lab, outcomes = trained(folder, *PLAIN, *words, until=FIRST)
    seen = recorded(lab, monkeypatch)
    later = list(islice(going_on(lab, outcomes), steps))
    assert len(seen) == steps and all(not outcome.silent for outcome in later)
    return lab, later, seen


def rows_of(outcome) -> list[tuple[list[int], list[int]]]:
    stored = outcome.memory.guard.memory["answers"]["plus"].values()
    return [(row["prompt"], answer) for row in stored for answer in row["answers"]]


def nll(lab: Lab, theta: np.ndarray, rows: list) -> float:
    """Mean over tokens, from the engine's scores alone."""
    batch = batch_of([prompt for prompt, _ in rows], [answer for _, answer in rows])
    return -float(lab.engine.logprobs(batch, theta)[0].sum() / batch.seen_BT.sum())


def enumerated_kl(lab: Lab, anchor: np.ndarray, theta: np.ndarray, rows: list) -> float:
    """Every token of the vocabulary scored after every prefix of every answer."""
    size, total, count = lab.engine.tokenizer.vocab_size, 0.0, 0
    for prompt, answer in rows:
        for at in range(len(answer)):
            every = batch_of([prompt] * size, [(*answer[:at], token) for token in range(size)])
            before, after = (lab.engine.logprobs(every, policy)[0][:, at] for policy in (anchor, theta))
            total, count = total + float((np.exp(before) * (before - after)).sum()), count + 1
    return total / count


def slope(function, theta: np.ndarray, direction: np.ndarray, size: float = 1e-5) -> float:
    return (function(theta + size * direction) - function(theta - size * direction)) / (2 * size)


@pytest.mark.parametrize("loss", some_slow(["likelihood", "accepted", "kl"], ["likelihood"]))
def test_a_penalty_is_the_gradient_of_the_remembered_answers_loss(tmp_path: Path, monkeypatch, loss: str) -> None:
    """Finite differences of the mean log-probability of what is in the memory, along random directions."""
    words = ["guard.type=penalty", f"guard.loss={loss}", "guard.coef=0.7", "guard.memory_per_skill=8"]
    lab, later, seen = second_stage(tmp_path, monkeypatch, *words)
    rows, rng = rows_of(later[-1]), np.random.default_rng(0)
    for step, outcome in zip(seen, later, strict=True):
        *_, own = step.vectors
        assert step.weights[-1] == 0.7 and len(step.vectors) == 2
        assert outcome.metrics["guard/plus/loss"] == pytest.approx(nll(lab, step.before, rows), abs=1e-12)
        direction = rng.standard_normal(len(own)) / len(own) ** 0.5
        measured = slope(lambda theta: nll(lab, theta, rows), step.before, direction)
        assert own @ direction == pytest.approx(measured, abs=1e-8)


def test_accepted_answers_are_the_anchors_own_and_right(tmp_path: Path, monkeypatch) -> None:
    """On-policy replay as SFT: as often as drawn, only right ones, and so many rows as asked for in an update."""
    drawn, asked = [], Moment.asked

    def watched(self, problems, *purpose, greedy=False):
        found = asked(self, problems, *purpose, greedy=greedy)
        drawn.extend(found if purpose[0] == "sample" else [])
        return found

    monkeypatch.setattr(Moment, "asked", watched)
    words = ["guard.type=penalty", "guard.loss=accepted", "guard.memory_per_skill=8", "guard.rows=3"]
    lab, later, seen = second_stage(tmp_path, monkeypatch, *words)
    right = [(list(r.prompt_tokens), list(r.completion.tokens)) for r in drawn if verified(r)]
    rows = rows_of(later[-1])
    assert sorted(rows) == sorted(right) and 3 < len(right) < len(drawn)
    values = {outcome.metrics["guard/plus/loss"] for outcome in later}
    whole = {nll(lab, step.before, rows) for step in seen}
    assert len(values) == 3 and not values & whole, "three rows of each step are not the whole memory"


def test_the_exact_kl_is_that_of_enumeration_and_0_at_the_anchor(tmp_path: Path, monkeypatch) -> None:
    words = ["guard.type=penalty", "guard.loss=kl_full", "guard.coef=5.0", "guard.memory_per_skill=2", "rollout.n=3"]
    lab, later, seen = second_stage(tmp_path, monkeypatch, *words)
    anchor, rows = seen[0].before, rows_of(later[-1])
    assert not seen[0].vectors[-1].any() and later[0].metrics["guard/plus/loss"] == 0.0
    assert seen[1].vectors[-1].any()
    direction = np.random.default_rng(1).standard_normal(len(anchor)) / len(anchor) ** 0.5
    measured = slope(lambda theta: enumerated_kl(lab, anchor, theta, rows), seen[1].before, direction, 1e-4)
    assert seen[1].vectors[-1] @ direction == pytest.approx(measured, rel=1e-5)
    assert later[1].metrics["guard/plus/loss"] == pytest.approx(enumerated_kl(lab, anchor, seen[1].before, rows))


def test_fresh_prompts_join_the_stored_ones_at_the_same_strength(tmp_path: Path, monkeypatch) -> None:
    words = ["guard.type=penalty", "guard.loss=kl_full", "guard.fresh=3", "guard.memory_per_skill=2", "guard.coef=2.0"]
    _, later, seen = second_stage(tmp_path, monkeypatch, *words)
    assert [step.weights[-2:] for step in seen] == [[1.0, 1.0]] * 3
    assert later[0].metrics["guard/plus/fresh_loss"] == 0.0 < later[1].metrics["guard/plus/fresh_loss"]
    with pytest.raises(UserError, match="needs stored answers"):
        trained(tmp_path, *PLAIN, "guard.type=penalty", "guard.fresh=3", until=1)


@pytest.mark.parametrize("average", some_slow([False, True], [False]))
def test_gem_raises_no_remembered_loss_by_its_gradient(tmp_path: Path, monkeypatch, average: bool) -> None:
    """⟨ℓ_s, d⟩ ≥ 0, and d is the projection of the plain gradient that a general solver finds."""
    words = ["guard.type=gem", f"guard.average={str(average).lower()}", 'guard.protected=["plus","times"]']
    words += ["guard.loss=kl", "guard.memory_per_skill=6"]
    lab, outcomes = trained(tmp_path, *PLAIN, *words, until=1)
    steps = recorded(lab, monkeypatch)
    bent, losses, found = 0, [], Gem.losses

    def watched(self, now, kept):
        losses.append(found(self, now, kept))
        return losses[-1]

    monkeypatch.setattr(Gem, "losses", watched)
    for _ in islice(going_on(lab, outcomes), 9):
        L = np.stack([one.vector for one in losses[-1]])
        plain, d = steps[-1].vectors[0], sum(w * v for w, v in zip(steps[-1].weights, steps[-1].vectors, strict=True))
        against = L.mean(axis=0, keepdims=True) if average else L
        if len(steps[-1].vectors) == 1:
            assert (against @ plain >= 0).all()
            continue
        bent += 1
        basis = np.linalg.qr(np.stack([*against, plain]).T)[0]
        small, start = against @ basis, plain @ basis
        reference = scipy.optimize.minimize(
            lambda x, at=start: 0.5 * ((x - at) ** 2).sum(), start, jac=lambda x, at=start: x - at,
            constraints=[{"type": "ineq", "fun": lambda x, A=small: A @ x, "jac": lambda x, A=small: A}],
            method="SLSQP", options={"ftol": 1e-16},
        ).x  # fmt: skip
        np.testing.assert_allclose(d, basis @ reference, atol=1e-6 * np.linalg.norm(plain))
    assert bent, "no gradient had to be corrected, so nothing was tested"


def test_averages_are_those_of_the_parameters(tmp_path: Path, monkeypatch) -> None:
    """An exponential average of the stage's steps, to which the policy goes half-way now and then and at its end."""
    words = ["guard.type=average", "guard.decay=0.8", "guard.weight=0.5", "guard.every=4"]
    lab, outcomes = trained(tmp_path, *PLAIN, *words, until=FIRST)
    steps = recorded(lab, monkeypatch)
    average = theta = lab.engine.theta
    for done, _ in enumerate(going_on(lab, outcomes), start=1):
        theta = theta + steps[-1].applied
        average = 0.8 * average + 0.2 * theta
        if done in (4, 6):
            theta = 0.5 * theta + 0.5 * average
        np.testing.assert_allclose(lab.engine.theta, theta, atol=1e-12)
    assert done == 6


def test_a_stage_ends_with_its_average_even_where_its_last_step_had_nothing_to_train_on(tmp_path: Path) -> None:
    """A policy that knows nothing gets nothing right: no update, but the average still counts the step."""
    words = [*SEQUENTIAL, "guard.type=average", "guard.weight=1.0", "sft.steps=1", "sft.learning_rate=1e-9"]
    lab, outcomes = trained(tmp_path, *words, until=3)
    assert outcomes[-1].silent
    anchor, version = lab.engine.theta, lab.engine.version
    second = going_on(lab, outcomes)
    next(second)
    lab.engine.theta = lab.engine.theta + 0.01
    assert list(second)[-1].silent
    np.testing.assert_allclose(lab.engine.theta, anchor, atol=1e-15)
    assert lab.engine.version == version + 1


def test_the_proximal_step_is_the_nearest_harmless_one_to_the_step_drawn_back(tmp_path: Path, monkeypatch) -> None:
    """A general solver on d₀ = (u − κ (θ − θ*)) / (1 + κ), with a constraint for every cluster, in parameter space."""
    words = ["guard.type=proximal", "guard.kappa=0.25", "guard.constraints=3", "guard.memory_per_skill=10"]
    lab, outcomes = trained(tmp_path, *PLAIN, *words, until=FIRST)
    steps, after, anchor, bent = recorded(lab, monkeypatch), None, lab.engine.theta, 0
    for outcome in going_on(lab, outcomes):
        [*_, step], after = steps, lab.engine.theta
        held = outcome.memory.guard.live["held"]
        assert sorted(held) == ["plus#0", "plus#1", "plus#2"]
        uphill = np.stack([-one.vectors[0] for one in held.values()])
        drawn_back = (step.applied - 0.25 * (step.before - anchor)) / 1.25
        d, metrics = after - step.before, outcome.metrics
        # The value of J at the step's beginning is what it is now less what was predicted.
        surplus = np.array([one.value for one in held.values()]) - uphill @ d
        surplus -= np.array([outcome.memory.guard.memory["anchors"][row] for row in held])
        size = np.linalg.norm(uphill, axis=1) * np.linalg.norm(drawn_back)
        epsilon = np.where(surplus >= 0, surplus, np.maximum(0.5 * surplus, -0.5 * size))
        assert metrics["guard/plus/epsilon"] == pytest.approx(epsilon.min(), abs=1e-9)
        basis = np.linalg.qr(np.stack([*uphill, drawn_back]).T)[0]
        A, start = uphill @ basis, drawn_back @ basis
        reference = scipy.optimize.minimize(
            lambda x, at=start: 0.5 * ((x - at) ** 2).sum(), start, jac=lambda x, at=start: x - at,
            constraints=[{"type": "ineq", "fun": lambda x, A=A, e=epsilon: A @ x + e, "jac": lambda x, A=A: A}],
            method="SLSQP", options={"ftol": 1e-16},
        ).x  # fmt: skip
        np.testing.assert_allclose(d, basis @ reference, atol=1e-6 * np.linalg.norm(drawn_back))
        bent += metrics["guard/active"]
    assert bent, "no step had to be corrected, so nothing was tested"


def test_without_constraints_the_proximal_step_is_a_spring_outside_the_optimiser(tmp_path: Path, monkeypatch) -> None:
    """Every loss is within the budget, so κ alone acts."""
    words = ["guard.type=proximal", "guard.kappa=0.25", "guard.epsilon=1000", "guard.memory_per_skill=4"]
    lab, later, seen = second_stage(tmp_path, monkeypatch, *words)
    anchor, places = seen[0].before, [*(step.before for step in seen[1:]), lab.engine.theta]
    for step, after in zip(seen, places, strict=True):
        expected = step.before + (step.applied - 0.25 * (step.before - anchor)) / 1.25
        np.testing.assert_allclose(after, expected, atol=1e-12)
    assert all(outcome.metrics["guard/active"] == 0 for outcome in later)


@pytest.mark.slow
def test_one_constraint_without_a_spring_is_the_skill_safe_update(tmp_path: Path) -> None:
    words = [*PLAIN, "guard.memory_per_skill=8"]
    one, _ = trained(tmp_path, *words, "guard.type=proximal", "guard.kappa=0", "guard.constraints=1")
    other, _ = trained(tmp_path, *words, "guard.type=skill_safe")
    np.testing.assert_array_equal(one.engine.theta, other.engine.theta)


def test_a_plan_says_what_a_guard_costs(tmp_path: Path) -> None:
    from rlvrlab.train.plan import phase_plans

    def passes(*words: str) -> float:
        return phase_plans(runs.recipe(tmp_path, *SEQUENTIAL, *words, text=SKILLS))[-1].memory_passes

    assert passes() == passes("guard.type=l2") == passes("guard.type=average") == 0
    assert passes("guard.type=penalty") == passes("guard.type=gem") == 1
    assert passes("guard.type=penalty", "guard.loss=kl_full") == pytest.approx(4 / 3)
    assert passes("guard.type=skill_safe", "guard.refresh=4") == 0.25


def test_surgery_by_module_projects_in_every_module(tmp_path: Path) -> None:
    """PCGrad of two groups by its formula on each module's slice; the whole gradients are left alone there."""
    lab, _ = trained(tmp_path, "surgery.type=pcgrad", "surgery.scope=module", until=0)
    engine, rng = lab.engine, np.random.default_rng(0)
    one, two = rng.standard_normal((2, engine.theta.size))
    modules = engine.layout.modules
    two[modules["copy"]] -= 3 * one[modules["copy"]]  # in conflict there and only there
    two[modules["symbols"]] += 3 * one[modules["symbols"]]
    assert one @ two > 0 > one[modules["copy"]] @ two[modules["copy"]]
    found = Gradients.of([Backward(one, 0, 1.0, {}), Backward(two, 1, 2.0, {})], np.array([0.25, 0.75]))
    scene = Scene(np.zeros((0, 0)), found.share_S, np.zeros(2), ("a", "b"), ("key",))
    operated = operate(engine, lab.surgery, found, scene, {})
    [vector] = operated.found.vectors
    part = modules["symbols"]
    np.testing.assert_allclose(vector[part], (one[part] + two[part]) / 2, atol=1e-12)
    a, b = one[modules["copy"]], two[modules["copy"]]
    expected = (a - (a @ b) / (b @ b) * b + b - (a @ b) / (a @ a) * a) / 2
    np.testing.assert_allclose(vector[modules["copy"]], expected, atol=1e-12)
    assert operated.weight_S[operated.found.owner_A].tolist() == [1.0]
    assert operated.metrics["surgery/conflict_rate"] == operated.metrics["surgery/conflict_rate/symbols"] == 0
    assert operated.metrics["surgery/conflict_rate/copy"] == 1
