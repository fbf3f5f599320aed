"""numpy's and pandas' values across the wall: exact types only, as in plain.py, and only where a worker has them.

    np.int64(3)            -> ["numpy", ["int64", 3]]
    np.eye(2)              -> ["ndarray", ["float64", [2, 2], [1.0, 0.0, 0.0, 1.0]]]
    pd.Series([1, 2])      -> ["Series", [index, values, name]]          each part in plain form
    pd.DataFrame({"a": …}) -> ["DataFrame", [columns, index, [values of the first column, …]]]

The types are those of the packages the worker imported before the candidate came: a class that calls itself `ndarray`,
a subclass, or a module put in numpy's place is not among them. What has no plain items (dates, records, long doubles)
is refused like any other object.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

from rlvrlab.judge.jail import plain

SCALARS = (
    "bool int8 int16 int32 int64 longlong uint8 uint16 uint32 uint64 ulonglong float16 float32 float64 complex64 "
    "complex128"
)
KINDS = "biufcUSO"
WIDEST = {"f": 8, "c": 16}
"""Bytes of the widest number that has a Python counterpart."""


def learn() -> None:
    """Teach plain.py the types of the packages that this process has imported."""
    if "ndarray" not in plain.DECODERS:
        _learn_arrays(importlib.import_module("numpy"))
    if "pandas" in sys.modules and "Series" not in plain.DECODERS:
        _learn_tables(sys.modules["pandas"])


def _learn_arrays(numpy: Any) -> None:
    for name in SCALARS.split():
        plain.ENCODERS[numpy.dtype(name).type] = _scalar
    plain.ENCODERS[numpy.str_] = plain.ENCODERS[numpy.bytes_] = _scalar
    plain.ENCODERS[numpy.ndarray] = _array
    scalars = {numpy.dtype(name).name: numpy.dtype(name).type for name in SCALARS.split()}
    scalars |= {"str": numpy.str_, "bytes": numpy.bytes_}
    plain.DECODERS["numpy"] = lambda form, known: scalars[form[0]](plain.decode(form[1], known))
    plain.DECODERS["ndarray"] = lambda form, known: _array_of(numpy, form, known)


def _scalar(value: Any, other: plain.Other, depth: int) -> plain.Encoded:
    name = {"U": "str", "S": "bytes"}.get(value.dtype.kind, value.dtype.name)
    return ["numpy", [name, plain.encode(value.item())]]


def _array(value: Any, other: plain.Other, depth: int) -> plain.Encoded:
    dtype = value.dtype
    if dtype.kind not in KINDS or dtype.itemsize > WIDEST.get(dtype.kind, dtype.itemsize):
        return other(value)
    items = [plain.encode(item, other, depth) for item in value.ravel().tolist()]
    return ["ndarray", [dtype.str, list(value.shape), items]]


def _array_of(numpy: Any, form: Any, known: plain.Known) -> Any:
    name, shape, items = form
    dtype = numpy.dtype(name)
    if dtype.kind not in KINDS or dtype.itemsize > WIDEST.get(dtype.kind, dtype.itemsize):
        raise ValueError("not an array")
    values = [plain.decode(item, known) for item in items]
    # As wide as the longest text, not as wide as its sender says: that might be more than there is memory.
    flat = numpy.empty(len(values), object) if dtype.kind in "USO" else numpy.empty(len(values), dtype)
    for place, value in enumerate(values):
        flat[place] = value
    return (flat.astype(dtype.kind) if dtype.kind in "US" else flat).reshape(shape)


def _learn_tables(pandas: Any) -> None:
    def series(value: Any, other: plain.Other, depth: int) -> plain.Encoded:
        parts = (value.index.tolist(), value.tolist(), value.name)
        return ["Series", [plain.encode(part, other, depth) for part in parts]]

    def frame(value: Any, other: plain.Other, depth: int) -> plain.Encoded:
        columns = [value.iloc[:, place].tolist() for place in range(value.shape[1])]
        parts = (value.columns.tolist(), value.index.tolist(), columns)
        return ["DataFrame", [plain.encode(part, other, depth) for part in parts]]

    def series_of(form: Any, known: plain.Known) -> Any:
        index, values, name = (plain.decode(part, known) for part in form)
        return pandas.Series(values, index=index, name=name)

    def frame_of(form: Any, known: plain.Known) -> Any:
        columns, index, values = (plain.decode(part, known) for part in form)
        made = pandas.DataFrame({place: pandas.Series(column, index=index) for place, column in enumerate(values)})
        made.columns = columns
        return made if values else pandas.DataFrame(index=index, columns=columns)

    plain.ENCODERS[pandas.Series], plain.ENCODERS[pandas.DataFrame] = series, frame
    plain.DECODERS["Series"], plain.DECODERS["DataFrame"] = _refusing(series_of), _refusing(frame_of)


def _refusing(make: Callable[[Any, plain.Known], Any]) -> Callable[[Any, plain.Known], Any]:
    """The same with ValueError for whatever pandas says of parts that do not fit, and for what it makes into more.

    pandas turns plain dates into its own, which could not go back: tests that pass them on would seem to be at fault.
    """

    def made(form: Any, known: plain.Known) -> Any:
        held: set[type] = set()

        def noted(number: Any) -> Any:
            value = known(number)
            held.add(type(value))
            return value

        def other(value: object) -> plain.Encoded:
            return None if type(value) in held else plain.refuse(value)

        try:
            table = make(form, noted)
            plain.encode(table, other)
        except Exception as error:
            raise ValueError(str(error)) from None
        return table

    return made
