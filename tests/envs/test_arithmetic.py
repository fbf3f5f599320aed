"""The expression reader and the solver against independent ones: Python's ast with Fractions, and brute force."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import permutations, product

import pytest
from expression_oracle import expressions, oracle
from hypothesis import given
from hypothesis import strategies as st

from rlvrlab.envs.arithmetic import MAX_LENGTH, BadExpression, apply, evaluate, parse
from rlvrlab.envs.arithmetic_solver import reachable, solve


def as_fraction(value: tuple[int, int] | None) -> Fraction | None:
    return None if value is None else Fraction(*value)


def agrees_with_oracle(text: str) -> bool:
    expected = oracle(text)
    try:
        found = parse(text)
    except BadExpression:
        return expected is None
    return expected == (as_fraction(evaluate(found.postfix)), found.numbers)


@given(st.text(alphabet="0123456789+-*/() ×÷−", max_size=24))
def test_reader_agrees_with_ast_on_texts_of_the_alphabet(text: str) -> None:
    assert agrees_with_oracle(text)


@given(expressions)
def test_reader_agrees_with_ast_on_expressions(text: str) -> None:
    assert oracle(text) is not None or len(text) > MAX_LENGTH
    assert agrees_with_oracle(text)


@pytest.mark.parametrize("length", [MAX_LENGTH, MAX_LENGTH + 1])
def test_length_is_capped(length: int) -> None:
    text = "1" + "+1" * ((length - 1) // 2) + " " * ((length - 1) % 2)
    assert len(text) == length
    assert agrees_with_oracle(text)


rationals = st.fractions(min_value=-50, max_value=50, max_denominator=60)


@given(rationals, st.sampled_from("+-*/"), rationals)
def test_arithmetic_is_exact_and_reduced(left: Fraction, operator: str, right: Fraction) -> None:
    found = apply(operator, left.as_integer_ratio(), right.as_integer_ratio())
    if operator == "/" and right == 0:
        assert found is None
        return
    expected = {"+": left + right, "-": left - right, "*": left * right, "/": right and left / right}[operator]
    assert found == expected.as_integer_ratio()


def brute_force(numbers: tuple[int, ...], operators: str) -> set[Fraction]:
    """Every value of every tree over every order."""

    def values(row: tuple[int, ...]) -> set[Fraction]:
        if len(row) == 1:
            return {Fraction(row[0])}
        found = set()
        for cut in range(1, len(row)):
            for left, sign, right in product(values(row[:cut]), operators, values(row[cut:])):
                if sign != "/" or right:
                    found.add(
                        {"+": left + right, "-": left - right, "*": left * right, "/": right and left / right}[sign]
                    )
        return found

    return set().union(*(values(order) for order in set(permutations(numbers))))


CASES = [(level, seed, operators) for level, count in ((2, 10), (3, 10), (4, 2)) for seed in range(count)
         for operators in ("+-*/", "+-", "*/", "/", "-*")]  # fmt: skip


@pytest.mark.parametrize(("level", "seed", "operators"), CASES)
def test_solver_agrees_with_brute_force(level: int, seed: int, operators: str) -> None:
    random_source = random.Random(f"{level} {seed}")
    numbers = tuple(random_source.randint(1, 12) for _ in range(level))
    possible = brute_force(numbers, operators)
    assert {Fraction(*value) for value in reachable(numbers, operators)} == possible
    targets = [*range(31), *random_source.sample(range(31, 500), 10)]
    for target in targets:
        found = solve(numbers, target, operators)
        assert (found is not None) == (target in possible), (numbers, target, found)
        if found is not None:
            assert_solves(found, numbers, target, operators)


def assert_solves(text: str, numbers: tuple[int, ...], target: int, operators: str) -> None:
    assert oracle(text) is not None
    value, used = oracle(text)  # type: ignore[misc]
    assert value == target
    assert sorted(used) == sorted(numbers)
    assert set(text) & set("+-*/") <= set(operators)


@pytest.mark.parametrize(("level", "seed"), [(5, 0), (5, 1), (6, 0), (6, 1)])
def test_solver_solves_what_was_built_to_be_solvable(level: int, seed: int) -> None:
    random_source = random.Random(f"{level} {seed}")
    numbers = tuple(random_source.randint(1, 50) for _ in range(level))
    target = sum(numbers[:-1]) * numbers[-1]
    found = solve(numbers, target)
    assert found is not None
    assert_solves(found, numbers, target, "+-*/")


@pytest.mark.parametrize(
    ("numbers", "target", "operators"),
    [((1, 1, 1, 1), 25, "+-*/"), ((1, 1, 1, 1, 1, 1), 28, "+-*/"), ((2, 4, 6, 8, 10), 31, "+-*"), ((5, 7), 36, "+-*/")],
)
def test_solver_proves_that_there_is_none(numbers: tuple[int, ...], target: int, operators: str) -> None:
    assert solve(numbers, target, operators) is None


def test_solver_uses_a_zero_on_the_way() -> None:
    for operators in ("+-*/", "-*", "-/"):
        found = solve((7, 7, 3, 5, 11), 0, operators)
        assert found is not None
        assert_solves(found, (7, 7, 3, 5, 11), 0, operators)


def test_solver_may_leave_numbers_out() -> None:
    assert solve((5, 9, 91), 45) is None
    assert solve((5, 9, 91), 45, use_all=False) == "9*5"
    assert solve((5, 9, 45), 45, use_all=False) == "45"


@pytest.mark.parametrize("numbers", [(2, 3, 5), (2, 3, 5, 7), (4, 4, 6, 9)])
def test_written_terms_mean_their_value(numbers: tuple[int, ...]) -> None:
    for value, term in reachable(numbers).items():
        assert oracle(term.text)[0] == Fraction(*value), term.text  # type: ignore[index]
