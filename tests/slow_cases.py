"""Parameters of a test of which a few are enough for `make fast`."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def some_slow(values: Iterable[Any], fast: Collection[Any]) -> list[Any]:
    """All of them as parameters; those that only repeat what `fast` shows are slow."""
    values = list(values)
    assert [one for one in fast if one not in values] == [], "every fast case is one of the cases"
    return [value if value in fast else pytest.param(value, marks=pytest.mark.slow) for value in values]
