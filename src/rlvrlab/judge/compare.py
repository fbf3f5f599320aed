"""When is an answer right? Every policy is explicit and travels with the task.

Text (what a program printed)               Values (what a function returned, in plain.py's encoding)
  exact        byte for byte                   exact      same types all the way down: True is not 1, 2.0 is not 2
  rstrip_lines trailing blanks ignored         json       tuples are lists, any mapping is a dict (data from JSON files)
  tokens       any white space is one          float      numbers within abs/rel, everything else exact
  float        tokens; numbers within abs/rel  unordered  lists are bags
  unordered    lines are a bag                 python     what `==` says in assert code: True is 1, 2.0 is 2
Under `unordered` lists are bags at every depth; under `float` the members of sets are paired within the tolerance.
A number of numpy is the Python number of its value, always. Its arrays are nested lists of their shape under `json`,
`float` and `unordered`; under `exact` an array equals an array of the same kind, under `python` nothing that is a list.
A number written without a fraction must be met exactly: tolerance is for floats.
"""

from __future__ import annotations

import hashlib
import json
import math
import numbers
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from json.encoder import encode_basestring
from typing import Any, Literal, get_args

from rlvrlab.judge.array_forms import MAPPINGS, SEQUENCES, SETS, unwrapped
from rlvrlab.judge.jail import plain
from rlvrlab.matching import largest_matching

Kind = Literal["exact", "rstrip_lines", "tokens", "json", "float", "unordered", "python"]

ARRAYS_ARE_LISTS = {"json", "float", "unordered"}
INTEGER = re.compile(rb"[+-]?[0-9]{1,400}")
DECIMAL = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
SHORT_DECIMAL = re.compile(r"-?[0-9]{1,400}(?:\.[0-9]{1,400})?(?:E[+-][0-9]{1,3})?", re.ASCII)
"""How a Decimal writes itself, without exponents that would fill the memory."""
LONGEST_NUMBER = 400
LONGEST_RANGE = 4096
"""Ranges of numbers with more bits are compared by their ends: to find their last member is a division that takes as
long as their sender likes."""
DEEPEST = 3 * plain.DEEPEST + 9
"""Lists within lists; a level of a value is at most three of them: [tag, [[key, item]]]. A table has more, once."""
LARGEST_RATIO = 9
"""Members of two encodings of equal values: 1 has one, numpy's 1+0j as ["numpy", [name, ["complex", […, …]]]] nine."""
LONGEST_MEMBER = 60
"""Characters of a member of a set that are shorter than a digest."""
WRITTEN = json.JSONEncoder(ensure_ascii=False, check_circular=False)
"""Texts as they are: escaped, two halves of a character would look like the whole one."""
MOST_PAIRED = 300
"""Sets with more members than this that are not all numbers are paired in sorted order, not by search."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A policy with its tolerances."""

    kind: Kind = "exact"
    abs_tol: float = 0.0
    """Allowed absolute difference of two floats; used by `float`."""
    rel_tol: float = 0.0
    """Allowed difference relative to the expected value."""

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise ValueError(f"comparison {self.kind!r}; allowed: {', '.join(get_args(Kind))}")
        tolerances = (self.abs_tol, self.rel_tol)
        if not all(
            isinstance(one, int | float) and type(one) is not bool and 0 <= one < math.inf for one in tolerances
        ):
            raise ValueError(
                f"abs_tol and rel_tol must be finite numbers from 0 on: {self.abs_tol!r}, {self.rel_tol!r}"
            )

    def close(self, got: float, expected: float) -> bool:
        """Within tolerance; infinities only equal themselves, NaN equals NaN."""
        if math.isnan(expected) or math.isnan(got):
            return math.isnan(expected) and math.isnan(got)
        if math.isinf(expected) or math.isinf(got):
            return got == expected
        return abs(got - expected) <= max(self.abs_tol, self.rel_tol * abs(expected))


EXACT = Comparison("exact")
RSTRIP_LINES = Comparison("rstrip_lines")


def same_text(got: bytes, expected: str, policy: Comparison) -> bool:
    """Did the program print what it should? Bytes that are no text only equal themselves, escaped as Python does it.

    Bytes are compared, of which `split` and `rstrip` take six for blanks: " \\t\\r\\n\\f\\v". Those of text also know
    U+00A0, the separators of ASCII and others, which a reader would take for something printed, or miss.
    """
    try:
        right = expected.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # half a character, which no program can print
        return False
    match policy.kind:
        case "exact":
            return got == right
        case "rstrip_lines":
            return _as_many_lines(got, right) and _lines(got) == _lines(right)
        case "tokens":
            wanted = right.split()
            return got.split(None, len(wanted)) == wanted
        case "unordered":
            return _as_many_lines(got, right) and sorted(_lines(got)) == sorted(_lines(right))
        case "float":
            wanted = right.split()
            tokens = got.split(None, len(wanted))
            return len(tokens) == len(wanted) and all(
                one == other or _same_number(one, other, policy) for one, other in zip(tokens, wanted, strict=True)
            )
    raise ValueError(f"{policy.kind!r} compares values, not text")


def _as_many_lines(got: bytes, expected: bytes) -> bool:
    """Asked first, so that millions of lines where a few belong are never taken apart."""
    return got.rstrip().count(b"\n") == expected.rstrip().count(b"\n")


def _lines(output: bytes) -> list[bytes]:
    return [line.rstrip() for line in output.rstrip().split(b"\n")]


def _same_number(got: bytes, expected: bytes, policy: Comparison) -> bool:
    if max(len(got), len(expected)) > LONGEST_NUMBER:
        return False
    if INTEGER.fullmatch(expected):  # digits may be a text: `01` is not `1`
        return False
    if not (DECIMAL.fullmatch(got) and DECIMAL.fullmatch(expected)):
        return False
    return policy.close(float(got), float(expected))


def same_value(got: plain.Encoded, expected: object, policy: Comparison) -> bool:
    """Did the function return what it should?"""
    return same_form(got, plain.encode(expected, _number_form), policy)


def _number_form(value: Any) -> plain.Encoded:
    """An expected number of another type as Python's own."""
    if isinstance(value, numbers.Integral):
        return plain.encode(int(value))
    if isinstance(value, numbers.Real):
        return plain.encode(float(value))
    if isinstance(value, numbers.Complex):
        return plain.encode(complex(value))
    return plain.refuse(value)


def same_form(got: plain.Encoded, expected: plain.Encoded, policy: Comparison) -> bool:
    """The same with both sides encoded; `got` is hostile, `expected` is ours, and its size bounds the work."""
    arrays = policy.kind in ARRAYS_ARE_LISTS
    expected = unwrapped(expected, arrays)
    if not bounded(got, LARGEST_RATIO * members(expected)):
        return False
    try:
        got = unwrapped(got, arrays)
        if policy.kind == "python":
            return bool(canonical(got) == canonical(expected))
        return _same(got, expected, policy)
    except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError):  # no encoding of anything
        return False


def bounded(form: Any, most: int) -> bool:
    """Has it at most so many members at all depths, and no more levels than our encoder ever writes?"""
    level, left = [form], most
    for _ in range(DEEPEST):
        lists = [one for one in level if type(one) is list]
        left -= sum(map(len, lists))
        if left < 0 or any(type(one) is dict for one in level):
            return False
        if not lists:
            return True
        level = [item for one in lists for item in one]
    return False


def members(form: Any) -> int:
    """How many members an encoding has at all depths, itself included."""
    count, level = 1, [form]
    while level := [item for one in level if type(one) is list for item in one]:
        count += len(level)
    return count


def canonical(form: Any) -> Any:
    """Equal encodings for what Python's `==` calls equal: 1, 1.0 and True; any two sets; any two dicts."""
    return _arranged(form, _merged_leaf, {**dict.fromkeys(SETS, "set"), **dict.fromkeys(MAPPINGS, "dict")})


def _merged_leaf(form: Any) -> Any:
    """Whole numbers stay in plain.py's encoding: as JSON, integers of more than 4300 digits cannot be written."""
    if type(form) is not list:
        return plain.encode(int(form)) if type(form) is bool or (type(form) is float and form.is_integer()) else form
    if form[0] == "int":
        return plain.encode(int(form[1], 16))
    if form[0] == "complex":
        parts = [_merged_leaf(plain.encode(float(part))) for part in form[1]]
        return parts[0] if parts[1] == 0 else ["complex", parts]
    if form[0] == "bytearray":
        return ["bytes", form[1]]
    if form[0] == "range":
        ends = [plain.whole(one) for one in form[1]]
        short = max(map(int.bit_length, ends), default=0) <= LONGEST_RANGE
        return ["range", _ends(range(*ends)) if short else [plain.encode(one) for one in ends]]
    ratio = _ratio(form)
    return form if ratio is None else _merged_ratio(form[0], *ratio)


def _ratio(form: Any) -> tuple[int, int] | None:
    """Numerator and denominator of a fraction, as it was sent, or of a decimal number that is not too long."""
    match form:
        case ["Fraction", [above, below]]:
            return plain.whole(above), plain.whole(below)
        case ["Decimal", str(text)] if SHORT_DECIMAL.fullmatch(text):
            return Fraction(text).as_integer_ratio()
    return None


def _merged_ratio(tag: str, above: int, below: int) -> Any:
    """The whole number or the float that it equals, or its two parts; not reduced: that costs what its sender likes."""
    if below == 1:
        return plain.encode(above)
    with suppress(OverflowError):
        value = above / below
        if value.as_integer_ratio() == (above, below):
            return value
    return [tag, [plain.encode(above), plain.encode(below)]]


def _ends(numbers: range) -> list[Any]:
    """What two ranges of the same numbers have in common: range(0, 3, 2) is range(0, 4, 2)."""
    if not numbers:
        return []
    ends = numbers[0], numbers[-1], numbers.step if numbers[0] != numbers[-1] else 0
    return [plain.encode(end) for end in ends]


def _arranged(form: Any, leaf: Callable[[Any], Any], tags: Mapping[str, str]) -> Any:
    """The form with digests of sets, mappings and what `tags` calls a bag, in a fixed order, at every depth."""
    if type(form) is not list or form[0] not in SEQUENCES | SETS | MAPPINGS or type(form[1]) is not list:
        return leaf(form)  # a text where items belong is no container, and could be megabytes long
    tag, content = form
    if tag in MAPPINGS:
        items: list[Any] = [[_arranged(key, leaf, tags), _arranged(item, leaf, tags)] for key, item in content]
    else:
        items = [_arranged(item, leaf, tags) for item in content]
    if tag not in SEQUENCES or tags.get(tag) == "bag":
        items = sorted(map(shortened, map(spelled_form, items)))
    return [tags.get(tag, tag), items]


def spelled_form(form: Any) -> str:
    """As JSON; most members of large tables are numbers and texts, which need no encoder of their own."""
    kind = type(form)
    return int.__repr__(form) if kind is int else encode_basestring(form) if kind is str else WRITTEN.encode(form)


def shortened(text: str) -> str:
    """A digest of a long text, so that sets in sets in sets are not written out again at every level."""
    return text if len(text) <= LONGEST_MEMBER else hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _sort_key(form: Any, policy: Comparison) -> str:
    if type(form) is int or type(form) is str:
        return spelled_form(form)
    bags = dict.fromkeys(SEQUENCES, "bag") if policy.kind == "unordered" else {}
    return WRITTEN.encode(_arranged(form, _unsigned_zero, bags))


def _unsigned_zero(leaf: Any) -> Any:
    """0.0 for -0.0, also in the parts of a complex number: they are equal, and must be sorted alike."""
    if type(leaf) is float and leaf == 0:
        return 0.0
    match leaf:
        case ["complex", list(parts)]:
            return ["complex", ["0.0" if part == "-0.0" else part for part in parts]]
    return leaf


def _real(form: Any) -> float | None:
    """The value of any real number's encoding; None for everything else, True and False among it."""
    if type(form) in (int, float):
        return float(form)
    match form:
        case ["int", str(digits)]:
            return float(int(digits, 16))
        case ["float", str(text)]:
            return float(text)
    ratio = _ratio(form)
    return ratio[0] / ratio[1] if ratio else None


def _same(got: Any, expected: Any, policy: Comparison) -> bool:
    if policy.kind == "float" and (type(expected) is float or (type(expected) is list and expected[0] == "float")):
        value, wanted = _real(got), _real(expected)
        return value is not None and wanted is not None and policy.close(value, wanted)
    if type(expected) is not list:
        return type(got) is type(expected) and bool(got == expected)
    if type(got) is not list or len(got) != 2 or type(got[0]) is not str:
        return False
    tag = expected[0]
    alike = policy.kind == "json" and any({got[0], tag} <= family for family in (SEQUENCES, MAPPINGS))
    if tag == "complex":
        return _same_complex(got, expected, policy)
    if got[0] != tag and not alike:
        return False
    if tag in SEQUENCES | SETS | MAPPINGS:
        as_bag = tag in SETS or tag in MAPPINGS or (policy.kind == "unordered" and tag in SEQUENCES)
        return type(got[1]) is list and _same_items(got[1], expected[1], tag in MAPPINGS, as_bag, policy)
    return bool(got[1] == expected[1]) and type(got[1]) is type(expected[1])


def _same_complex(got: Any, expected: Any, policy: Comparison) -> bool:
    """Part by part, as floats are: exactly (0.0 is -0.0, NaN is NaN), or each part within the tolerance of `float`."""
    if got[0] != "complex" or type(got[1]) is not list or len(got[1]) != 2:
        return False
    within = policy if policy.kind == "float" else EXACT
    return all(within.close(float(one), float(other)) for one, other in zip(got[1], expected[1], strict=True))


def _same_items(got: list[Any], expected: list[Any], pairs: bool, as_bag: bool, policy: Comparison) -> bool:
    if len(got) != len(expected):
        return False

    def same(one: Any, other: Any) -> bool:
        if not pairs:
            return _same(one, other, policy)
        return type(one) is list and len(one) == 2 and all(map(_same, one, other, (policy, policy)))

    if not as_bag:
        return all(map(same, got, expected))

    def key(item: Any) -> str | tuple[str, ...]:
        return tuple([_sort_key(part, policy) for part in item]) if pairs else _sort_key(item, policy)

    if all(map(same, sorted(got, key=key), sorted(expected, key=key))):
        return True
    return policy.kind == "float" and _paired(got, expected, same)


def _paired(got: list[Any], expected: list[Any], same: Callable[[Any, Any], bool]) -> bool:
    """Can every member be paired with one of the expected? Numbers in order of size, anything else by search."""
    values, wanted = [_real(item) for item in got], [_real(item) for item in expected]
    if None not in values and None not in wanted:
        by_size = [sorted(zip(found, forms, strict=True), key=lambda pair: pair[0] or 0.0)
                   for found, forms in ((values, got), (wanted, expected))]  # fmt: skip
        if all(same(one, other) for (_, one), (_, other) in zip(*by_size, strict=True)):
            return True
    if len(got) > MOST_PAIRED:
        return False
    fitting = [[j for j, one in enumerate(got) if same(one, other)] for other in expected]
    return len(largest_matching(fitting)) == len(expected)
