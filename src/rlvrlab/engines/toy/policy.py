"""The toy policy's arithmetic: log-linear in its weights, so gradients are exact and short.

    z_v = W[symbol v]·φ + Σ_{slots m holding v} W[copy m]·φ        p = softmax(z)
    ∂ log p_a / ∂ z = onehot(a) − p        ∂ H / ∂ z_v = −p_v (log p_v + H)
φ is a context's dense features, once per active bucket. Numbers of several digits share one symbol column: such a
number is told apart only by being copied from the prompt. Suffixes: N contexts, V tokens, A weight columns, D features.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rlvrlab.batch import Floats, Ints
from rlvrlab.engines.toy.features import POSITIONS, buckets, dense_size


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
