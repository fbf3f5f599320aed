"""Student's t distribution with any positive number of degrees of freedom, without SciPy."""

from __future__ import annotations

import math
from statistics import NormalDist

MOST_TERMS, MOST_STEPS = 500, 100


def student_tail(t: float, freedom: float) -> float:
    """The probability of a value above `t` (t ≥ 0)."""
    if math.isinf(freedom):
        return 0.5 * math.erfc(t / math.sqrt(2))
    return 0.5 * _incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t))


def student_quantile(probability: float, freedom: float) -> float:
    """The value that is not exceeded with this probability (above one half).

    Newton's method from the normal quantile, which is never above: the tail is convex, so the steps end at the root.
    """
    t = NormalDist().inv_cdf(probability)
    if math.isinf(freedom):
        return t
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(freedom * math.pi)
    for _ in range(MOST_STEPS):
        density = scale * (1 + t * t / freedom) ** (-(freedom + 1) / 2)
        step = (student_tail(t, freedom) - (1 - probability)) / density
        t += step
        if abs(step) < 1e-12 * t:
            break
    return t


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function, by its continued fraction (Lentz)."""
    if x in (0.0, 1.0):
        return x
    if x > (a + 1) / (a + b + 2):  # where the fraction converges slowly
        return 1 - _incomplete_beta(b, a, 1 - x)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)) / a
    fraction, c, d, least = 1.0, 1.0, 0.0, 1e-300
    for i in range(MOST_TERMS):
        m = i // 2
        if i == 0:
            term = 1.0
        elif i % 2 == 0:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        else:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d = 1 + term * d
        d = 1 / (d if abs(d) > least else least)
        c = 1 + term / c
        c = c if abs(c) > least else least
        fraction *= c * d
        if abs(1 - c * d) < 1e-15:
            break
    return front * (fraction - 1)
