"""The imaginary unit: where the question says that `i` is one, and where it is a variable like any other."""

from __future__ import annotations

import importlib.util

import pytest
from test_near_misses import verdicts

from rlvrlab.envs.mathematics.imaginary import is_imaginary

needs_math_verify = pytest.mark.skipif(
    importlib.util.find_spec("math_verify") is None, reason="needs math-verify: pip install 'rlvrlab[math]'"
)
COMPLEX = "Compute the complex number."
EQUAL = [
    ("i^2", "-1"), ("3i+2", "2+3i"), ("i^3", "-i"), ("(1+i)^2", "2i"), ("\\frac{1}{i}", "-i"), ("i^4", "1"),
    ("(2+i)(2-i)", "5"), ("\\frac{1+i}{1-i}", "i"), ("e^{i\\pi}", "-1"), ("\\sqrt{-4}", "2i"), ("\\mathrm{i}^2", "-1"),
    ("e^{i\\pi/3}", "\\frac{1}{2}+\\frac{\\sqrt{3}}{2}i"),
]  # fmt: skip
OTHER = [
    ("i^2", "1"), ("(1+i)^2", "-2i"), ("i", "-i"), ("2i", "2"), ("i^3", "i"), ("2+3i", "2-3i"), ("i^4", "-1"),
    ("1.4142135623730951i", "\\sqrt{2}i"), ("x^2-1", "(x+i)(x-i)"), ("5i^2", "5"), ("x_i^2", "-1"),
    ("\\sum_{i=1}^{3} i", "6i"),
]  # fmt: skip


@needs_math_verify
@pytest.mark.slow
def test_powers_of_the_imaginary_unit_where_the_question_says_that_it_is_one() -> None:
    assert verdicts(EQUAL, COMPLEX) == [True] * len(EQUAL)
    assert not any(verdicts(OTHER, COMPLEX))


@needs_math_verify
@pytest.mark.slow
@pytest.mark.parametrize("question", ["", "Expand it in terms of $i$.", "Find $a_i$, a complex number."])
def test_elsewhere_it_is_a_variable(question: str) -> None:
    only_by_its_square = [pair for pair in EQUAL if pair != ("3i+2", "2+3i")]
    assert not any(verdicts(only_by_its_square, question))
    assert verdicts([("3i+2", "2+3i"), ("i(i+1)", "i^2+i")], question) == [True, True]


@needs_math_verify
@pytest.mark.slow
def test_the_question_is_not_its_answer() -> None:
    assert verdicts([("(1+i)^2", "2i")], "Compute the complex number $(1 + i)^2$.") == [False]


@pytest.mark.parametrize(
    ("question", "gold", "imaginary"),
    [
        ("Simplify: $(5-4 i)+(8-4 i)$", "13-8i", True), ("Solve: $x^2=-9$", "3i,-3i", True),
        ("Let $i=\\sqrt{-1}$. Find $i^6$.", "-1", True), ("Simplify the given power of $i$: $i^{26}$", "-1", True),
        ("If $z=\\frac{1-i}{2+2i}$, find $z-\\bar{z}$.", "-i", True), ("Find all roots of unity.", "1,-1,i,-i", True),
        ("", "2i", False), ("Expand $(x+i)^2$.", "x^2+2xi+i^2", False),
        ("Find $a_{i+1}$ if $a_i=2+3i$.", "5+3i", False),
        ("What is the sum for $i=1$ to $4$ of $2+3i$?", "38", False), ("Tom has $i$ apples.", "2i", False),
        ("Give the cross product.", "2\\mathbf{i}", False), ("For each integer $i$, find $1+2i$.", "1+2i", False),
        ("Solve: $x^2=9$", "3,-3", False), ("Find the $i$-th term of $3+2i$.", "3+2i", False),
    ],
)  # fmt: skip
def test_the_question_decides(question: str, gold: str, imaginary: bool) -> None:
    assert is_imaginary(question, gold) is imaginary
