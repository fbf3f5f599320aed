"""numpy's values across the wall: exact types only, as in plain.py, and only where a worker has them.

    np.int64(3)            -> ["numpy", ["int64", 3]]
    np.eye(2)              -> ["ndarray", ["<f8", [2, 2], [1.0, 0.0, 0.0, 1.0]]]

The types are those of the packages the worker imported before the candidate came: a class that calls itself `ndarray`,
a subclass, or a module put in numpy's place is not among them. What has no plain items (dates, records, long doubles)
is refused like any other object. pandas' tables are written in tables.py.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

from rlvrlab.judge.jail import plain

SCALARS = (
    "bool int8 int16 int32 int64 longlong uint8 uint16 uint32 uint64 ulonglong float16 float32 float64 complex64 "
    "complex128"
)
KINDS = "biufcUSO"
WIDEST = {"f": 8, "c": 16}
"""Bytes of the widest number that has a Python counterpart."""
MOST_TEXT = 1 << 26
"""Bytes of an array of texts. Their width is what the sender says, and might be more than there is memory."""


def fit(one: Any, other: Any) -> bool:
    """Is each array of one beside an array of its shape in the other? Without numpy there is none.

    The rule is that of envs/code/evalplus_oracle.py, which cannot be imported here.
    """
    if "ndarray" not in plain.DECODERS:
        return True
    kind = sys.modules["numpy"].ndarray
    if isinstance(one, kind) or isinstance(other, kind):
        return type(one) is type(other) and bool(one.shape == other.shape)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return all(map(fit, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return all(fit(value, other.get(key)) for key, value in one.items())
    return True


def learn() -> None:
    """Teach plain.py the types of the packages that this process has imported."""
    if "ndarray" not in plain.DECODERS:
        _learn_arrays(importlib.import_module("numpy"))
    if "pandas" in sys.modules and "Series" not in plain.DECODERS:
        tables = importlib.import_module("rlvrlab.judge.jail.tables")
        tables.learn(sys.modules["pandas"], sys.modules["numpy"])


def _learn_arrays(numpy: Any) -> None:
    # By these names and not by those of their dtypes: a long and a long long have one there, and are different types.
    scalars = {name: numpy.dtype(name).type for name in (*SCALARS.split(), "str", "bytes")}
    for name, kind in scalars.items():
        plain.ENCODERS.setdefault(kind, _scalar(name))
    plain.ENCODERS[numpy.ndarray] = _array
    plain.DECODERS["numpy"] = lambda form, known: scalars[form[0]](plain.decode(form[1], known))
    plain.DECODERS["ndarray"] = lambda form, known: _array_of(numpy, form, known)


def _scalar(name: str) -> Any:
    return lambda value, other, depth: ["numpy", [name, plain.encode(value.item())]]


def has_plain_items(dtype: Any, many: int) -> bool:
    """Have so many items of this type counterparts in Python?"""
    if dtype.kind in "US":
        return bool(dtype.itemsize * many <= MOST_TEXT)
    return dtype.kind in KINDS and dtype.itemsize <= WIDEST.get(dtype.kind, dtype.itemsize)


def _array(value: Any, other: plain.Other, depth: int) -> plain.Encoded:
    dtype = value.dtype
    if not has_plain_items(dtype, value.size):
        return other(value)
    items = [plain.encode(item, other, depth) for item in value.ravel().tolist()]
    return ["ndarray", [dtype.str, list(value.shape), items]]


def _array_of(numpy: Any, form: Any, known: plain.Known) -> Any:
    name, shape, items = form
    dtype = numpy.dtype(name)
    if not has_plain_items(dtype, len(items)):
        raise ValueError("not an array")
    return filled(numpy, dtype, [plain.decode(item, known) for item in items]).reshape(shape)


def filled(numpy: Any, dtype: Any, values: list[Any]) -> Any:
    """An array of one dimension; a list or a tuple among its values is one of them, not a row."""
    flat = numpy.empty(len(values), dtype)
    for place, value in enumerate(values):
        flat[place] = value
    return flat
