"""Comparison policies, without any process."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from texts import any_text

from rlvrlab.judge.compare import EXACT, Comparison, Kind, same_text, same_value
from rlvrlab.judge.jail import plain


def plain_values(nan: bool) -> st.SearchStrategy[object]:
    numbers = st.floats(allow_nan=nan) | st.complex_numbers(allow_nan=nan)
    scalars = st.none() | st.booleans() | st.integers() | numbers | any_text() | st.binary()
    hashable = st.recursive(
        scalars, lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=4), max_leaves=5
    )
    return st.recursive(
        hashable,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(hashable, inner, max_size=4),
        max_leaves=10,
    )


def sent(value: object) -> Any:
    return json.loads(json.dumps(plain.encode(value)))


@given(plain_values(nan=True))
def test_a_value_equals_itself_after_the_journey(value: object) -> None:
    assert same_value(sent(value), value, EXACT)


@pytest.mark.slow
@given(plain_values(nan=True))
def test_decoding_gives_the_value_back(value: object) -> None:
    assert same_value(plain.encode(plain.decode(sent(value))), value, EXACT)


@pytest.mark.slow
@given(plain_values(nan=False), plain_values(nan=False))
def test_different_values_differ(one: object, other: object) -> None:
    assert one == other or not same_value(sent(one), other, EXACT)


@pytest.mark.parametrize(
    ("got", "expected", "policy", "same"),
    [
        (True, 1, EXACT, False),
        (1.0, 1, EXACT, False),
        ((1, 2), [1, 2], EXACT, False),
        ((1, 2), [1, 2], Comparison("json"), True),
        ({1: 2}, {1: 2}, EXACT, True),
        ({1, 2}, {2, 1}, EXACT, True),
        ({frozenset([8, 16, 0]): 1}, {frozenset([0, 16, 8]): 1}, EXACT, True),
        ({frozenset([8, 16, 0]): 1}, {frozenset([0, 16, 9]): 1}, EXACT, False),
        ([1, 2], [2, 1], EXACT, False),
        ([1, 2], [2, 1], Comparison("unordered"), True),
        ([1, 1, 2], [1, 2, 2], Comparison("unordered"), False),
        (0.1 + 0.2, 0.3, EXACT, False),
        (0.1 + 0.2, 0.3, Comparison("float", abs_tol=1e-9), True),
        ([0.5, "a"], [0.5000001, "a"], Comparison("float", rel_tol=1e-5), True),
        (1, 1.0, Comparison("float", abs_tol=1e-9), True),
        (2, 1, Comparison("float", abs_tol=5), False),
        (float("nan"), float("nan"), EXACT, True),
        (float("inf"), 1e308, Comparison("float", abs_tol=1e300), False),
        (Fraction(1, 2), Fraction(1, 2), EXACT, True),
        (2**80, 2**80, EXACT, True),
        ([["ate", "tea"], ["bat"]], [["bat"], ["tea", "ate"]], Comparison("unordered"), True),
        ([[[1, 4], [3]], (5, 4)], [(4, 5), [[3], [4, 1]]], Comparison("unordered"), True),
        ([["eat"], ["bat", "tea"]], [["bat"], ["tea", "eat"]], Comparison("unordered"), False),
        ([[1, 1], [2]], [[1, 2], [1]], Comparison("unordered"), False),
        ([["b", "a"]], [["a", "b"]], EXACT, False),
        ({9.999999999, 5.0}, {10.0, 5.0}, Comparison("float", abs_tol=1e-6), True),
        ({9.9, 5.0}, {10.0, 5.0}, Comparison("float", abs_tol=1e-6), False),
        ({(9.999999999, 1.0), (5.0, 3.0)}, {(10.0, 1.0), (5.0, 3.0)}, Comparison("float", abs_tol=1e-6), True),
        ({(0.1 + 0.2, "a"), (1.0, "b")}, {(0.3, "a"), (1.0, "c")}, Comparison("float", abs_tol=1e-6), False),
        ({9.999999999: "a", 5.0: "b"}, {10.0: "a", 5.0: "b"}, Comparison("float", abs_tol=1e-6), True),
        ({9.999999999: "b", 5.0: "a"}, {10.0: "a", 5.0: "b"}, Comparison("float", abs_tol=1e-6), False),
        ({0.0, 0.5}, {0.4, 0.9}, Comparison("float", abs_tol=0.4), True),
        (1 + 0j, 1, Comparison("python"), True),
        (2 + 1j, 2, Comparison("python"), False),
        (Decimal("1.10"), Decimal("1.1"), Comparison("python"), True),
        (Decimal("0.1"), Fraction(1, 10), Comparison("python"), False),
        (bytearray(b"a"), b"a", Comparison("python"), True),
        (bytearray(b"a"), b"a", EXACT, False),
        (range(0, 4, 2), range(0, 3, 2), Comparison("python"), True),
        (range(5, 5), range(0), Comparison("python"), True),
        (range(10**30), range(10**30 + 1), Comparison("python"), False),
        (range(3), range(4), Comparison("python"), False),
        (complex(0.0, 1.0), complex(-0.0, 1.0), EXACT, True),
        (complex(0.0, 1.0), complex(-0.0, 1.0), Comparison("json"), True),
        (complex(0.1 + 0.2, 1), complex(0.3, 1), Comparison("float", abs_tol=1e-9), True),
        (complex(0.1 + 0.2, 1), complex(0.3, 1), EXACT, False),
        (complex(0.3, 2), complex(0.3, 1), Comparison("float", abs_tol=1e-9), False),
        (2**60, float(2**60), Comparison("float", rel_tol=1e-9), True),
        (Fraction(1, 2), 0.5, Comparison("float"), True),
        (True, 1.0, Comparison("float"), False),
        (float("inf"), float("inf"), Comparison("float"), True),
        (3, np.int64(3), EXACT, True),
        ([0.5, 4], [np.float64(0.5), np.int32(4)], EXACT, True),
        (4, np.int64(3), EXACT, False),
        (3, np.float64(3), EXACT, False),
    ],
)
def test_values(got: object, expected: object, policy: Comparison, same: bool) -> None:
    assert same_value(sent(got), expected, policy) is same


@pytest.mark.parametrize(
    "form", [{}, {"a": 1}, ["list"], ["list", 3], ["list", [1], 2], [3, [1]], ["x", []], ["int", "0x1"]]
)
def test_hostile_forms_are_just_different(form: Any) -> None:
    for expected in (1, [1], {1: 1}, {1}, 2**80, "x"):
        assert not same_value(form, expected, EXACT)


@pytest.mark.parametrize("kind", ["rstrip_lines", "tokens", "float", "unordered"])
@pytest.mark.parametrize("sign", ["\x1c", "\x1d", "\x1e", "\x1f", "\x85", "\xa0", "\u2028", "\u3000"])
def test_only_the_blanks_of_ascii_are_blanks(kind: Kind, sign: str) -> None:
    policy = Comparison(kind)
    assert not same_text(f"1{sign}".encode(), "1", policy) and not same_text(f"1{sign}2".encode(), "1 2", policy)
    assert same_text(f"1{sign}2 \t\r\n\f\v".encode(), f"1{sign}2", policy)
    assert same_text(b"1\xff\n", "1\udcff", policy) and not same_text(b"1", "\ud800", policy)


def test_hostile_depth_does_not_overflow() -> None:
    deep: Any = 1
    for _ in range(900):
        deep = ["list", [deep]]
    assert not same_value(deep, [1], EXACT)


@pytest.mark.parametrize(
    ("got", "expected", "kind", "same"),
    [
        (b"6.0000001", "6", "float", False),
        (b"6.0", "6", "float", False),
        (b"0.33333", "0.333333", "float", True),
        (b"1e-1", "0.1", "float", True),
        (b"yes 0.1", "yes 0.1000001", "float", True),
        (b"YES", "yes", "float", False),
        ("６".encode(), "6", "tokens", False),
        (b"\xff", "x", "tokens", False),
        (b"b\na\n", "a\nb", "unordered", True),
        (b"nan", "nan", "float", True),
        (b"inf", "6.0", "float", False),
    ],
)
def test_texts(got: bytes, expected: str, kind: Any, same: bool) -> None:
    assert same_text(got, expected, Comparison(kind, abs_tol=1e-5)) is same


@pytest.mark.parametrize("tolerance", ["1e-9", None, -1, float("nan")])
def test_a_tolerance_is_a_number(tolerance: Any) -> None:
    with pytest.raises(ValueError, match="abs_tol"):
        Comparison("float", abs_tol=tolerance)


def test_a_fraction_has_no_exponent() -> None:
    """With one, eleven characters make a number of ten million digits, and whoever decodes it stands still."""
    with pytest.raises(ValueError, match="no whole number"):
        plain.decode(["Fraction", "1e3000"])


HUGE = 10**5000
"""More digits than Python writes out."""


@pytest.mark.parametrize("kind", ["exact", "json", "python", "float", "unordered"])
@pytest.mark.parametrize(
    ("value", "other"),
    [
        (range(HUGE), range(HUGE + 1)),
        (Fraction(1, HUGE), Fraction(1, HUGE + 1)),
        (Fraction(HUGE + 1, 3), Fraction(HUGE + 3, 3)),
        ({Fraction(-1, HUGE)}, {Fraction(1, HUGE)}),
    ],
)
def test_numbers_of_any_length_cross_and_are_compared(kind: Any, value: Any, other: Any) -> None:
    encoded = json.loads(json.dumps(plain.encode(value)))
    assert plain.decode(encoded) == value
    assert same_value(encoded, value, Comparison(kind))
    assert not same_value(encoded, other, Comparison(kind))


def test_fractions_are_what_they_equal() -> None:
    python = Comparison("python")
    for value, expected in ((Fraction(1, 2), 0.5), (Fraction(4, 2), 2), (Fraction(2, 1), 2.0), (0.5, Fraction(1, 2))):
        assert same_value(plain.encode(value), expected, python)
    assert not same_value(plain.encode(Fraction(1, 3)), 1 / 3, python)
    assert not same_value(["Fraction", [2, 4]], Fraction(1, 2), EXACT)


def test_a_fraction_too_long_to_be_reduced_is_refused(quickly: Any) -> None:
    above, below = 3 ** (plain.MOST_FRACTION_BITS), 2 ** (plain.MOST_FRACTION_BITS + 1)
    with pytest.raises(plain.NotPlain):
        plain.encode(Fraction(1, below))
    long = ["Fraction", [plain.encode(above**4), plain.encode(below**4)]]
    with pytest.raises(ValueError, match="too many digits"):
        quickly(0.5, lambda: plain.decode(long))
    quickly(0.5, lambda: same_value(long, Fraction(1, 3), Comparison("python")))


def test_a_policy_for_values_is_not_one_for_text() -> None:
    with pytest.raises(ValueError, match="compares values"):
        same_text(b"", "", Comparison("json"))


def test_a_relative_tolerance_is_relative_to_what_is_expected_alone() -> None:
    """Relative to the answer too, an answer could bring its own tolerance along."""
    tenth = Comparison("float", rel_tol=0.1)
    assert tenth.close(11.0, 10.0) and tenth.close(-9.0, -10.0)
    assert not tenth.close(11.05, 10.0) and not tenth.close(1e9, 0.0)
    assert Comparison("float", abs_tol=0.5, rel_tol=0.1).close(0.5, 0.0)


@pytest.mark.parametrize("number", [0.0, 1e300, float("inf")])
def test_what_is_no_number_is_near_none(number: float) -> None:
    wide, nan = Comparison("float", abs_tol=1e308, rel_tol=1.0), float("nan")
    assert not wide.close(nan, number) and not wide.close(number, nan) and wide.close(nan, nan)
    assert not same_text(b"nan", str(number), wide) and not same_value(sent(nan), number, wide)


@pytest.mark.parametrize(
    ("got", "expected", "kind"),
    [
        ([-0.0, -1.0], [0.0, -1.0], "unordered"),
        ({-0.0, -1.0}, {0.0, -1.0}, "exact"),
        ({-0.0: 1, -1.0: 2}, {0.0: 1, -1.0: 2}, "exact"),
        ({complex(-0.0, 1), complex(0, -1)}, {1j, -1j}, "exact"),
        ([complex(-0.0, 1), complex(0, -1)], [1j, -1j], "unordered"),
        ([{-0.0, -1.0}], [{0.0, -1.0}], "json"),
    ],
)
def test_the_sign_of_zero_does_not_change_where_a_value_is_sorted(got: Any, expected: Any, kind: Any) -> None:
    assert same_value(plain.encode(got), expected, Comparison(kind))


@pytest.mark.parametrize("tolerance", [float("inf"), float("nan"), -1.0])
def test_a_tolerance_that_accepts_everything_is_refused(tolerance: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        Comparison("float", abs_tol=tolerance)


@pytest.mark.parametrize("value", [{10**5000, 1}, {10**5000: "a"}, [{"a": -(10**5000)}], (frozenset({10**5000}),)])
def test_integers_that_cannot_be_written_as_text_are_compared_inside_sets_and_dicts(value: Any) -> None:
    """Python refuses to write more than 4300 digits, which made right answers wrong."""
    assert same_value(plain.encode(value), value, Comparison("python"))
    assert not same_value(plain.encode({10**5000 + 1, 1}), {10**5000, 1}, Comparison("python"))
    assert same_value(plain.encode({1e300, True}), {int(1e300), 1}, Comparison("python"))


@pytest.mark.parametrize("tag", ["list", "tuple", "set", "frozenset", "deque", "dict", "Counter", "OrderedDict"])
@pytest.mark.parametrize("kind", ["exact", "python", "unordered"])
def test_a_text_where_items_belong_is_never_looked_through(tag: str, kind: str) -> None:
    class Unread(str):
        def __iter__(self):
            raise AssertionError("looked through")

    policy = Comparison(kind)
    for expected in ({"a", "b"}, ["a", "b"], {"a": "b"}):
        assert not same_value([tag, Unread("ab")], expected, policy)
        assert not same_value(["list", [[tag, Unread("ab")]]], [expected], policy)


@pytest.mark.parametrize("shape", [[10**15, "x"], ["x"], [-5, "x"], [10**17, [1]], [True], [-1], [10**50, 0]])
@pytest.mark.parametrize("kind", ["json", "float", "unordered", "exact", "python"])
def test_a_shape_that_is_none_is_never_multiplied(shape: list[Any], kind: str) -> None:
    """An integer times a text would be built: gigabytes of the judge's own."""
    assert not same_value(["ndarray", ["<i8", shape, []]], [1], Comparison(kind))


def test_ranges_of_endless_numbers_cost_what_reading_them_costs(quickly: Any) -> None:
    """To compare such ranges member by member is a division that takes minutes."""
    long = ["range", [0, ["int", "0x" + "f" * 400_000], ["int", "0x" + "e" * 200_000]]]
    assert not quickly(1, lambda: same_value(long, range(3), Comparison("python")))
    assert same_value(sent(range(0, 3, 2)), range(0, 4, 2), Comparison("python"))
