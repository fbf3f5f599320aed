"""The contract every engine keeps, as checks that run on any of them: `rlvr check engine NAME`, and tests/engines.

The checks see only the verbs of base.py. A direction in parameter space is a gradient; the derivative of a loss along
it is measured by `shift`, and must equal the dot product that `gramian` gives.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rlvrlab.batch import Floats, TokenBatch, batch_of
from rlvrlab.engines.base import Engine, Vector
from rlvrlab.objectives.dpo import Dpo
from rlvrlab.objectives.gspo import Gspo
from rlvrlab.objectives.ppo_clip import PpoClip
from rlvrlab.objectives.regularise import Regularised
from rlvrlab.objectives.sft import Sft
from rlvrlab.objectives.value import value_loss
from rlvrlab.randomness import generator
from rlvrlab.types import Objective, Request, Sampling

Make = Callable[[int], Engine]
"""Builds an engine with that many rows per micro-batch (0: all); the same parameters every time."""
EXACT = {"float64": 1e-10, "float32": 1e-5, "bfloat16": 2e-2}
"""How equal two ways to the same vector must be, relative to its norm."""
DERIVATIVE = {"float64": 1e-6, "float32": 2e-2, "bfloat16": 2e-1}
"""How well a finite difference can agree with an exact gradient."""


class Broken(Exception):
    """What an engine does against the contract."""


class Finding(NamedTuple):
    """One check's outcome."""

    name: str
    ok: bool
    detail: str


def run_contract(make: Make) -> list[Finding]:
    """Every check; one that raises has failed, whatever it raises."""
    findings = []
    for name, check in CHECKS.items():
        detail = "ok"
        try:
            check(make)
        except Broken as error:
            detail = str(error)
        except Exception as error:
            detail = f"raised {type(error).__name__}: {error}"
        findings.append(Finding(name, detail == "ok", detail))
    return findings


def sums_to_one(make: Make) -> None:
    """Each token of the vocabulary, scored as a one-token completion, takes its share of exactly 1."""
    engine = _trained(make(0))
    size = engine.tokenizer.vocab_size
    batch = batch_of([_prompt(engine)] * size, [(token,) for token in range(size)])
    _close("Σp", float(np.exp(engine.logprobs(batch)[0]).sum()), 1.0, EXACT[engine.precision] * 10)


def gradient_is_derivative(make: Make) -> None:
    """Finite differences along two directions, for every kind of objective."""
    engine = _trained(make(0))
    for name, objective in OBJECTIVES.items():
        batch = _batch(engine)
        directions = [engine.gradient(batch, objective)[0], engine.gradient(_batch(engine, 1), Sft())[0]]
        gram = engine.gramian(directions)["global"]
        for i in range(2):
            _must(gram[i, i] != 0, f"{name}: a gradient is zero")
            measured = _slope(engine, _loss_of(engine, batch, objective), directions[i], float(gram[i, i]) ** 0.5)
            expected = float(gram[0, i] / gram[i, i] ** 0.5)
            scale = max(abs(expected), float(gram[0, 0]) ** 0.5)
            _close(f"{name} along {i}", measured, expected, DERIVATIVE[engine.precision] * scale)


def anchor_kl_is_exact(make: Make) -> None:
    """Exactly 0 at the anchor; elsewhere the KL that scoring every token of the vocabulary gives, and its slope."""
    engine = _trained(make(0))
    batch, anchor = _batch(engine), engine.snapshot()
    vector, value = engine.anchor_kl(batch, anchor)
    norm = _norm(engine, vector)
    _must(value == norm == 0, f"at the anchor: KL {value:.3g}, gradient of length {norm:.3g}, expected 0 and 0")
    engine.step([engine.gradient(_batch(engine, 1), Sft())[0]], [1.0], 0.05)
    size, tolerance = engine.tokenizer.vocab_size, EXACT[engine.precision] * 100
    every = batch_of([_prompt(engine)] * size, [(token,) for token in range(size)])
    before, after = (engine.logprobs(every, policy)[0][:, 0] for policy in (anchor, "current"))
    listed = float((np.exp(before) * (before - after)).sum())
    _close("KL", engine.anchor_kl(every.rows([0]).rescaled(), anchor)[1], listed, tolerance)
    vector, value = engine.anchor_kl(batch, anchor)
    parts = [engine.anchor_kl(batch.rows(part), anchor) for part in ([0, 1, 2], [3, 4, 5, 6, 7])]
    _close("Σ parts − KL", sum(part[1] for part in parts) - value, 0.0, tolerance)
    _same(engine, vector, engine.combine([part[0] for part in parts], {"global": [1, 1]}), "parts")
    norm = _norm(engine, vector)
    _must(norm != 0, "the gradient is zero away from the anchor")
    measured = _slope(engine, lambda: engine.anchor_kl(batch, anchor)[1], vector, norm)
    _close("slope of the KL", measured, norm, DERIVATIVE[engine.precision] * norm)


def micro_batches_do_not_matter(make: Make) -> None:
    """Rows, pairs and sequences give one gradient, value and metrics at any micro-batch size."""
    whole = _trained(make(0))
    engines = {rows: make(rows) for rows in (1, 2, 3, 5)}
    with tempfile.TemporaryDirectory() as folder:  # Adam would turn a difference in rounding into one of parameters
        whole.save(Path(folder) / "engine")
        for engine in engines.values():
            engine.load(Path(folder) / "engine")
    for name, objective in OBJECTIVES.items():
        batch = _batch(whole)
        vector, value, metrics = whole.gradient(batch, objective)
        for rows, engine in engines.items():
            part, part_value, part_metrics = engine.gradient(batch, objective)
            tolerance = EXACT[whole.precision]
            _same(whole, vector, part, f"{name} at {rows} rows")
            _close(f"{name} value at {rows} rows", part_value, value, tolerance * 10)
            for key in metrics:
                _close(f"{name} {key}", part_metrics[key], metrics[key], tolerance * 100)


def rows_are_alone(make: Make) -> None:
    """A row's scores are those it has alone, without padding; where nothing is seen they are 0."""
    engine = _trained(make(0))
    batch = _batch(engine)
    _train_critic(engine, batch)
    together = [*engine.logprobs(batch), engine.values(batch)]
    for i, length in enumerate(batch.seen_BT.sum(axis=1)):
        lone = batch_of([batch.prompts[i]], [batch.tokens_BT[i, :length].tolist()])
        alone = [*engine.logprobs(lone), engine.values(lone)]
        for name, many, one in zip(("log-prob", "entropy", "value"), together, alone, strict=True):
            _must(not many[i, length:].any(), f"{name} of padding is not 0")
            worst = float(np.abs(many[i, :length] - one[0]).max())
            _close(f"{name} together − alone", worst, 0.0, EXACT[engine.precision] * 10)


def modules_add_up(make: Make) -> None:
    """Gramians by module sum to the global one, which is symmetric."""
    engine = _trained(make(0))
    vectors = [engine.gradient(_batch(engine, i), Sft())[0] for i in range(3)]
    whole, parts = engine.gramian(vectors)["global"], engine.gramian(vectors, "module")
    tolerance = EXACT[engine.precision] * float(np.abs(whole).max())
    _must(float(np.abs(whole - whole.T).max()) <= tolerance, "the Gramian is not symmetric")
    _close("Σ modules − global", float(np.abs(sum(parts.values()) - whole).max()), 0.0, tolerance)


def combine_is_by_module(make: Make) -> None:
    """Σ wᵢvᵢ as a whole; and with a weight in one module only, what the Gramian of that module says."""
    engine = _trained(make(0))
    vectors = [engine.gradient(_batch(engine, i), Sft())[0] for i in range(2)]
    whole, parts = engine.gramian(vectors)["global"], engine.gramian(vectors, "module")
    tolerance = EXACT[engine.precision] * 10 * float(np.abs(whole).max())
    weights = [0.5, -2.0]
    for name, gram in {"global": whole, **parts}.items():
        alone = {module: weights if module == name else [0.0, 0.0] for module in parts}
        combined = engine.combine(vectors, alone if name in parts else {"global": weights})
        found = engine.gramian([combined, *vectors])["global"][0]
        expected = [weights @ gram @ weights, *(weights @ gram)]
        _close(f"combined in {name}", float(np.abs(found - expected).max()), 0.0, tolerance)


def step_returns_displacement(make: Make) -> None:
    """What `step` says it applied is what the parameters did, momentum and all."""
    engine = _trained(make(0))
    for _ in range(3):
        before = engine.snapshot()
        gradient = engine.gradient(_batch(engine), Sft())[0]
        applied = engine.step([gradient], [0.5], 0.01)
        _same(engine, applied, engine.pull(before), "displacement")


def shift_adds(make: Make) -> None:
    """θ += Σ wv, and back."""
    engine = _trained(make(0))
    before = engine.snapshot()
    vectors = [engine.gradient(_batch(engine, i), Sft())[0] for i in range(2)]
    engine.shift(vectors, [0.25, -0.5])
    moved = engine.pull(before)
    gram = engine.gramian([moved, *vectors])["global"]
    expected = 0.25 * gram[1] - 0.5 * gram[2]
    _close("shift", float(np.abs(gram[0] - expected).max()), 0.0, EXACT[engine.precision] * 10 * gram.max())
    engine.shift(vectors, [-0.25, 0.5])
    _close("way back", _norm(engine, engine.pull(before)), 0.0, EXACT[engine.precision])


def shift_leaves_momentum(make: Make) -> None:
    """A shift of nothing between two steps changes nothing: the optimiser does not hear of it."""
    one, other = _trained(make(0)), _trained(make(0))
    batch = _batch(one)
    other.shift([other.gradient(batch, Sft())[0]], [0.0])
    for engine in (one, other):
        engine.step([engine.gradient(batch, Sft())[0]], [1.0], 0.05)
    _must(np.array_equal(one.logprobs(batch)[0], other.logprobs(batch)[0]), "the optimiser noticed a shift")


def fresh_optimizer_forgets(make: Make) -> None:
    """After `fresh_optimizer` equal gradients give equal steps; without it momentum makes them differ."""
    engine = _trained(make(0))
    gradient = engine.gradient(_batch(engine), Sft())[0]
    steps = []
    for _ in range(2):
        engine.fresh_optimizer()
        steps.append(engine.step([gradient], [1.0], 0.01))
    _same(engine, steps[0], steps[1], "first steps")
    later = engine.step([engine.gradient(_batch(engine, 1), Sft())[0]], [1.0], 0.01)
    engine.fresh_optimizer()
    first = engine.step([engine.gradient(_batch(engine, 1), Sft())[0]], [1.0], 0.01)
    _must(_distance(engine, later, first) > _tolerance(engine, later), "the optimiser has no memory to forget")


def fisher_is_per_row(make: Make) -> None:
    """The mean over rows of each row's squared gradient, and EWC's pull is its product with the distance."""
    engine = _trained(make(0))
    batch = _batch(engine)
    anchor = engine.snapshot()
    halves = [engine.fisher(batch.rows(part)) for part in ([0, 1, 2], [3, 4, 5, 6, 7])]
    engine.step([engine.gradient(batch, Sft())[0]], [1.0], 0.01)
    # The Fisher at the anchor, although the engine has moved on: step back, measure, step forward.
    away = engine.pull(anchor)
    engine.shift([away], [-1.0])
    fisher = engine.fisher(batch)
    engine.shift([away], [1.0])
    whole = engine.pull(anchor, fisher)
    parts = [engine.pull(anchor, half) for half in halves]
    gram = engine.gramian([whole, *parts])["global"]
    expected = (3 * gram[1] + 5 * gram[2]) / 8
    _close("fisher", float(np.abs(gram[0] - expected).max()), 0.0, EXACT[engine.precision] * 100 * gram.max())


def critic_learns(make: Make) -> None:
    """Fitting values to returns lowers the loss and leaves the policy alone."""
    engine = _trained(make(0))
    before = engine.snapshot()
    losses = [_train_critic(engine, _batch(engine)) for _ in range(30)]
    learnt = losses[-1] < 0.5 * losses[0]
    _must(learnt, f"value loss went from {losses[0]:.3g} to {losses[-1]:.3g} in 30 steps")
    _close("movement of the policy", _norm(engine, engine.pull(before)), 0.0, 0.0)


def reference_stays(make: Make) -> None:
    """The frozen reference and a snapshot keep their log-probs while the policy moves."""
    engine = _trained(make(0))
    batch = _batch(engine)
    engine.freeze_reference()
    frozen, snapshot = engine.logprobs(batch)[0], engine.snapshot()
    engine.step([engine.gradient(batch, Sft())[0]], [1.0], 0.1)
    for name, policy in (("reference", "reference"), ("snapshot", snapshot)):
        _must(np.array_equal(engine.logprobs(batch, policy)[0], frozen), f"the {name}'s log-probs changed")
    _must(not np.array_equal(engine.logprobs(batch)[0], frozen), "the policy did not move")


def save_and_load(make: Make) -> None:
    """A loaded engine goes on exactly as the saved one: parameters, momentum, critic, reference, version."""
    engine, other = _trained(make(0)), make(0)
    engine.freeze_reference()
    engine.step([engine.gradient(_batch(engine, 1), Sft())[0]], [1.0], 0.05)
    _train_critic(engine, _batch(engine))
    engine.publish()
    with tempfile.TemporaryDirectory() as folder:
        engine.save(Path(folder) / "engine")
        other.load(Path(folder) / "engine")
    for one in (engine, other):
        one.step([one.gradient(_batch(one), Sft())[0]], [1.0], 0.01)
        _train_critic(one, _batch(one))
        one.publish()
    batch = _batch(engine)
    pairs = {
        "log-probs": (engine.logprobs(batch)[0], other.logprobs(batch)[0]),
        "reference": (engine.logprobs(batch, "reference")[0], other.logprobs(batch, "reference")[0]),
        "values": (engine.values(batch), other.values(batch)),
        "version": (np.array(engine.publish()), np.array(other.publish())),
    }
    for name, (saved, loaded) in pairs.items():
        _must(np.array_equal(saved, loaded), f"{name} differ after load")


def vectors_survive(make: Make) -> None:
    """Saved vectors come back by name, to the last bit."""
    engine = _trained(make(0))
    vectors = {"anchor": engine.snapshot(), "slope": engine.gradient(_batch(engine), Sft())[0]}
    with tempfile.TemporaryDirectory() as folder:
        engine.save_vectors(Path(folder) / "vectors", vectors)
        stored = engine.load_vectors(Path(folder) / "vectors")
    _must(stored.keys() == vectors.keys(), f"{sorted(stored)} came back, expected {sorted(vectors)}")
    gaps = [_norm(engine, engine.combine([stored[n], vectors[n]], {"global": [1.0, -1.0]})) for n in vectors]
    _must(not any(gaps), "a vector has changed")


def sampling_is_keyed(make: Make) -> None:
    """Equal keys give equal answers whatever shares the batch; the sampler's log-probs are the trainer's."""
    engine = _trained(make(0))
    settings = Sampling(max_tokens=6)
    requests = [Request(_prompt(engine, i), 3, ("contract", i), settings) for i in range(3)]
    together = engine.sample(requests)
    _must(engine.sample(requests) == together, "the same requests gave other answers")
    alone = [engine.sample([request])[0] for request in requests]
    same = [[c.tokens for c in g] for g in alone] == [[c.tokens for c in g] for g in together]
    _must(same, "answers depend on what else is in the batch")
    rows = [(request.tokens, c) for request, group in zip(requests, together, strict=True) for c in group]
    batch = batch_of([prompt for prompt, _ in rows], [c.tokens for _, c in rows])
    scored = engine.logprobs(batch)[0]
    worst = max(float(np.abs(scored[i, : len(c.tokens)] - np.array(c.logprobs)).max()) for i, (_, c) in enumerate(rows))
    _close("sampler − trainer log-prob", worst, 0.0, EXACT[engine.precision] * 100)


def greedy_is_argmax(make: Make) -> None:
    """Temperature 0 picks the likeliest token."""
    engine = _trained(make(0))
    first = engine.sample([Request(_prompt(engine), 1, ("greedy",), Sampling(1, 0.0))])[0][0].tokens[0]
    size = engine.tokenizer.vocab_size
    logp = engine.logprobs(batch_of([_prompt(engine)] * size, [(t,) for t in range(size)]))[0][:, 0]
    _must(logp[first] >= logp.max() - EXACT[engine.precision], "greedy is not the likeliest token")


CHECKS: dict[str, Callable[[Make], None]] = {
    check.__name__: check
    for check in (
        sums_to_one,
        gradient_is_derivative,
        anchor_kl_is_exact,
        micro_batches_do_not_matter,
        rows_are_alone,
        modules_add_up,
        combine_is_by_module,
        step_returns_displacement,
        shift_adds,
        shift_leaves_momentum,
        fresh_optimizer_forgets,
        fisher_is_per_row,
        critic_learns,
        reference_stays,
        save_and_load,
        vectors_survive,
        sampling_is_keyed,
        greedy_is_argmax,
    )
}
OBJECTIVES: dict[str, Objective] = {
    "sft": Sft(),
    "ppo_clip": PpoClip(),
    "gspo": Gspo(clip_low=0.2, clip_high=0.2),
    "dpo": Dpo(),
    "entropy and KL": Regularised(PpoClip(), kl_coef=0.1, entropy_coef=0.05),
}
"""One of each coupling, and one with every regulariser."""


def _prompt(engine: Engine, i: int = 0) -> tuple[int, ...]:
    return engine.tokenizer.encode(f"{3 + i} {7 + i} = {21 + i}\n")


def _batch(engine: Engine, key: int = 0) -> TokenBatch:
    """Eight rows in four pairs, of unequal lengths, with every array an objective can ask for."""
    rng = generator("contract", key)
    answers = [engine.tokenizer.encode(text) for text in ("3*7", "7+3", "21", "3-7*2", "5", "7*3", "3+7+1", "9")]
    answers = [(*answer, engine.tokenizer.end) for answer in answers]
    prompts = [_prompt(engine, i // 2 + key) for i in range(8)]
    batch = batch_of(prompts, answers, pair_B=np.arange(8) // 2, chosen_B=np.arange(8) % 2 == 0)
    logp_BT = engine.logprobs(batch)[0]

    def noise(size: float) -> Floats:
        return np.where(batch.seen_BT, rng.normal(0, size, logp_BT.shape), 0.0)

    return replace(
        batch,
        old_BT=logp_BT + noise(0.03),
        reference_BT=logp_BT + noise(0.3),
        advantage_BT=np.where(batch.seen_BT, rng.normal(0, 1, (8, 1)), 0.0),
        group_B=np.arange(8) // 2,
    )


def _trained(engine: Engine) -> Engine:
    """A few steps away from any symmetric start."""
    for i in range(3):
        engine.step([engine.gradient(_batch(engine, i), Sft())[0]], [1.0], 0.05)
    engine.publish()
    return engine


def _train_critic(engine: Engine, batch: TokenBatch) -> float:
    """One step towards 1 everywhere; returns the loss before it."""
    batch = replace(batch, value_BT=engine.values(batch), return_BT=np.where(batch.loss_BT, 1.0, 0.0))
    return engine.fit_values(batch, lambda value_BT, part: value_loss(value_BT, part, clip=None)[:2], 0.05)


def _loss_of(engine: Engine, batch: TokenBatch, objective: Objective) -> Callable[[], float]:
    return lambda: objective(*engine.logprobs(batch), batch).value


def _slope(engine: Engine, measure: Callable[[], float], direction: Vector, norm: float) -> float:
    """Central difference of fourth order along a unit direction: a curved loss needs no smaller step than rounding."""
    size = {"float64": 1e-4, "float32": 3e-3}.get(engine.precision, 5e-2)
    values, here = {}, 0
    for there in (2, 1, -1, -2):
        engine.shift([direction], [(there - here) * size / norm])
        values[there], here = measure(), there
    engine.shift([direction], [2 * size / norm])
    return (8 * (values[1] - values[-1]) - (values[2] - values[-2])) / (12 * size)


def _same(engine: Engine, a: Vector, b: Vector, what: str) -> None:
    """Two vectors must be equal to the engine's precision."""
    _close(f"distance of {what}", _distance(engine, a, b), 0.0, _tolerance(engine, a))


def _tolerance(engine: Engine, vector: Vector) -> float:
    return EXACT[engine.precision] * max(1.0, _norm(engine, vector))


def _distance(engine: Engine, a: Vector, b: Vector) -> float:
    """The smaller of two: how far shifting by a − b leads, blurred by the size of the parameters, and what their
    Gramian says, blurred by that of the vectors."""
    before = engine.snapshot()
    engine.shift([a, b], [1.0, -1.0])
    moved = _norm(engine, engine.pull(before))
    engine.shift([a, b], [-1.0, 1.0])
    gram = engine.gramian([a, b])["global"]
    return min(moved, max(0.0, float(gram[0, 0] - 2 * gram[0, 1] + gram[1, 1])) ** 0.5)


def _norm(engine: Engine, vector: Vector) -> float:
    return float(engine.gramian([vector])["global"][0, 0]) ** 0.5


def _close(what: str, value: float, expected: float, tolerance: float) -> None:
    within = abs(value - expected) <= tolerance
    _must(within, f"{what}: {value:.12g}, expected {expected:.12g} ± {tolerance:.1g}")


def _must(kept: bool, problem: str) -> None:
    if not kept:
        raise Broken(problem)
