"""numpy's and pandas' values as they are compared: forms of jail/arrays.py and jail/tables.py without their wrapping.

A number of numpy is the Python number of its value. Arrays and columns are lists where `lists` says so, and otherwise
what they hold together with their kind: an array of bytes equals one of longs, and none of floats. Of a table count the
values, labels and names, not how they are stored: RangeIndex(2) is Index([0, 1]), and unused levels are left out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from rlvrlab.judge.jail import plain

SEQUENCES = {"list", "tuple", "deque"}
SETS = {"set", "frozenset"}
MAPPINGS = {"dict", "Counter", "OrderedDict", "defaultdict"}
MOST_DIMENSIONS, MOST_EMPTY, LONGEST_AXIS = 64, 100, 1 << 40
"""Of an array: numpy allows no more dimensions; (1000000000, 0) is a shape that costs its sender nothing."""
BYTE_ORDERS, DATES = tuple("<>|="), tuple("mM")
"""What the names of numpy's types begin with, and the second letter of those whose items are counted from a date."""
MISSING = plain.encode(math.nan)
"""What stands where there is no category, or no label of a level."""


def unwrapped(form: Any, lists: bool) -> Any:
    """The form with numpy's numbers as Python's, tables as tuples, and arrays as nested lists or as what they hold.

    A hostile form raises TypeError, ValueError or LookupError.
    """
    if type(form) is not list or len(form) != 2 or type(form[1]) is not list:
        return form
    tag, content = form
    if tag in SEQUENCES or tag in SETS:
        return [tag, [unwrapped(item, lists) if type(item) is list else item for item in content]]
    if tag in MAPPINGS:
        return [tag, [[unwrapped(part, lists) for part in _pair(pair)] for pair in content]]
    if tag == "numpy":
        return content[1]
    if tag == "ndarray":
        name, shape, items = content
        kind, items = _kind(name), [unwrapped(item, lists) for item in _listed(items)]
        return _nested(_listed(shape), items) if lists else ["ndarray", [kind, shape, items]]
    if tag == "Series":
        axis, column, name = content
        parts = [_axis(axis, _length(column), lists), _column(column, lists), unwrapped(name, lists)]
        return ["tuple", [["table", tag], *parts]]
    if tag == "DataFrame":
        columns, axis, values = content
        many = _length(values[0]) if _listed(values) else None
        axes = [_axis(columns, len(values), lists), _axis(axis, many, lists)]
        return ["tuple", [["table", tag], *axes, ["list", [_column(one, lists) for one in values]]]]
    return form


def _pair(form: Any) -> list[Any]:
    if type(form) is not list or len(form) != 2:
        raise TypeError("not a mapping")
    return form


def _listed(form: Any) -> list[Any]:
    if type(form) is not list:
        raise TypeError("no list where items belong")
    return form


def _kind(name: Any) -> str:
    """Of numpy's numbers the first letter, for their width does not count; of dates and pandas' types the name."""
    if type(name) is not str:
        raise TypeError("no kind of items")
    letter = name[1:2] if name[:1] in BYTE_ORDERS else ""
    return letter if letter and letter not in DATES else name.partition("/")[0]


def _length(column: Any) -> int:
    kind, items = column
    return len(_listed(items[0] if kind == "Categorical" else items))


def _column(column: Any, lists: bool) -> Any:
    kind, items = column
    if kind == "Categorical":
        codes, categories, ordered = items
        values = ["list", _chosen(codes, _labels(categories, lists))]
        return values if lists else ["tuple", [["table", kind], values, _axis(categories, None, lists), ordered]]
    name, values = _kind(kind), ["list", [unwrapped(item, lists) for item in _listed(items)]]
    return values if lists and name[1:2] not in DATES else ["tuple", [["kind", name], values]]


def _axis(axis: Any, length: int | None, lists: bool) -> Any:
    """Names and labels; a range is written out where it has the length that is known from elsewhere."""
    kind, content, names, _ = axis
    named = ["list", [unwrapped(name, lists) for name in _listed(names)]]
    if kind == "MultiIndex":
        levels = [["list", _chosen(codes, _labels(level, lists))] for level, codes in _listed(content)]
        return ["tuple", [["table", kind], named, ["list", levels]]]
    if kind == "RangeIndex":
        numbers = range(*map(plain.whole, content))
        if len(numbers) != length:
            return ["tuple", [["table", kind], named, ["range", content]]]
        content = ["<i8", [plain.encode(number) for number in numbers]]
    return ["tuple", [["table", "Index"], named, _column(content, lists)]]


def _labels(axis: Any, lists: bool) -> Sequence[Any]:
    """The labels of a level, or the categories, by their codes."""
    kind, content, *_ = axis
    if kind == "RangeIndex":
        return range(*map(plain.whole, content))
    return [unwrapped(item, lists) for item in _listed(content[1])]


def _chosen(codes: Any, labels: Sequence[Any]) -> list[Any]:
    found = [labels[code] if code >= 0 else MISSING for code in _listed(codes)]
    return list(map(plain.encode, found)) if type(labels) is range else found


def _nested(shape: Any, items: list[Any]) -> Any:
    """Items in the order of memory as nested lists of this shape; an array of no dimensions is its one item."""
    if len(shape) > MOST_DIMENSIONS or not all(type(length) is int and 0 <= length <= LONGEST_AXIS for length in shape):
        raise ValueError("no shape of an array")
    if math.prod(shape) != len(items):
        raise ValueError("the items do not fill the shape")
    if len(shape) == 0:
        return items[0]
    if not items:  # the lengths behind an empty dimension leave no trace in a list
        if math.prod(shape[: shape.index(0)]) > MOST_EMPTY:
            raise ValueError("too many empty lists")
        return _empty(shape)
    for length in reversed(shape[1:]):
        items = [["list", items[start : start + length]] for start in range(0, len(items), length)]
    return ["list", items]


def _empty(shape: Any) -> Any:
    """Nested lists of an array without items."""
    return ["list", [_empty(shape[1:]) for _ in range(shape[0])] if shape[0] and len(shape) > 1 else []]
