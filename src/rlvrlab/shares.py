"""Shares of right answers: pass@k, and the words in which everyone tells shares, differences and their intervals.

    percent(0.815, 0.756, 0.862)      81.5 % [75.6, 86.2]      in a sentence
    cell(0.815, 0.756, 0.862)         81.5 [75.6, 86.2]        in a table that says "in %"
    points(0.023, -0.047, 0.093)      +2.3 points [-4.7, +9.3] a difference of two shares
    signed(0.0231)                    +0.02                    any other number with a direction

A number that rounds to zero has no minus sign: `-0.0` says that something fell, which `0.0` takes back. Any other
text stands in a Markdown table as `markdown_cell` writes it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from rlvrlab.errors import UserError


def pass_at_k(samples: int, correct: int, k: int) -> float:
    """Probability that k samples drawn without replacement hold a right one: 1 − C(n−c, k) / C(n, k)."""
    check_k(samples, k, correct)
    if samples - correct < k:
        return 1.0
    return 1.0 - math.prod(1.0 - k / i for i in range(samples - correct + 1, samples + 1))


def pass_hat_k(samples: int, correct: int, k: int) -> float:
    """Probability that all k samples are right: C(c, k) / C(n, k). Reliability, where pass@k is reach."""
    check_k(samples, k, correct)
    return math.comb(correct, k) / math.comb(samples, k)


def check_k(samples: int, k: int, correct: int = 0) -> None:
    """Refuse what has no meaning: more drawn than there are."""
    if not 1 <= k <= samples:
        raise UserError(
            f"k = {k} of {samples} samples: k must be between 1 and the number of samples; draw more samples"
        )
    if not 0 <= correct <= samples:
        raise UserError(f"{correct} correct of {samples} samples is impossible")


def percent(value: float, low: float | None = None, high: float | None = None, digits: int = 1) -> str:
    """A share in a sentence: `81.5 % [75.6, 86.2]`, or `81.5 %` where its bounds are not known."""
    return f"{hundredths(value, digits)} %{bracket(low, high, 100, digits)}"


def about(value: float) -> str:
    """A share whose tenths say nothing: `45 %`."""
    return percent(value, digits=0)


def cell(value: float, low: float | None = None, high: float | None = None, digits: int = 1) -> str:
    """A share in a table that says what its numbers are: `81.5 [75.6, 86.2]`."""
    return f"{hundredths(value, digits)}{bracket(low, high, 100, digits)}"


def share_words(point: Mapping[str, Any] | None) -> str:
    """`cell` of a recorded share, or a dash where it is not known; it says so where its phase had begun by then."""
    known = point or {}
    value, low, high = (known.get(key) for key in ("value", "low", "high"))
    late = f" at step {known['from']['step']}" if known.get("late") else ""
    return "–" if value is None else f"{cell(value, low, high)}{late}"


def per_hundred(value: float) -> str:
    """A level or a rate without more digits than it has: `95`, `97.5`, `8.75`."""
    return f"{100 * value:.4g}"


def hundredths(value: float, digits: int = 1) -> str:
    """A share in per cent, without the sign: `81.5`."""
    return f"{100 * value:z.{digits}f}"


def points(value: float, low: float | None = None, high: float | None = None) -> str:
    """A difference of shares in a sentence: `+2.3 points [-4.7, +9.3]`."""
    return f"{signed(100 * value, 1)} points{bracket(low, high, 100, 1, sign='+')}"


def difference(
    value: float, low: float | None = None, high: float | None = None, scale: float = 100, digits: int = 1
) -> str:
    """A difference in a table: `+2.3 [-4.7, +9.3]`; of shares in points, unless a scale is given."""
    return f"{signed(scale * value, digits)}{bracket(low, high, scale, digits, sign='+')}"


def signed(value: float, digits: int = 2) -> str:
    """A number whose direction matters: `+0.02`."""
    return f"{value:+z.{digits}f}"


def bracket(low: float | None, high: float | None, scale: float = 1, digits: int = 2, sign: str = "") -> str:
    """` [low, high]`, or nothing where a bound is not known; with `sign="+"` as the ends of a difference are told."""
    if low is None or high is None:
        return ""
    return f" [{scale * low:{sign}z.{digits}f}, {scale * high:{sign}z.{digits}f}]"


def markdown_cell(value: object) -> str:
    """Any value as one cell of a Markdown table, which a bar or a line break would end."""
    return " ".join(str(value).replace("|", "\\|").split())
