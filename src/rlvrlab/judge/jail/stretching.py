"""An empty result beside something that is not: numpy stretches one to the other, and finds nothing that differs.

    np.allclose([], 5.0)     (np.zeros((0, 2)) == [1, 2]).all()     np.linalg.norm(np.array([]) - 5.0) < 1e-6

All three are true, so `return []` would be right wherever tests compare so. In the process of the tests numpy's own
comparisons refuse it, and in asserts `==`, `!=` and `-` (roles/asserts.py). Nothing else of numpy is changed.
"""

from __future__ import annotations

import importlib
import sys
from functools import wraps
from typing import Any


def guard() -> None:
    """Make numpy's comparisons refuse it, where numpy is there; for a process that runs tests and nothing else."""
    numpy: Any = sys.modules.get("numpy")
    if numpy is None:
        return
    inner: Any = importlib.import_module("numpy.testing").assert_allclose.__globals__
    allclose, isclose, compare = numpy.allclose, numpy.isclose, inner["assert_array_compare"]

    @wraps(allclose)
    def close(a: Any, b: Any, *more: Any, **named: Any) -> Any:
        return not apart(a, b) and allclose(a, b, *more, **named)

    @wraps(isclose)
    def close_items(a: Any, b: Any, *more: Any, **named: Any) -> Any:
        masks = 0 in (numpy.ndim(a), numpy.ndim(b))  # `x[isclose(x, 0)]`, of which nothing is left
        return numpy.False_ if not masks and apart(a, b) else isclose(a, b, *more, **named)

    @wraps(compare)
    def compared(comparison: Any, x: Any, y: Any, *more: Any, **named: Any) -> None:
        if apart(x, y):
            raise AssertionError("one of them is empty, and the other is not")
        compare(comparison, x, y, *more, **named)

    numpy.allclose, numpy.isclose = close, close_items
    inner["assert_array_compare"] = compared


def apart(one: Any, other: Any) -> bool:
    """Is one of them empty, and the other not?"""
    numpy: Any = sys.modules["numpy"]
    try:
        return bool((numpy.size(one) == 0) != (numpy.size(other) == 0))
    except ValueError:  # lists of different lengths in one list, which are no array
        return False


def _arrays_apart(one: Any, other: Any) -> bool:
    numpy: Any = sys.modules.get("numpy")
    return numpy is not None and numpy.ndarray in (type(one), type(other)) and apart(one, other)


def equals(one: Any, other: Any) -> Any:
    """`==`, but False of an empty array and something that is not empty."""
    return sys.modules["numpy"].False_ if _arrays_apart(one, other) else one == other


def differs(one: Any, other: Any) -> Any:
    """`!=`, but True of them."""
    return sys.modules["numpy"].True_ if _arrays_apart(one, other) else one != other


def difference(one: Any, other: Any) -> Any:
    """`-`, but NaN of them, in the shape of what is not empty: within no tolerance."""
    if not _arrays_apart(one, other):
        return one - other
    numpy: Any = sys.modules["numpy"]
    return numpy.full(numpy.shape(one if numpy.size(one) else other), numpy.nan)
