"""Prompts as vectors without a model: hashed character n-grams, weighted by rarity, and k-means on the sphere.

Suffixes: P prompts, D hashed features, K clusters.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np

from rlvrlab.batch import Floats, Ints
from rlvrlab.randomness import generator

DIMENSIONS = 512
NGRAMS = (2, 3)
ROUNDS = 25


def features(texts: Sequence[str]) -> Floats:
    """TF-IDF rows of length 1; an empty text is a zero row."""
    count_PD = np.zeros((len(texts), DIMENSIONS))
    for row, text in enumerate(texts):
        for size in NGRAMS:
            for start in range(len(text) - size + 1):
                count_PD[row, zlib.crc32(text[start : start + size].encode("utf-8", "replace")) % DIMENSIONS] += 1
    rarity_D = np.log((1 + len(texts)) / (1 + (count_PD > 0).sum(axis=0))) + 1
    return _unit(np.log1p(count_PD) * rarity_D)


def centres(feature_PD: Floats, count: int, seed: int) -> Floats:
    """Spherical k-means from far-apart starting points; at most as many centres as distinct rows."""
    rng = generator(seed, "clusters")
    chosen = [int(rng.integers(len(feature_PD)))]
    while len(chosen) < count:
        closeness_P = (feature_PD @ feature_PD[chosen].T).max(axis=1)
        farthest = int(np.argmin(closeness_P))
        if closeness_P[farthest] >= 1 - 1e-9:
            break
        chosen.append(farthest)
    centre_KD = feature_PD[chosen]
    for _ in range(ROUNDS):
        index_P = nearest(feature_PD, centre_KD)
        sums = np.stack([feature_PD[index_P == k].sum(axis=0) for k in range(len(chosen))])
        moved = np.where((index_P[None, :] == np.arange(len(chosen))[:, None]).any(axis=1)[:, None], sums, centre_KD)
        moved = _unit(moved)
        if np.allclose(moved, centre_KD):
            break
        centre_KD = moved
    return centre_KD


def nearest(feature_PD: Floats, centre_KD: Floats) -> Ints:
    """The centre with the largest cosine; ties go to the first."""
    return np.argmax(feature_PD @ centre_KD.T, axis=1)


def _unit(rows: Floats) -> Floats:
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300)
