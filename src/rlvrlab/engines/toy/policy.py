"""The toy policy: log-linear in its weights, so gradients are exact and short; and how answers are drawn from it.

    z_v = W[symbol v]·φ + Σ_{slots m holding v} W[copy m]·φ        p = softmax(z)
    ∂ log p_a / ∂ z = onehot(a) − p        ∂ H / ∂ z_v = −p_v (log p_v + H)
φ is a context's dense features, once per active bucket. Numbers of several digits share one symbol column: such a
number is told apart only by being copied from the prompt. Suffixes: N contexts, V tokens, A weight columns, D features.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rlvrlab.batch import Floats, Ints
from rlvrlab.engines.toy.features import POSITIONS, PromptView, ToyTokenizer, advance, buckets, dense_size, view_prompts
from rlvrlab.randomness import generator
from rlvrlab.types import Completion, Finish, Request, Sampling


@dataclass(frozen=True)
class Layout:
    """Where the weights of a flat parameter vector lie."""

    characters: int
    """Symbol columns of their own."""
    vocab_size: int
    slots: int
    shapes: int
    """Hashed buckets for shapes, beside POSITIONS buckets for positions."""

    @property
    def blocks(self) -> tuple[int, int]:
        """Buckets and dense features: the two leading axes of every weight array."""
        return POSITIONS + self.shapes, dense_size(self.slots)

    @property
    def modules(self) -> dict[str, slice]:
        """The flat vector's parts by name."""
        rows = self.blocks[0] * self.blocks[1]
        symbols = rows * (self.characters + 1)
        return {"symbols": slice(0, symbols), "copy": slice(symbols, symbols + rows * self.slots)}

    @property
    def size(self) -> int:
        """Parameters in all."""
        return self.modules["copy"].stop

    def weights(self, theta: Floats) -> tuple[Floats, Floats]:
        """Views of the symbol and copy weights, both (buckets, features, columns)."""
        modules = self.modules
        return (
            theta[modules["symbols"]].reshape(*self.blocks, self.characters + 1),
            theta[modules["copy"]].reshape(*self.blocks, self.slots),
        )


@dataclass(frozen=True)
class Inputs:
    """Contexts ready for the weights."""

    dense_ND: Floats
    slots_NM: Ints
    active: tuple[Ints, Ints]
    """Position bucket and shape bucket of each context."""

    @classmethod
    def of(cls, dense_ND: Floats, slots_NM: Ints, position_N: Ints, shape_N: Ints, layout: Layout) -> Inputs:
        """Look the buckets up."""
        return cls(dense_ND, slots_NM, buckets(position_N, shape_N, layout.shapes))

    def by_bucket(self) -> Iterator[tuple[int, Ints]]:
        """(bucket, contexts in which it is active): few buckets, so one matrix product each."""
        for bucket_N in self.active:
            order = np.argsort(bucket_N, kind="stable")
            present, starts = np.unique(bucket_N[order], return_index=True)
            yield from zip(present.tolist(), np.split(order, starts[1:]), strict=True)


def log_softmax(theta: Floats, layout: Layout, inputs: Inputs) -> Floats:
    """log p over the vocabulary, (N, V)."""
    symbols, copies = layout.weights(theta)
    n = len(inputs.dense_ND)
    z_NS = np.zeros((n, layout.characters + 1), dtype=theta.dtype)
    z_NM = np.zeros((n, layout.slots), dtype=theta.dtype)
    for bucket, where in inputs.by_bucket():
        dense = inputs.dense_ND[where].astype(theta.dtype, copy=False)
        z_NS[where] += dense @ symbols[bucket]
        z_NM[where] += dense @ copies[bucket]
    z_NV = np.empty((n, layout.vocab_size), dtype=theta.dtype)
    z_NV[:, : layout.characters] = z_NS[:, :-1]
    z_NV[:, layout.characters :] = z_NS[:, -1:]
    for m in range(layout.slots):
        filled = np.flatnonzero(inputs.slots_NM[:, m] >= 0)
        z_NV[filled, inputs.slots_NM[filled, m]] += z_NM[filled, m]
    z_NV -= z_NV.max(axis=1, keepdims=True)
    return z_NV - np.log(np.exp(z_NV).sum(axis=1, keepdims=True))


def entropy(logp_NV: Floats) -> Floats:
    """−Σ p log p of each context."""
    return np.asarray(-(np.exp(logp_NV) * logp_NV).sum(axis=1))


def backward(
    layout: Layout, inputs: Inputs, logp_NV: Floats, token_N: Ints, c_logp_N: Floats, c_entropy_N: Floats | None
) -> Floats:
    """Flat gradient of Σ c_logp log p + Σ c_entropy H."""
    p_NV = np.exp(logp_NV)
    dz_NV = -c_logp_N[:, None] * p_NV
    dz_NV[np.arange(len(token_N)), token_N] += c_logp_N
    if c_entropy_N is not None:
        dz_NV -= c_entropy_N[:, None] * p_NV * (logp_NV + entropy(logp_NV)[:, None])
    return from_logits(layout, inputs, dz_NV)


def from_logits(layout: Layout, inputs: Inputs, dz_NV: Floats) -> Floats:
    """Flat gradient of a loss whose derivatives by the logits are known."""
    gradient = np.zeros(layout.size, dtype=dz_NV.dtype)
    symbols, copies = layout.weights(gradient)
    dz_NS = np.concatenate(
        [dz_NV[:, : layout.characters], dz_NV[:, layout.characters :].sum(axis=1, keepdims=True)], axis=1
    )
    rows = np.arange(len(dz_NV))[:, None]
    dz_NM = np.where(inputs.slots_NM >= 0, dz_NV[rows, inputs.slots_NM], 0.0)
    for bucket, where in inputs.by_bucket():
        dense = inputs.dense_ND[where].astype(dz_NV.dtype, copy=False)
        symbols[bucket] += dense.T @ dz_NS[where]
        copies[bucket] += dense.T @ dz_NM[where]
    return gradient


class Published(NamedTuple):
    """The policy that answers are drawn from."""

    theta: Floats
    layout: Layout
    tokenizer: ToyTokenizer
    scale: float
    version: int


def sample(policy: Published, requests: Sequence[Request]) -> list[list[Completion]]:
    """Requests of equal settings go abreast; each draws its own uniforms first, so it does not depend on the others."""
    out: list[list[Completion]] = [[] for _ in requests]
    for settings in dict.fromkeys(request.sampling for request in requests):
        chosen = [i for i, request in enumerate(requests) if request.sampling == settings]
        drawn = iter(_abreast(policy, [requests[i] for i in chosen], settings))
        for i in chosen:
            out[i] = [next(drawn) for _ in range(requests[i].n)]
    return out


def _abreast(policy: Published, requests: Sequence[Request], settings: Sampling) -> list[Completion]:
    questions = [request.tokens[: len(request.tokens) - request.begun] for request in requests]
    prompts = [question for question, request in zip(questions, requests, strict=True) for _ in range(request.n)]
    begun_N = np.array([request.begun for request in requests for _ in range(request.n)])
    uniform_NT = np.concatenate(
        [generator("sample", *request.key).random((request.n, settings.max_tokens)) for request in requests]
    )
    view = view_prompts(prompts, policy.tokenizer, policy.layout.slots, policy.scale)
    shape_N = _gone_on(view, requests)
    tokens: list[list[int]] = [[] for _ in prompts]
    logprobs: list[list[float]] = [[] for _ in prompts]
    live_N = np.arange(len(prompts))
    for t in range(settings.max_tokens):
        logp_NV = _distribution(policy, view, shape_N, live_N, begun_N + t, settings)
        if settings.temperature == 0.0:
            token_N: Ints = logp_NV.argmax(axis=1)
        else:
            cumulative = np.cumsum(np.exp(logp_NV, dtype=np.float64), axis=1)
            token_N = (cumulative < uniform_NT[live_N, t, None] * cumulative[:, -1:]).sum(axis=1)
        for i, token, logp in zip(live_N, token_N, logp_NV[np.arange(len(token_N)), token_N], strict=True):
            tokens[i].append(int(token))
            logprobs[i].append(float(logp))
        shape_N = shape_N.copy()
        shape_N[live_N] = advance(shape_N[live_N], view.slots_NM[live_N], token_N)
        live_N = live_N[[not _ended(policy, tokens[i], settings) for i in live_N]]
        if not len(live_N):
            break
    finishes = [Finish.STOP if _ended(policy, one, settings) else Finish.LENGTH for one in tokens]
    return [
        Completion(policy.tokenizer.decode(chosen), tuple(chosen), tuple(logp), finish, policy.version)
        for chosen, logp, finish in zip(tokens, logprobs, finishes, strict=True)
    ]


def _gone_on(view: PromptView, requests: Sequence[Request]) -> Ints:
    """The shapes after what each answer has begun with: the very contexts in which training will see what follows."""
    shape_N = view.shape_N.copy()
    first = 0
    for request in requests:
        rows = slice(first, first + request.n)
        for token in request.tokens[len(request.tokens) - request.begun :]:
            shape_N[rows] = advance(shape_N[rows], view.slots_NM[rows], np.full(request.n, token))
        first += request.n
    return shape_N


def _distribution(
    policy: Published, view: PromptView, shape_N: Ints, live_N: Ints, position_N: Ints, settings: Sampling
) -> Floats:
    """Log-probs actually sampled from: at the temperature, within the nucleus."""
    active = view.dense_ND[live_N], view.slots_NM[live_N], position_N[live_N], shape_N[live_N]
    inputs = Inputs.of(*active, policy.layout)
    logp_NV = log_softmax(policy.theta, policy.layout, inputs)
    if settings.temperature not in (0.0, 1.0):
        logp_NV = _renormalise(logp_NV / settings.temperature)
    if settings.top_p < 1.0:
        order = np.argsort(-logp_NV, axis=1, kind="stable")
        mass_before = np.cumsum(np.exp(np.take_along_axis(logp_NV, order, 1)), axis=1)
        outside = np.roll(mass_before, 1, axis=1) >= settings.top_p
        outside[:, 0] = False
        np.put_along_axis(logp_NV, order, np.where(outside, -np.inf, np.take_along_axis(logp_NV, order, 1)), 1)
        logp_NV = _renormalise(logp_NV)
    return logp_NV


def _renormalise(z_NV: Floats) -> Floats:
    z_NV = z_NV - z_NV.max(axis=1, keepdims=True)
    return np.asarray(z_NV - np.log(np.exp(z_NV).sum(axis=1, keepdims=True)))


def _ended(policy: Published, tokens: list[int], settings: Sampling) -> bool:
    if tokens[-1] in policy.tokenizer.ends:
        return True
    return bool(settings.stop) and policy.tokenizer.decode(tokens).endswith(settings.stop)
