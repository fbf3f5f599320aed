"""JSON read strictly and exactly, for answers that are compared by value.

strict_value('{"a": 1.10}') = {"a": Decimal("1.10")}     typed(True) != typed(1)
A key that stands there twice, NaN, endless nesting and numbers beyond any decimal are ValueErrors.
"""

from __future__ import annotations

import json
from decimal import Decimal, InvalidOperation
from typing import Any

from rlvrlab.errors import cut
from rlvrlab.plain_files import distinct_keys


def strict_value(text: str) -> Any:
    """The value, numbers with a point or an exponent as exact decimals."""
    try:
        return json.loads(text, parse_float=_decimal, parse_constant=_refused, object_pairs_hook=distinct_keys)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def typed(value: Any) -> Any:
    """A value in which true and 1 differ, as they do in JSON."""
    if isinstance(value, dict):
        return {key: typed(one) for key, one in value.items()}
    if isinstance(value, list):
        return [typed(one) for one in value]
    return (isinstance(value, bool), value)


def _decimal(digits: str) -> Decimal:
    try:
        return Decimal(digits)
    except InvalidOperation:  # no ValueError: decimals have errors of their own
        raise ValueError(f"{cut(digits, 40)} is beyond any number") from None


def _refused(constant: str) -> Any:
    raise ValueError(f"{constant} is no value")
