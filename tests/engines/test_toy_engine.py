"""The toy engine against explicit arithmetic: dot products, finite differences, optimisers written anew."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import ClassVar

import numpy as np
import pytest
from engine_factories import toy

from rlvrlab.batch import batch_of
from rlvrlab.engines.toy.engine import FlatOptimizer, Toy, ToyEngine
from rlvrlab.engines.toy.features import view_prompts
from rlvrlab.engines.toy.policy import Inputs, backward, entropy, log_softmax
from rlvrlab.errors import CheckpointError
from rlvrlab.objectives.sft import Sft
from rlvrlab.recipe.schema import Optimizer
from rlvrlab.types import Loss

PROMPTS = ["3 7 = 21\n", "4 4 = 8\n", "12 5\n"]
ANSWERS = ["3*7", "4+4", "5"]


def engine_at_random(seed: int = 0) -> ToyEngine:
    engine = toy()(0)
    engine.theta = np.random.default_rng(seed).normal(0, 0.3, engine.layout.size)
    return engine


def small_batch(engine: ToyEngine):
    encode = engine.tokenizer.encode
    return batch_of([encode(p) for p in PROMPTS], [(*encode(a), engine.tokenizer.end) for a in ANSWERS])


def test_gramian_is_every_dot_product() -> None:
    engine, rng = engine_at_random(), np.random.default_rng(1)
    vectors = [rng.normal(size=engine.layout.size) for _ in range(3)]
    cut = engine.layout.modules["copy"].start
    found = engine.gramian(vectors, "module") | engine.gramian(vectors)
    for i, j in combinations_with_replacement(range(3), 2):
        exact = [sum(map(float, x)) for x in (vectors[i] * vectors[j], vectors[i][:cut] * vectors[j][:cut])]
        assert found["global"][i, j] == pytest.approx(exact[0], rel=1e-9)
        assert found["symbols"][i, j] == pytest.approx(exact[1], rel=1e-9)
        assert found["copy"][i, j] == pytest.approx(exact[0] - exact[1], abs=1e-7)


def test_float32_dot_products_are_taken_in_double() -> None:
    engine = toy("float32")(0)
    one = np.full(engine.layout.size, 1e-3, dtype=np.float32)
    one[0] = 1e4
    exact = float(np.sum(one.astype(np.float64) ** 2))
    assert float(engine.gramian([one])["global"][0, 0]) == pytest.approx(exact, rel=1e-12)


def test_fisher_is_the_mean_of_squared_row_gradients() -> None:
    engine = engine_at_random()
    batch = small_batch(engine)
    rows = [batch.rows([i]).rescaled() for i in range(3)]
    gradients = [engine.gradient(row, Sft())[0] * row.scale.tokens for row in rows]
    assert np.allclose(engine.fisher(batch), sum(g**2 for g in gradients) / 3, rtol=1e-12, atol=1e-15)


def test_pull_is_the_gradient_of_the_penalty() -> None:
    engine, rng = engine_at_random(), np.random.default_rng(2)
    anchor, diagonal = rng.normal(size=engine.layout.size), rng.random(engine.layout.size)
    assert np.array_equal(engine.pull(anchor), engine.theta - anchor)
    assert np.array_equal(engine.pull(anchor, diagonal), diagonal * (engine.theta - anchor))


def _single_context(engine: ToyEngine) -> Inputs:
    view = view_prompts([engine.tokenizer.encode("4 4 = 8\n")], engine.tokenizer, 3, engine.config.scale)
    return Inputs.of(view.dense_ND, view.slots_NM, np.array([0]), view.shape_N, engine.layout)


@pytest.mark.parametrize("what", ["log p", "entropy"])
def test_backward_against_finite_differences_of_single_weights(what: str) -> None:
    """Also where two slots hold the same number, whose weights add up."""
    engine = engine_at_random()
    inputs, layout, token = _single_context(engine), engine.layout, engine.tokenizer.encode("4")[0]

    def value(theta) -> float:
        logp = log_softmax(theta, layout, inputs)
        return float(logp[0, token] if what == "log p" else entropy(logp)[0])

    weights = (np.array([1.0]), None) if what == "log p" else (np.array([0.0]), np.array([1.0]))
    found = backward(layout, inputs, log_softmax(engine.theta, layout, inputs), np.array([token]), *weights)
    busy = np.flatnonzero(found)[:: max(1, np.count_nonzero(found) // 60)]
    assert len(busy) > 50
    for i in busy:
        nudge = np.zeros(layout.size)
        nudge[i] = 1e-5
        slope = (value(engine.theta + nudge) - value(engine.theta - nudge)) / 2e-5
        assert found[i] == pytest.approx(slope, rel=1e-4, abs=1e-8)


def test_entropy_of_a_fresh_policy_is_that_of_the_uniform_one() -> None:
    engine = toy()(0)
    logp_BT, entropy_BT = engine.logprobs(small_batch(engine))
    assert np.allclose(entropy_BT[small_batch(engine).seen_BT], np.log(engine.tokenizer.vocab_size))
    assert np.allclose(logp_BT[small_batch(engine).seen_BT], -np.log(engine.tokenizer.vocab_size))


@dataclass(frozen=True)
class LogOfMean:
    """Couples all rows: log of the mean probability of the answers."""

    couples: ClassVar[str] = "batch"

    def __call__(self, logp_BT, entropy_BT, batch):
        p_B = np.exp(logp_BT.sum(axis=1))
        return Loss(float(np.log(p_B.mean())), np.where(batch.seen_BT, (p_B / p_B.sum())[:, None], 0.0))

    def metrics(self, logp_BT, entropy_BT, batch):
        return {"rows": float(len(logp_BT))}


@pytest.mark.parametrize("rows", [1, 2])
def test_a_batch_coupled_objective_sees_all_rows_at_any_micro_batch(rows: int) -> None:
    whole, parts = toy()(0), toy()(rows)
    parts.theta = whole.theta = engine_at_random().theta
    batch = small_batch(whole)
    one, other = whole.gradient(batch, LogOfMean()), parts.gradient(batch, LogOfMean())
    assert np.allclose(one[0], other[0], rtol=1e-12, atol=1e-15) and np.abs(one[0]).max() > 0
    assert one[1:] == other[1:]


def reference_steps(settings: Optimizer, theta, gradients, rate: float) -> list[float]:
    """AdamW (arXiv 1711.05101, algorithm 2) and heavy-ball SGD for one number, written from the papers."""
    m = v = 0.0
    path = []
    for t, g in enumerate(gradients, 1):
        if settings.type == "sgd":
            m = settings.beta1 * m + g
            move = m
        else:
            m = m * settings.beta1 + (1 - settings.beta1) * g
            v = v * settings.beta2 + (1 - settings.beta2) * g * g
            move = (m / (1 - settings.beta1**t)) / ((v / (1 - settings.beta2**t)) ** 0.5 + settings.epsilon)
        theta = theta - rate * move - rate * settings.weight_decay * theta
        path.append(theta)
    return path


def walk(settings: Optimizer, start: list[float], gradients, rate: float):
    optimizer, theta = FlatOptimizer(settings, len(start), "float64"), np.array(start)
    path = []
    for gradient in gradients:
        theta = theta + optimizer.displacement(theta, gradient, rate)
        path.append(theta)
    return np.array(path)


@pytest.mark.parametrize("kind", ["adam", "sgd"])
@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_optimisers_against_the_papers(kind: str, decay: float) -> None:
    settings = Optimizer(type=kind, weight_decay=decay, beta2=0.95)
    gradients = np.random.default_rng(3).normal(size=(12, 2))
    found = walk(settings, [0.5, -2.0], gradients, 0.03)
    for i, start in enumerate((0.5, -2.0)):
        assert np.allclose(found[:, i], reference_steps(settings, start, gradients[:, i], 0.03), rtol=1e-13)


@pytest.mark.parametrize("kind", ["adam", "sgd"])
def test_optimisers_against_torch(kind: str) -> None:
    torch = pytest.importorskip("torch")
    settings = Optimizer(type=kind, weight_decay=0.1 if kind == "adam" else 0.0)
    gradients = np.random.default_rng(4).normal(size=(8, 3))
    weight = torch.nn.Parameter(torch.tensor([0.5, -2.0, 0.0], dtype=torch.float64))
    theirs = (
        torch.optim.AdamW([weight], 0.03, (0.9, 0.99), 1e-8, 0.1)
        if kind == "adam"
        else torch.optim.SGD([weight], 0.03, 0.9)
    )
    for gradient, mine in zip(gradients, walk(settings, [0.5, -2.0, 0.0], gradients, 0.03), strict=True):
        weight.grad = torch.tensor(gradient)
        theirs.step()
        assert np.allclose(mine, weight.detach().numpy(), rtol=1e-12)


def test_saved_files_hold_no_pickle_and_other_sizes_are_refused(tmp_path) -> None:
    engine = engine_at_random()
    engine.save(tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["toy.json", "toy.npz"]
    with np.load(tmp_path / "toy.npz", allow_pickle=False) as arrays:
        assert all(arrays[name].dtype != object for name in arrays.files)
    assert json.loads((tmp_path / "toy.json").read_text())["size"] == engine.layout.size
    with pytest.raises(CheckpointError, match="parameters"):
        Toy(buckets=9, max_number=40).build(Optimizer()).load(tmp_path)
