"""When is an answer right? Every policy is explicit and travels with the task.

Text (what a program printed)               Values (what a function returned, in plain.py's encoding)
  exact        byte for byte                   exact      same types all the way down: True is not 1, 2.0 is not 2
  rstrip_lines trailing blanks ignored         json       tuples are lists, any mapping is a dict (data from JSON files)
  tokens       any white space is one          float      numbers within abs/rel, everything else exact
  float        tokens; numbers within abs/rel  unordered  lists are bags
  unordered    lines are a bag                 python     what `==` says in assert code: True is 1, 2.0 is 2
A number written without a fraction must be met exactly: tolerance is for floats.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, get_args

from rlvrlab.judge.jail import plain

Kind = Literal["exact", "rstrip_lines", "tokens", "json", "float", "unordered", "python"]

SEQUENCES = {"list", "tuple", "deque"}
SETS = {"set", "frozenset"}
MAPPINGS = {"dict", "Counter", "OrderedDict", "defaultdict"}
INTEGER = re.compile(r"[+-]?[0-9]{1,400}", re.ASCII)
DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?", re.ASCII)
RATIO = re.compile(r"-?[0-9]{1,400}(?:/[0-9]{1,400}|(?:\.[0-9]{1,400})?(?:E[+-][0-9]{1,3})?)", re.ASCII)
"""How Fraction and Decimal write themselves, without exponents that would fill the memory."""
LONGEST_NUMBER = 400


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
    """Did the program print what it should?"""
    try:
        text = got.decode("utf-8")
    except UnicodeDecodeError:
        return False
    match policy.kind:
        case "exact":
            return text == expected
        case "rstrip_lines":
            return _lines(text) == _lines(expected)
        case "tokens":
            return text.split() == expected.split()
        case "unordered":
            return sorted(_lines(text)) == sorted(_lines(expected))
        case "float":
            tokens, wanted = text.split(), expected.split()
            return len(tokens) == len(wanted) and all(
                one == other or _same_number(one, other, policy) for one, other in zip(tokens, wanted, strict=True)
            )
    raise ValueError(f"{policy.kind!r} compares values, not text")


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.rstrip().split("\n")]


def _same_number(got: str, expected: str, policy: Comparison) -> bool:
    if max(len(got), len(expected)) > LONGEST_NUMBER:
        return False
    if INTEGER.fullmatch(expected):
        return INTEGER.fullmatch(got) is not None and int(got) == int(expected)
    if not (DECIMAL.fullmatch(got) and DECIMAL.fullmatch(expected)):
        return False
    return policy.close(float(got), float(expected))


def same_value(got: plain.Encoded, expected: object, policy: Comparison) -> bool:
    """Did the function return what it should?"""
    return same_form(got, plain.encode(expected), policy)


def same_form(got: plain.Encoded, expected: plain.Encoded, policy: Comparison) -> bool:
    """The same with both sides encoded; `got` is hostile, `expected` is ours."""
    try:
        if policy.kind == "python":
            return bool(_canonical(got) == _canonical(expected))
        return _same(got, expected, policy)
    except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError):  # no encoding of anything
        return False


def _canonical(form: Any) -> Any:
    """Equal encodings for what Python's `==` calls equal: 1, 1.0 and True; any two sets; any two dicts."""
    return _arranged(form, _merged_number, {**dict.fromkeys(SETS, "set"), **dict.fromkeys(MAPPINGS, "dict")})


def _merged_number(form: Any) -> Any:
    if type(form) is not list:
        return int(form) if type(form) is bool or (type(form) is float and form.is_integer()) else form
    if form[0] == "int":
        return int(form[1], 16)
    if form[0] not in ("Fraction", "Decimal") or not RATIO.fullmatch(form[1]):
        return form
    value = Fraction(form[1])
    if value.denominator == 1:
        return value.numerator
    return float(value) if Fraction(float(value)) == value else form


def _arranged(form: Any, leaf: Callable[[Any], Any], tags: Mapping[str, str]) -> Any:
    """The form with digests of what is in sets and mappings, in a fixed order, at every depth."""
    if type(form) is not list or form[0] not in SEQUENCES | SETS | MAPPINGS:
        return leaf(form)
    tag, content = form
    if tag in MAPPINGS:
        items: list[Any] = [[_arranged(key, leaf, tags), _arranged(item, leaf, tags)] for key, item in content]
    else:
        items = [_arranged(item, leaf, tags) for item in content]
    if tag not in SEQUENCES:  # short, so that sets in sets in sets are not written out again at every level
        items = sorted(hashlib.sha256(json.dumps(item).encode()).hexdigest() for item in items)
    return [tags.get(tag, tag), items]


def _sort_key(form: Any) -> str:
    return json.dumps(_arranged(form, lambda leaf: leaf, {}))


def _same(got: Any, expected: Any, policy: Comparison) -> bool:
    if type(expected) is not list:
        if policy.kind == "float" and type(expected) is float and type(got) in (int, float):
            return policy.close(float(got), expected)
        return type(got) is type(expected) and bool(got == expected)
    if type(got) is not list or len(got) != 2 or type(got[0]) is not str:
        return False
    tag = expected[0]
    alike = policy.kind == "json" and any({got[0], tag} <= family for family in (SEQUENCES, MAPPINGS))
    if got[0] != tag and not alike:
        return False
    if tag in SEQUENCES | SETS | MAPPINGS:
        as_bag = tag in SETS or tag in MAPPINGS or (policy.kind == "unordered" and tag in SEQUENCES)
        return type(got[1]) is list and _same_items(got[1], expected[1], tag in MAPPINGS, as_bag, policy)
    if tag == "float":
        return bool(got[1] == expected[1])
    return bool(got[1] == expected[1]) and type(got[1]) is type(expected[1])


def _same_items(got: list[Any], expected: list[Any], pairs: bool, as_bag: bool, policy: Comparison) -> bool:
    if len(got) != len(expected):
        return False
    if as_bag:

        def key(item: Any) -> str:
            return json.dumps([_sort_key(part) for part in item]) if pairs else _sort_key(item)

        got, expected = sorted(got, key=key), sorted(expected, key=key)
    if not pairs:
        return all(_same(one, other, policy) for one, other in zip(got, expected, strict=True))
    return all(
        type(one) is list and len(one) == 2 and _same(one[0], other[0], policy) and _same(one[1], other[1], policy)
        for one, other in zip(got, expected, strict=True)
    )
