"""Random gradients with shared directions, duplicates and zeros; and a projection that tries every active set."""

from __future__ import annotations

from itertools import combinations

import numpy as np


def rows(rng, count: int, size: int = 40, spread: float = 1.0) -> np.ndarray:
    """Gradients that lean on a common direction, with lengths spread over a factor of about e^(4·spread)."""
    common = rng.standard_normal(size)
    lean = rng.uniform(-1.5, 1.5, (count, 1))
    return (rng.standard_normal((count, size)) + lean * common) * np.exp(spread * rng.uniform(-2, 2, (count, 1)))


def conflicting(rng, count: int, size: int = 40, spread: float = 1.0) -> np.ndarray:
    """Some pair among them disagrees."""
    while True:
        found = rows(rng, count, size, spread)
        if (found @ found.T < 0).any():
            return found


def nearest_by_enumeration(J: np.ndarray, u: np.ndarray, epsilon: np.ndarray) -> np.ndarray:
    """In parameter space, by pseudo-inverses: the shortest way from u into {d: J d >= -epsilon}, of all sets."""
    best, shortest = None, np.inf
    size = np.linalg.norm(J, axis=1) * max(np.linalg.norm(u), 1e-300)
    for count in range(len(J) + 1):
        for chosen in combinations(range(len(J)), count):
            A = J[list(chosen)]
            d = u - np.linalg.pinv(A, rcond=1e-11) @ (A @ u + epsilon[list(chosen)]) if count else u
            way = np.linalg.norm(d - u)
            if (J @ d + epsilon >= -1e-10 * size - 1e-300).all() and way < shortest:
                best, shortest = d, way
    assert best is not None
    return best
