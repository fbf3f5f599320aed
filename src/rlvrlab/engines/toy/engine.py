"""The toy engine's verbs over the log-linear policy of policy.py."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from rlvrlab import plain_files
from rlvrlab.batch import Floats, Ints, TokenBatch, add_metrics, micro_batches
from rlvrlab.engines.base import EngineTable, Policy, Scope, ValueObjective
from rlvrlab.engines.toy.features import ToyTokenizer, contexts_of, view_prompts
from rlvrlab.engines.toy.policy import Inputs, Layout, Published, backward, entropy, from_logits, log_softmax, sample
from rlvrlab.errors import CheckpointError
from rlvrlab.plain_files import count, parsed
from rlvrlab.recipe.presets import PRESETS, Preset
from rlvrlab.recipe.schema import Optimizer
from rlvrlab.registry import register
from rlvrlab.types import Completion, Count, CountOrZero, Loss, Objective, Positive, Request

FEW = 10
"""Of fewer held-out prompts none may have a known wording by chance."""
NUMBER = re.compile(r"[0-9]+")


@register("engine", "toy")
@dataclass(frozen=True)
class Toy(EngineTable):
    """A log-linear policy in plain NumPy with exact gradients."""

    slots: Count = 3
    """Numbers of the prompt the policy looks at (two numbers and a target)."""
    max_number: Count = 999
    """Largest number with a token of its own."""
    scale: Positive = 100.0
    """Numbers are divided by this before they become features."""
    buckets: Count = 128
    """Hashed weight blocks for shapes of the text."""
    precision: Literal["float64", "float32"] = "float64"
    """Arithmetic of the parameters."""
    micro_batch: CountOrZero = 0
    """Rows per gradient pass; 0 takes all at once. Never changes a result."""

    def preset(self) -> Preset:
        """Rates of a log-linear policy, a thousand times those of a language model."""
        return PRESETS["toy"]

    def cannot_learn(self, train: Sequence[str], dev: Sequence[str]) -> str:
        """It reads numbers; of words it knows only whole wordings that it was trained on."""
        known = {NUMBER.sub("#", prompt) for prompt in train}
        if len(dev) < FEW or any(NUMBER.sub("#", prompt) in known for prompt in dev):
            return ""
        what = f"not one of {len(dev)} held-out prompts has the wording of a training prompt"
        remedy = "take a language model: engine.type=hf engine.model=nano"
        return f"engine toy: reads numbers in known wordings only, and {what}; {remedy}"

    def build(self, optimizer: Optimizer) -> ToyEngine:
        """A policy that knows nothing yet: uniform over its vocabulary."""
        return ToyEngine(self, optimizer)


class FlatOptimizer:
    """AdamW and SGD with momentum on one flat vector; state that can be saved to the last bit."""

    def __init__(self, settings: Optimizer, size: int, dtype: str) -> None:
        self.settings = settings
        self.count = 0
        self.first = np.zeros(size, dtype=dtype)
        self.second = np.zeros(size if settings.type == "adam" else 0, dtype=dtype)

    def displacement(self, theta: Floats, gradient: Floats, learning_rate: float) -> Floats:
        """What to add to the parameters; updates the moments."""
        s = self.settings
        self.count += 1
        if s.type == "sgd":
            self.first = s.beta1 * self.first + gradient
            direction = self.first
        else:
            self.first = s.beta1 * self.first + (1 - s.beta1) * gradient
            self.second = s.beta2 * self.second + (1 - s.beta2) * gradient**2
            mean = self.first / (1 - s.beta1**self.count)
            direction = mean / (np.sqrt(self.second / (1 - s.beta2**self.count)) + s.epsilon)
        return np.asarray(-learning_rate * (direction + s.weight_decay * theta))

    def state(self) -> dict[str, Floats]:
        """Arrays to save."""
        return {"count": np.array(self.count), "first": self.first, "second": self.second}

    def restore(self, state: dict[str, Floats]) -> None:
        """Continue from saved arrays."""
        self.count = int(state["count"])
        self.first, self.second = state["first"], state["second"]


class Forward(NamedTuple):
    """A scored batch, with what its backward pass needs."""

    inputs: Inputs
    where: tuple[Ints, Ints]
    token_N: Ints
    logp_NV: Floats
    logp_BT: Floats
    entropy_BT: Floats


class ToyEngine:
    """All of engines/base.py on NumPy; vectors are flat arrays."""

    name = "toy"

    def __init__(self, config: Toy, optimizer: Optimizer) -> None:
        self.config, self.precision = config, config.precision
        self.tokenizer = ToyTokenizer(config.max_number)
        self.layout = Layout(self.tokenizer.characters, self.tokenizer.vocab_size, config.slots, config.buckets)
        self.theta: Floats = np.zeros(self.layout.size, dtype=config.precision)
        self.reference = self.theta
        self.critic: Floats = np.zeros(self.layout.blocks, dtype=config.precision)
        self.optimizer_settings = optimizer
        self.version = 0
        self.fresh_optimizer()

    def fresh_optimizer(self) -> None:
        """Zero moments for policy and critic."""
        self._optimizer = FlatOptimizer(self.optimizer_settings, self.theta.size, self.precision)
        self._critic_optimizer = FlatOptimizer(self.optimizer_settings, self.critic.size, self.precision)

    def sample(self, requests: Sequence[Request]) -> list[list[Completion]]:
        """Keyed sampling, all requests abreast."""
        published = Published(self.theta, self.layout, self.tokenizer, self.config.scale, self.version)
        return sample(published, requests)

    def logprobs(self, batch: TokenBatch, policy: Policy = "current") -> tuple[Floats, Floats]:
        """Exact scores of every seen token."""
        named = {"current": self.theta, "reference": self.reference}
        forward = self._forward(batch, named[policy] if isinstance(policy, str) else policy)
        return forward.logp_BT, forward.entropy_BT

    def gradient(self, batch: TokenBatch, objective: Objective) -> tuple[Floats, float, dict[str, float]]:
        """One forward per micro-batch; a batch-coupled objective is asked once, before them."""
        total, value = np.zeros_like(self.theta), 0.0
        metrics: dict[str, float] = {}
        whole = None
        if objective.couples == "batch":
            scores = self.logprobs(batch)
            whole, metrics = objective(*scores, batch), objective.metrics(*scores, batch)
            value = whole.value
        for index in micro_batches(batch, "row" if whole else objective.couples, self.config.micro_batch):
            part = batch.rows(index)
            forward = self._forward(part, self.theta)
            if whole:
                loss = whole.rows(index)
            else:
                loss = objective(forward.logp_BT, forward.entropy_BT, part)
                value += loss.value
                add_metrics(metrics, objective.metrics(forward.logp_BT, forward.entropy_BT, part))
            total += self._backward(forward, loss)
        return total, value, metrics

    def anchor_kl(self, batch: TokenBatch, anchor: Floats) -> tuple[Floats, float]:
        """dKL/dz = p − p*, exactly 0 where the policies are the same."""
        total, value = np.zeros_like(self.theta), 0.0
        for index in micro_batches(batch, "row", self.config.micro_batch):
            inputs, where, _ = self._inputs(batch.rows(index))
            weight_N1 = (batch.loss_BT[index][where] / max(1, batch.scale.tokens)).astype(self.precision)[:, None]
            logp_NV, anchor_NV = (log_softmax(theta, self.layout, inputs) for theta in (self.theta, anchor))
            value += float((weight_N1 * np.exp(anchor_NV) * (anchor_NV - logp_NV)).sum())
            total += from_logits(self.layout, inputs, weight_N1 * (np.exp(logp_NV) - np.exp(anchor_NV)))
        return total, value

    def values(self, batch: TokenBatch) -> Floats:
        """A linear critic on the policy's features."""
        inputs, where, _ = self._inputs(batch)
        out = np.zeros(batch.tokens_BT.shape)
        out[where] = sum((inputs.dense_ND * self.critic[bucket_N]).sum(axis=1) for bucket_N in inputs.active)
        return out

    def fit_values(self, batch: TokenBatch, objective: ValueObjective, learning_rate: float) -> float:
        """One optimiser step on the critic's loss."""
        inputs, where, _ = self._inputs(batch)
        loss, c_BT = objective(self.values(batch), batch)
        gradient = np.zeros_like(self.critic)
        for bucket_N in inputs.active:
            np.add.at(gradient, bucket_N, c_BT[where][:, None] * inputs.dense_ND)
        flat = self.critic.ravel()
        move = self._critic_optimizer.displacement(flat, gradient.ravel(), learning_rate)
        self.critic = (flat + move).reshape(self.layout.blocks)
        return loss

    def snapshot(self) -> Floats:
        """A copy of the parameters."""
        return self.theta.copy()

    def freeze_reference(self) -> None:
        """Parameters are never changed in place, so keeping the array is enough."""
        self.reference = self.theta

    def fisher(self, batch: TokenBatch) -> Floats:
        """Row by row: squaring the batch mean would be another quantity."""
        total = np.zeros_like(self.theta)
        for i in range(len(batch)):
            row = batch.rows([i])
            total += self._backward(self._forward(row, self.theta), Loss(0.0, row.loss_BT.astype(float))) ** 2
        return np.asarray(total / max(1, len(batch)))

    def pull(self, snapshot: Floats, diagonal: Floats | None = None) -> Floats:
        """θ − θ*, weighted."""
        difference = self.theta - snapshot
        return difference if diagonal is None else diagonal * difference

    def gramian(self, vectors: Sequence[Floats], scope: Scope = "global") -> dict[str, Floats]:
        """Plain dot products, in double precision."""
        parts = {"global": slice(None)} if scope == "global" else self.layout.modules
        stacked = np.stack(vectors).astype(np.float64)
        # einsum, because BLAS sums in an order that depends on the number of threads.
        return {name: np.einsum("sp,tp->st", stacked[:, part], stacked[:, part]) for name, part in parts.items()}

    def combine(self, vectors: Sequence[Floats], weights: Mapping[str, Sequence[float]]) -> Floats:
        """A weighted sum, module by module where the weights are."""
        parts = {"global": slice(None), **self.layout.modules}
        total = np.zeros_like(vectors[0])
        for name, weight_S in weights.items():
            total[parts[name]] = _combine([vector[parts[name]] for vector in vectors], weight_S)
        return total

    def step(self, vectors: Sequence[Floats], weights: Sequence[float], learning_rate: float) -> Floats:
        """Descend along the weighted sum."""
        before = self.theta
        move = self._optimizer.displacement(before, _combine(vectors, weights), learning_rate)
        self.theta = before + move
        return np.asarray(self.theta - before)

    def shift(self, vectors: Sequence[Floats], weights: Sequence[float]) -> None:
        """Move without telling the optimiser."""
        self.theta = self.theta + _combine(vectors, weights)

    def publish(self) -> int:
        """Sampler and trainer share the parameters: only the version moves."""
        self.version += 1
        return self.version

    def release(self, vectors: Sequence[Floats]) -> None:
        """Python's garbage collector does it."""

    def save(self, folder: Path) -> None:
        """One npz without pickle, one JSON."""
        folder.mkdir(parents=True, exist_ok=True)
        arrays = {"theta": self.theta, "reference": self.reference, "critic": self.critic}
        arrays |= {f"optimizer.{k}": v for k, v in self._optimizer.state().items()}
        arrays |= {f"critic_optimizer.{k}": v for k, v in self._critic_optimizer.state().items()}
        np.savez(folder / "toy.npz", allow_pickle=False, **arrays)
        (folder / "toy.json").write_text(json.dumps({"version": self.version, "size": self.layout.size}))

    def load(self, folder: Path) -> None:
        """Refuses weights of another size."""
        from rlvrlab.engines.toy.arrays import read_arrays

        size, version = _facts(folder / "toy.json")
        if size != self.layout.size:
            raise CheckpointError(f"{folder}: {size} parameters, this recipe's engine has {self.layout.size}")
        shapes: dict[str, list[tuple[int, ...]]] = {name: [self.theta.shape] for name in ("theta", "reference")}
        shapes["critic"] = [self.critic.shape]
        for prefix, one in (("optimizer.", self.theta), ("critic_optimizer.", self.critic)):
            shapes |= {f"{prefix}first": [(one.size,)], f"{prefix}second": [(one.size,), (0,)], f"{prefix}count": [()]}
        stored = read_arrays(folder / "toy.npz", shapes)
        self.theta, self.reference, self.critic = stored["theta"], stored["reference"], stored["critic"]
        self._optimizer.restore(_under("optimizer.", stored))
        self._critic_optimizer.restore(_under("critic_optimizer.", stored))
        self.version = version

    def save_vectors(self, folder: Path, vectors: Mapping[str, Floats]) -> None:
        """One npz without pickle."""
        folder.mkdir(parents=True, exist_ok=True)
        np.savez(folder / "vectors.npz", allow_pickle=False, **vectors)

    def load_vectors(self, folder: Path) -> dict[str, Floats]:
        """Back from it."""
        from rlvrlab.engines.toy.arrays import read_vectors

        return read_vectors(folder / "vectors.npz", self.layout.size)

    def _forward(self, batch: TokenBatch, theta: Floats) -> Forward:
        inputs, where, token_N = self._inputs(batch)
        logp_NV = log_softmax(theta, self.layout, inputs)
        logp_BT, entropy_BT = np.zeros(batch.tokens_BT.shape), np.zeros(batch.tokens_BT.shape)
        logp_BT[where] = logp_NV[np.arange(len(token_N)), token_N]
        entropy_BT[where] = entropy(logp_NV)
        return Forward(inputs, where, token_N, logp_NV, logp_BT, entropy_BT)

    def _backward(self, forward: Forward, loss: Loss) -> Floats:
        c_logp_N = loss.c_logp_BT[forward.where].astype(self.precision)
        c_entropy_N = None if loss.c_entropy_BT is None else loss.c_entropy_BT[forward.where].astype(self.precision)
        return backward(self.layout, forward.inputs, forward.logp_NV, forward.token_N, c_logp_N, c_entropy_N)

    def _inputs(self, batch: TokenBatch) -> tuple[Inputs, tuple[Ints, Ints], Ints]:
        """A batch's seen positions as policy inputs, their (rows, columns), and the tokens chosen there."""
        view = view_prompts(batch.prompts, self.tokenizer, self.config.slots, self.config.scale)
        c = contexts_of(batch, view)
        inputs = Inputs.of(c.dense_ND, c.slots_NM, c.position_N, c.shape_N, self.layout)
        return inputs, (c.row_N, c.column_N), c.token_N


def _facts(path: Path) -> tuple[int, int]:
    """Size and version in toy.json."""
    try:
        facts = parsed(plain_files.read_text(path))
        size, version = count(facts["size"]), count(facts["version"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{path}: cannot be read ({error}); restore it") from None
    if size is None or version is None:
        raise CheckpointError(f"{path}: size and version are not whole numbers; restore it")
    return size, version


def _combine(vectors: Sequence[Floats], weights: Sequence[float]) -> Floats:
    total = np.zeros_like(vectors[0])
    for vector, weight in zip(vectors, weights, strict=True):
        total += vector.dtype.type(weight) * vector
    return total


def _under(prefix: str, arrays: dict[str, Floats]) -> dict[str, Floats]:
    return {name.removeprefix(prefix): value for name, value in arrays.items() if name.startswith(prefix)}
