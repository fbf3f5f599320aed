"""Student's t and the beta distribution, because small numbers need them and NumPy does not have them."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

NORMAL = NormalDist()
TINY = 1e-300
"""In the place of 0 in a denominator; what is 1 and something is either 0 or far larger."""


def normal_quantile(level: float) -> float:
    """Half-width, in standard errors, of a two-sided normal interval of this level."""
    return NORMAL.inv_cdf(0.5 + level / 2)


def t_tails(t: float, df: float) -> float:
    """Probability that Student's t with `df` degrees of freedom lies at least |t| from 0 (both tails)."""
    if math.isinf(t):
        return 0.0
    return _incomplete_beta(df / (df + t * t), t * t / (df + t * t), df / 2, 0.5)


@lru_cache(maxsize=4096)
def t_quantile(level: float, df: float) -> float:
    """Half-width, in standard errors, of a two-sided t interval: `t_tails` of it is 1 − level.

    Newton's method from the normal quantile, which is always below: the tail is convex, so the steps never overshoot.
    """
    log_scale = math.lgamma((df + 1) / 2) - math.lgamma(df / 2) - 0.5 * math.log(df * math.pi)
    t, missed = normal_quantile(level), 1 - level
    for _ in range(200):
        density = math.exp(log_scale - (df + 1) / 2 * math.log1p(t * t / df))
        step = (t_tails(t, df) - missed) / (2 * density)
        t += step
        if abs(step) <= 1e-12 * max(1.0, t):
            break
    return t


def t_shift(critical: float, df: float, share: float) -> float:
    """How many standard errors a true mean must be above 0 for its t to exceed `critical` in this share of samples.

    A noncentral t exceeds c where c·r − z stays below its noncentrality: z is normal, r a sample's standard deviation
    over the true one. Of that sum this is the quantile, by Cornish and Fisher's expansion from its four cumulants,
    within 0.2 % from one degree of freedom on (five digits from ten on).
    """
    df = min(df, 1e6)  # from here on r is 1 for all that is asked, and the differences below lose their digits
    mean = math.exp(math.lgamma((df + 1) / 2) - math.lgamma(df / 2)) * math.sqrt(2 / df)
    spread = df * (1 - mean * mean)
    variance = 1 + critical**2 * spread / df
    third = critical**3 * mean * (1 - 2 * spread) / df / variance**1.5
    fourth = 2 * critical**4 * (spread - (df - spread) * (1 - 2 * spread) - spread**2) / df**2 / variance**2
    z = NORMAL.inv_cdf(share)
    bent = third * (z**2 - 1) / 6 + fourth * (z**3 - 3 * z) / 24 - third**2 * (2 * z**3 - 5 * z) / 36
    return critical * mean + math.sqrt(variance) * (z + bent)


def beta_quantile(share: float, a: float, b: float) -> float:
    """Where the beta distribution has this share below, by bisection."""
    low, high = 0.0, 1.0
    while high - low > 1e-12:
        middle = (low + high) / 2
        low, high = (middle, high) if _incomplete_beta(middle, 1 - middle, a, b) < share else (low, middle)
    return high


def _incomplete_beta(x: float, rest: float, a: float, b: float) -> float:
    """Regularised incomplete beta function I_x(a, b) with rest = 1 − x, by Lentz's continued fraction."""
    if x <= 0 or rest <= 0:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):
        return 1 - _incomplete_beta(rest, x, b, a)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(rest)
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1) or TINY)
    value = d
    for m in range(1, 10_000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d, c = 1 / (1 + even * d or TINY), 1 + even / c or TINY
        value *= d * c
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d, c = 1 / (1 + odd * d or TINY), 1 + odd / c or TINY
        value *= d * c
        if abs(d * c - 1) < 1e-15:
            break
    return math.exp(log_front) * value / a
