"""Which rows of a result are those of another: integers and text exactly, reals within a tolerance, in any order."""

from __future__ import annotations

from typing import Any

import pytest

from rlvrlab.judge.modes.sql_gold import gold_of
from rlvrlab.judge.modes.sql_rows import Result, in_any_order, same_result
from rlvrlab.judge.modes.sql_text import ending_of


def test_ties() -> None:
    gold = Result(1, [["a"], ["b"], ["c"]])
    ending = ending_of("SELECT x FROM t ORDER BY y", 9)
    allowed = gold_of(ending, gold, Result(2, [["b", 1], ["a", 1], ["c", 2]]))
    assert same_result(Result(1, [["b"], ["a"], ["c"]]), allowed, 0) == ""
    assert same_result(Result(1, [["b"], ["c"], ["a"]]), allowed, 0) == "another order"
    assert same_result(Result(1, [["b"], ["b"], ["c"]]), allowed, 0) == "other rows"
    unknown = gold_of(ending, gold, None)
    assert same_result(Result(1, [["b"], ["a"], ["c"]]), unknown, 0) == "another order"


LARGE = 2**53 + 1


@pytest.mark.parametrize(
    ("gold", "got", "same"),
    [
        (10_000_001, 10_000_000.0, False),
        (19_900, 20_099.0, False),
        (10_000_001, 10_000_001.0, True),
        (3, 3.0000000001, False),
        (3.0000000001, 3, False),
        (10_000_001.0, 10_000_000.0, False),
        (1e-6, 2e-6, False),
        (0.0, 1e-6, False),
        (0.0, 5e-17, True),
        (0.3, 0.1 + 0.2, True),
        (1e12, 1e12 + 1e-3, True),
        (["int", hex(LARGE)], float(LARGE), False),
        (["int", hex(LARGE - 1)], float(LARGE - 1), True),
        (["Decimal", "0.30"], ["Decimal", "0.3"], True),
        (["Decimal", "0.30"], 0.3, True),
        (0.3, ["Decimal", "0.30"], True),
        (["Decimal", "3.00"], 3, True),
        (["Decimal", "10000001.00"], ["Decimal", "10000001.01"], False),
        (["Decimal", "10000001.00"], 10_000_000.0, False),
        (["date", "2020-01-02"], ["datetime", "2020-01-02T00:00:00"], True),
        (["date", "2020-01-02"], ["datetime", "2020-01-02T10:00:00"], False),
        (["date", "2020-01-02"], "2020-01-02", False),
        (True, 1, True),
        (True, "true", False),
        (None, None, True),
        (None, 0, False),
        (["bytes", "61"], ["bytes", "61"], True),
        (["bytes", "61"], "a", False),
        (["list", [1, 0.3]], ["list", [1, 0.1 + 0.2]], True),
        (["list", [["Decimal", "0.3"]]], ["list", [0.3]], True),
        ("1", 1, False),
    ],
)  # fmt: skip
def test_same_value(gold: Any, got: Any, same: bool) -> None:
    # A second row keeps the comparison of whole results from deciding by itself.
    wanted = in_any_order(Result(1, [[gold], ["other"]]))
    assert (same_result(Result(1, [["other"], [got]]), wanted, 1e-9) == "") is same


@pytest.mark.parametrize("tag", ["int", "Decimal"])
def test_numbers_that_share_a_hash_are_compared_in_linear_time(quickly: Any, tag: str) -> None:
    """A query can return them: `SELECT range * 2305843009213693951::HUGEINT FROM range(10000)` in DuckDB."""
    numbers = [i * (2**61 - 1) for i in range(1, 20_000)]
    rows = [[[tag, hex(number) if tag == "int" else str(number)], 1.5] for number in numbers]
    gold = in_any_order(Result(2, rows))
    assert quickly(3.0, lambda: same_result(Result(2, rows[::-1]), gold, 1e-9)) == ""
    other = [*rows[:0:-1], [[tag, rows[0][0][1] + "0"], 1.5]]
    assert quickly(3.0, lambda: same_result(Result(2, other), gold, 1e-9)) == "other rows"


def test_numbers_of_all_kinds_are_equal_by_their_values() -> None:
    equal: list[list[Any]] = [
        [1, True, 1.0, ["Decimal", "1"], ["Decimal", "1.00"], ["int", "0x1"], ["Decimal", "1E+0"]],
        [0, False, -0.0, ["Decimal", "-0.0"], ["Decimal", "0E-7"]],
        [-100, -100.0, ["Decimal", "-1E+2"], ["Decimal", "-100.0"]],
        [["Decimal", "2.50"], ["Decimal", "2.5"]],
        [10**20, float(10**20), ["int", hex(10**20)], ["Decimal", str(10**20)]],
        ["1"], ["1.0"], ["real 1"], [None], [["bytes", "31"]], [["Decimal", "1E+9999"]], [["float", "inf"]],
    ]  # fmt: skip
    places = [(kind, cell) for kind, cells in enumerate(equal) for cell in cells]
    for kind, cell in places:
        for other_kind, other in places:
            same = same_result(Result(1, [["x"], [cell]]), in_any_order(Result(1, [[other], ["x"]])), 1e-9) == ""
            assert same == (kind == other_kind), (cell, other)


def test_reals_that_differ_in_the_last_bits_find_their_partners() -> None:
    rows = [[1 / 3 + i * 1e-17, i / 7, f"n{i % 5}"] for i in range(200)]
    noisy = [[a * (1 + 1e-13), b * (1 - 1e-13), name] for a, b, name in reversed(rows)]
    assert same_result(Result(3, noisy), in_any_order(Result(3, rows)), 1e-9) == ""
    noisy[7][1] += 1e-6
    assert same_result(Result(3, noisy), in_any_order(Result(3, rows)), 1e-9) == "other rows"


@pytest.mark.parametrize(
    ("gold", "got", "right"),
    [
        ([3, 0.1 * 3 * 10], [3, 3.0], True),
        ([3, 0.1 * 3 * 10], [3.0, 0.1 * 3 * 10], True),
        ([3, 0.1 * 3 * 10], [3, 4.0], False),
        ([3, 7.5], [0.1 * 3 * 10, 7.5], False),
        ([0.1 * 3 * 10, 7.5], [3, 7.5], False),
    ],
)
def test_an_integer_beside_a_real_of_its_value(gold: list[Any], got: list[Any], right: bool) -> None:
    wanted = in_any_order(Result(1, [[one] for one in gold]))
    assert (same_result(Result(1, [[one] for one in got]), wanted, 1e-9) == "") is right


def test_texts_in_a_list_are_no_tags() -> None:
    gold = in_any_order(Result(1, [[["list", ["a", "b"]]]]))
    for hostile in (["list", ["Decimal", "x"]], ["dict", [["k", ["list", ["Decimal", "x"]]]]], ["list", ["list", 1]]):
        assert same_result(Result(1, [[hostile]]), gold, 1e-9) == "other rows"
        assert same_result(Result(1, [[hostile]]), in_any_order(Result(1, [[hostile]])), 1e-9) == ""
    numbers = [["list", [["Decimal", "1.50"], 2.0]]], [["list", [1.5, 2.0000000000001]]]
    assert same_result(Result(1, [numbers[0]]), in_any_order(Result(1, [numbers[1]])), 1e-9) == ""


def test_an_answers_own_reals_do_not_lead_from_golds_value_to_another() -> None:
    """Each is within a hundredth of its neighbour, the last is twice gold's."""
    gold = in_any_order(Result(1, [[1.0]] * 71))
    stairs = [[1.01**step] for step in range(71)]
    assert same_result(Result(1, stairs), gold, 0.01) != ""
    near = [[1.0 + step / 10_000] for step in range(-35, 36)]
    assert same_result(Result(1, near), gold, 0.01) == ""
    assert same_result(Result(1, [[1e-13], [5.0]]), in_any_order(Result(1, [[5.0], [0.0]])), 1e-9) == ""


def test_a_real_that_is_close_to_two_of_golds_is_either() -> None:
    gold = in_any_order(Result(1, [[1.0], [1.0 + 0.9e-9], [1.0 + 1.8e-9]]))
    assert same_result(Result(1, [[1.0 + 1.3e-9], [1.0 + 1.3e-9], [1.0 - 0.5e-9]]), gold, 1e-9) == ""
    assert same_result(Result(1, [[1.0], [1.0], [1.0]]), gold, 1e-9) == "other rows"
