"""Plain data across the wall: a closed set of exact types as JSON, everything else refused.

    [1, 2.5] -> ["list", [1, 2.5]]     {"a": (1,)} -> ["dict", [["a", ["tuple", [1]]]]]     2**80 -> ["int", "0x1000…"]
    Fraction(1, 3) -> ["Fraction", [1, 3]]     range(2**80) -> ["range", [0, ["int", "0x1000…"], 1]]

Scalars stay themselves; a container is [tag, items]. The judge compares encodings (compare.py), checks those of tasks
(written.py), and decodes neither, so that no value makes it build a hostile hash table: only a jail does, in its time.
"""

from __future__ import annotations

import datetime
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

DEEPEST = 100
LARGEST_PLAIN_INT = 1 << 53
MOST_FRACTION_BITS = 1 << 18
"""Of the numerator and the denominator of a fraction, about 79,000 digits: reducing one of more would take seconds."""

Encoded = Any
Other = Callable[[object], Encoded]


class NotPlain(Exception):
    """A value that may not cross; the message is its type's name."""


class TooDeep(NotPlain):
    """A value of plain types with too many levels."""


def refuse(value: object) -> Encoded:
    """The default for `other`: a value that is not plain raises NotPlain."""
    raise NotPlain(type(value).__name__)


def _sequence(tag: str) -> Any:
    return lambda value, other, depth: [tag, [encode(item, other, depth) for item in value]]


def _mapping(tag: str) -> Any:
    return lambda value, other, depth: [
        tag,
        [[encode(key, other, depth), encode(item, other, depth)] for key, item in value.items()],
    ]


def _named(tag: str, parts: Any) -> Any:
    return lambda value, other, depth: [tag, parts(value)]


def _fraction(value: Fraction, other: Other, depth: int) -> Encoded:
    parts = value.numerator, value.denominator
    return ["Fraction", [encode(part) for part in parts]] if _reducible(*parts) else other(value)


def _reducible(above: int, below: int) -> bool:
    return max(above.bit_length(), below.bit_length()) <= MOST_FRACTION_BITS


def _itself(value: Any, other: Other, depth: int) -> Encoded:
    return value


ENCODERS: dict[type, Any] = {
    type(None): _itself,
    bool: _itself,
    str: _itself,
    int: lambda value, other, depth: value if -LARGEST_PLAIN_INT < value < LARGEST_PLAIN_INT else ["int", hex(value)],
    float: lambda value, other, depth: value if value - value == 0 else ["float", repr(value)],
    complex: _named("complex", lambda value: [repr(value.real), repr(value.imag)]),
    bytes: _named("bytes", bytes.hex),
    bytearray: _named("bytearray", lambda value: bytes(value).hex()),
    list: _sequence("list"),
    tuple: _sequence("tuple"),
    deque: _sequence("deque"),
    set: _sequence("set"),
    frozenset: _sequence("frozenset"),
    dict: _mapping("dict"),
    Counter: _mapping("Counter"),
    OrderedDict: _mapping("OrderedDict"),
    defaultdict: _mapping("defaultdict"),
    range: _named("range", lambda value: [encode(part) for part in (value.start, value.stop, value.step)]),
    Fraction: _fraction,
    Decimal: _named("Decimal", str),
    datetime.date: _named("date", datetime.date.isoformat),
    datetime.datetime: _named("datetime", datetime.datetime.isoformat),
    datetime.timedelta: _named("timedelta", lambda value: [value.days, value.seconds, value.microseconds]),
}

ITSELF = frozenset(kind for kind, encoder in ENCODERS.items() if encoder is _itself)


def encode(value: object, other: Other = refuse, depth: int = 0) -> Encoded:
    """The value in plain form; exact types only, so no method of the value's own ever runs.

    `other` says what becomes of a value that is not plain.
    """
    if depth > DEEPEST:
        raise TooDeep(f"value nested deeper than {DEEPEST}")
    kind = type(value)
    if kind in ITSELF:  # most values are, and a call less for each of them is felt
        return value
    encoder = ENCODERS.get(kind)
    return other(value) if encoder is None else encoder(value, other, depth + 1)


Known = Callable[[Any], Any]


def unknown(number: Any) -> Any:
    """The default for `known`: no handle is expected, so any is a ValueError."""
    raise ValueError(f"handle {number!r}")


def _items(items: Encoded, known: Known) -> list[Any]:
    return [decode(item, known) if type(item) is list else item for item in items]


def whole(form: Encoded) -> int:
    """The integer of an encoding; ValueError where it is none."""
    match form:
        case ["int", str(text)]:
            return int(text, 16)
        case int() if not isinstance(form, bool):
            return form
    raise ValueError("no whole number")


def _fraction_of(parts: Encoded) -> Fraction:
    above, below = map(whole, parts)
    if not _reducible(above, below):
        raise ValueError("a fraction of too many digits")
    return Fraction(above, below)


def _pairs(items: Encoded, known: Known) -> list[tuple[Any, Any]]:
    return [(decode(key, known), decode(item, known)) for key, item in items]


DECODERS: dict[str, Callable[[Any, Known], Any]] = {
    "int": lambda text, known: int(text, 16),
    "float": lambda text, known: float(text),
    "complex": lambda parts, known: complex(float(parts[0]), float(parts[1])),
    "bytes": lambda text, known: bytes.fromhex(text),
    "bytearray": lambda text, known: bytearray.fromhex(text),
    "list": _items,
    "tuple": lambda items, known: tuple(_items(items, known)),
    "deque": lambda items, known: deque(_items(items, known)),
    "set": lambda items, known: set(_items(items, known)),
    "frozenset": lambda items, known: frozenset(_items(items, known)),
    "dict": lambda items, known: dict(_pairs(items, known)),
    "Counter": lambda items, known: Counter(dict(_pairs(items, known))),
    "OrderedDict": lambda items, known: OrderedDict(_pairs(items, known)),
    "defaultdict": lambda items, known: defaultdict(None, _pairs(items, known)),
    "range": lambda parts, known: range(*map(whole, parts)),
    "Fraction": lambda parts, known: _fraction_of(parts),
    "Decimal": lambda text, known: Decimal(text),
    "date": lambda text, known: datetime.date.fromisoformat(text),
    "datetime": lambda text, known: datetime.datetime.fromisoformat(text),
    "timedelta": lambda parts, known: datetime.timedelta(*parts),
    "handle": lambda number, known: known(number),
}


def decode(form: Encoded, known: Known = unknown) -> Any:
    """The value again. For a jail, whose time it takes; outside of one, only what holds no set and no mapping."""
    if type(form) is not list:
        return form
    tag, content = form
    return DECODERS[tag](content, known)
