"""pandas' tables across the wall: what pandas itself compares is written out exactly, any other table is refused.

    pd.Series([1, 2])        -> ["Series", [axis, column, name]]
    pd.DataFrame({"a": …})   -> ["DataFrame", [axis of the columns, axis of the rows, [column, …]]]
    a column                 -> ["<i8", items]   ["Int64", items]   ["str", items]   ["<M8[us]", whole numbers]
                                ["Categorical", [codes, axis of the categories, ordered]]
    an axis                  -> ["Index", column, [name], frequency]   ["RangeIndex", [start, stop, step], [name], None]
                                ["MultiIndex", [[axis of a level, its codes], …], names, None]
    pd.Timestamp("2020")     -> ["Timestamp", ["<M8[us]", 1577836800000000]]      pd.NaT -> ["NaT", None]

Times in time zones, periods, intervals, sparse columns, subclasses and tables with attributes are refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rlvrlab.judge.jail import arrays, plain

NUMBERS, DATES = "biufcO", "mM"
MASKED = ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64", "Float32", "Float64", "boolean")
"""pandas' types of numbers of which some may be missing."""
TEXTS = {"str": "nan", "string": "NA"}
"""pandas' types of texts, and what is missing in a column of them."""

Decode = Callable[[Any], Any]


class Unwritten(Exception):
    """A part of a table that has no exact form."""


def learn(pandas: Any, numpy: Any) -> None:
    """Teach plain.py the tables of this pandas."""
    writer, reader = Writer(pandas, numpy), Reader(pandas, numpy)
    plain.ENCODERS[pandas.Series] = _or_other(writer.series)
    plain.ENCODERS[pandas.DataFrame] = _or_other(writer.frame)
    plain.DECODERS["Series"], plain.DECODERS["DataFrame"] = _refusing(reader.series), _refusing(reader.frame)
    for tag, kind in (("Timestamp", pandas.Timestamp), ("Timedelta", pandas.Timedelta)):
        plain.ENCODERS[kind] = _or_other(writer.moment)
        plain.DECODERS[tag] = _refusing(reader.moment)
    plain.ENCODERS[type(pandas.NaT)] = lambda value, other, depth: ["NaT", None]
    plain.ENCODERS[type(pandas.NA)] = lambda value, other, depth: ["NA", None]
    plain.DECODERS["NaT"] = lambda form, known: pandas.NaT
    plain.DECODERS["NA"] = lambda form, known: pandas.NA


def _or_other(write: Callable[[Any, Decode], Any]) -> Any:
    """An encoder that writes so; `other` gets the whole value where a part of it cannot be written exactly."""

    def encoder(value: Any, other: plain.Other, depth: int) -> plain.Encoded:
        try:
            return [type(value).__name__, write(value, lambda part: plain.encode(part, other, depth))]
        except Unwritten:
            return other(value)

    return encoder


def _refusing(make: Callable[[Any, Decode], Any]) -> Callable[[Any, plain.Known], Any]:
    """A decoder of this, with ValueError for whatever pandas says of parts that do not fit."""

    def made(form: Any, known: plain.Known) -> Any:
        try:
            return make(form, lambda part: plain.decode(part, known))
        except Exception as error:
            raise ValueError(str(error)) from None

    return made


class Writer:
    """From tables to forms."""

    def __init__(self, pandas: Any, numpy: Any) -> None:
        self._pandas, self._numpy = pandas, numpy
        self._dated = (pandas.DatetimeIndex, pandas.TimedeltaIndex)
        self._axes = (pandas.Index, pandas.CategoricalIndex, *self._dated)

    def series(self, value: Any, encode: Decode) -> Any:
        """Its axis, its column and its name."""
        _check_bare(value)
        return [self._axis(value.index, encode), self._column(value, encode), encode(value.name)]

    def frame(self, value: Any, encode: Decode) -> Any:
        """Its two axes and its columns."""
        _check_bare(value)
        columns = [self._column(value.iloc[:, place], encode) for place in range(value.shape[1])]
        return [self._axis(value.columns, encode), self._axis(value.index, encode), columns]

    def moment(self, value: Any, encode: Decode) -> Any:
        """A point in time or a stretch of it as what numpy makes of it."""
        if type(value) is self._pandas.Timestamp and (value.tzinfo is not None or value.fold):
            raise Unwritten
        exact = value.asm8
        return [exact.dtype.str, encode(int(exact.view("i8")))]

    def _axis(self, index: Any, encode: Decode) -> Any:
        kind, names = type(index), [encode(name) for name in index.names]
        if kind is self._pandas.RangeIndex:
            return ["RangeIndex", [encode(end) for end in (index.start, index.stop, index.step)], names, None]
        if kind is self._pandas.MultiIndex:
            pairs = zip(index.levels, index.codes, strict=True)
            return ["MultiIndex", [[self._axis(level, encode), codes.tolist()] for level, codes in pairs], names, None]
        if kind not in self._axes:
            raise Unwritten
        return ["Index", self._column(index, encode), names, self._frequency(index)]

    def _frequency(self, index: Any) -> str | None:
        """The frequency that dates were made with, by its name."""
        frequency = index.freq if type(index) in self._dated else None
        if frequency is None:
            return None
        if self._pandas.tseries.frequencies.to_offset(frequency.freqstr) != frequency:
            raise Unwritten
        return str(frequency.freqstr)

    def _column(self, values: Any, encode: Decode) -> Any:
        dtype, name = values.dtype, str(values.dtype)
        if isinstance(dtype, self._numpy.dtype):
            if dtype.kind in DATES:
                return [dtype.str, [encode(item) for item in values.to_numpy().view("i8").tolist()]]
            if dtype.kind in NUMBERS and arrays.has_plain_items(dtype, len(values)):
                return [dtype.str, [encode(item) for item in values.to_numpy().tolist()]]
        elif type(dtype) is self._pandas.CategoricalDtype:
            held = values.array
            return ["Categorical", [held.codes.tolist(), self._axis(held.categories, encode), bool(held.ordered)]]
        elif name in MASKED or type(dtype) is self._pandas.StringDtype:
            pairs = zip(values.tolist(), values.isna().tolist(), strict=True)
            kind = f"{name}/{dtype.storage}" if name in TEXTS else name
            return [kind, [None if missing else encode(item) for item, missing in pairs]]
        raise Unwritten


def _check_bare(table: Any) -> None:
    if table.attrs or not table.flags.allows_duplicate_labels:
        raise Unwritten


class Reader:
    """From forms to tables. Every part is made with the type that was written: pandas is left nothing to guess."""

    def __init__(self, pandas: Any, numpy: Any) -> None:
        self._pandas, self._numpy = pandas, numpy

    def series(self, form: Any, decode: Decode) -> Any:
        """A Series of its three parts."""
        axis, column, name = form
        values = self._column(column, decode)
        return self._pandas.Series(values, self._axis(axis, decode), values.dtype, decode(name))

    def frame(self, form: Any, decode: Decode) -> Any:
        """A DataFrame of its axes and columns."""
        columns, axis, parts = form
        held = [self._column(part, decode) for part in parts]
        values = {place: self._pandas.Series(array, dtype=array.dtype) for place, array in enumerate(held)}
        index = self._axis(axis, decode)
        made = self._pandas.DataFrame(values) if values else self._pandas.DataFrame(index=index)
        made.index, made.columns = index, self._axis(columns, decode)
        return made

    def moment(self, form: Any, decode: Decode) -> Any:
        """A Timestamp or a Timedelta."""
        kind, number = form
        exact = self._column([kind, [number]], decode)
        return {"M": self._pandas.Timestamp, "m": self._pandas.Timedelta}[exact.dtype.kind](exact[0])

    def _axis(self, form: Any, decode: Decode) -> Any:
        kind, content, names, frequency = form
        names = [decode(name) for name in names]
        if kind == "MultiIndex":
            levels = [self._axis(level, decode) for level, _ in content]
            return self._pandas.MultiIndex(levels, [codes for _, codes in content], names=names)
        (name,) = names
        if kind == "RangeIndex":
            return self._pandas.RangeIndex(*map(plain.whole, content), name=name)
        values = self._column(content, decode)
        index = self._pandas.Index(values, dtype=values.dtype, name=name, tupleize_cols=False)
        if frequency is not None:
            index.freq = frequency
        return index

    def _column(self, form: Any, decode: Decode) -> Any:
        kind, items = form
        if kind == "Categorical":
            codes, categories, ordered = items
            dtype = self._pandas.CategoricalDtype(self._axis(categories, decode), ordered)
            return self._pandas.Categorical.from_codes(codes, dtype=dtype)
        if kind in MASKED:
            return self._pandas.array([decode(item) for item in items], dtype=kind)
        name, _, storage = kind.partition("/")
        if name in TEXTS:
            missing = self._pandas.NA if TEXTS[name] == "NA" else self._numpy.nan
            dtype = self._pandas.StringDtype(storage, na_value=missing)
            return self._pandas.array([decode(item) for item in items], dtype=dtype)
        dtype = self._numpy.dtype(kind)
        if dtype.kind in DATES:
            return self._numpy.array([decode(item) for item in items], "i8").view(dtype)
        if dtype.kind not in NUMBERS:
            raise ValueError("not a column")
        return arrays.filled(self._numpy, dtype, [decode(item) for item in items])
