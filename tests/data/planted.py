"""Texts with planted near-duplicates, and what plain Python says about them."""

from __future__ import annotations

import numpy as np

VOCABULARY = 5000
LENGTH = 60


def corpus(size: int, copies: int, seed: int) -> tuple[list[str], list[tuple[int, int]]]:
    """`size` texts of words drawn by frequency; the last `copies` are edited copies of the first."""
    random = np.random.default_rng(seed)
    weights = 1 / np.arange(1, VOCABULARY + 1)
    weights /= weights.sum()
    words = random.choice(VOCABULARY, (size, LENGTH), p=weights)
    for i in range(copies):
        words[size - copies + i] = words[i]
        changed = random.choice(LENGTH, random.integers(1, 7), replace=False)
        words[size - copies + i, changed] = random.choice(VOCABULARY, len(changed), p=weights)
    texts = [" ".join(f"w{word}" for word in row) for row in words]
    return texts, [(i, size - copies + i) for i in range(copies)]


def similarity(left: str, right: str, n: int = 3) -> float:
    """Jaccard over runs of n words, with Python's own sets."""
    one, other = (
        {tuple(words[i : i + n]) for i in range(len(words) - n + 1)} for words in (left.split(), right.split())
    )
    return len(one & other) / len(one | other)
