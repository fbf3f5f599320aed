"""Constants that differ in one piece and may be equal for all that, digits with blanks in them, pairs in brackets."""

from __future__ import annotations

import pytest

from rlvrlab.envs.mathematics.equality import exact
from rlvrlab.judge.modes.mathematics import exactly_equal

EQUAL = (
    ("\\binom{9}{5}", "\\binom{9}{4}"), ("(-1)^{4}", "(-1)^{2}"), ("\\sqrt[3]{1}", "\\sqrt[5]{1}"),
    ("\\gcd(6,9)", "\\gcd(6,3)"), ("e^{4\\pi i}", "e^{2\\pi i}"), ("\\sin 450^\\circ", "\\sin 90^\\circ"),
    ("\\cos(3\\pi)", "\\cos(5\\pi)"), ("1^{7}+\\pi", "1^{3}+\\pi"), ("0!+\\sqrt{2}", "1!+\\sqrt{2}"),
)  # fmt: skip
DIFFERENT = (
    ("\\binom{9}{3}", "\\binom{9}{4}"), ("(-1)^{3}", "(-1)^{2}"), ("\\sqrt[3]{2}", "\\sqrt[5]{2}"),
    ("\\gcd(6,12)", "\\gcd(6,3)"), ("e^{3\\pi i}", "e^{2\\pi i}"), ("\\sin 30^\\circ", "\\sin 90^\\circ"),
    ("\\sin 450", "\\sin 90"), ("x^{4}", "x^{2}"), ("\\frac{7}{2}+\\pi", "\\frac{9}{2}+\\pi"), ("-\\pi", "\\pi"),
    ("f(4)", "f(2)"), ("9^{9^{9^{9}}}", "9^{9^{9^{8}}}"), ("1+10^{-20}", "1+10^{-21}"),
)  # fmt: skip
UNKNOWN = (("\\sqrt{2}+10^{-20}", "\\sqrt{2}+10^{-21}"), ("i^{6}", "i^{2}"), ("\\sin 10^{20}", "\\sin 10^{20}+0"))


@pytest.mark.parametrize(("answer", "gold"), EQUAL)
def test_equal_constants_that_differ_in_one_piece(answer: str, gold: str) -> None:
    assert exactly_equal(answer, gold) is True and exactly_equal(gold, answer) is True


@pytest.mark.parametrize(("answer", "gold"), DIFFERENT)
def test_others_are_refused_as_before(answer: str, gold: str) -> None:
    assert exactly_equal(answer, gold) is False and exactly_equal(gold, answer) is False


@pytest.mark.parametrize(("answer", "gold"), UNKNOWN)
def test_what_floats_cannot_tell_is_left_to_others(answer: str, gold: str) -> None:
    assert exactly_equal(answer, gold) is None


@pytest.mark.parametrize("blank", ["\\,", "\\ ", "\\!", "\\,\\,"])
def test_a_thin_space_joins_nothing_but_thousands(blank: str) -> None:
    for text, value in (("1_234_567", "1234567"), ("-12_345.5", "-12345.5"), ("3.141_592_7", "3.1415927")):
        written = text.replace("_", blank)
        assert exact(written) == exact(value) is not None and exactly_equal(written, value) is True
    for text, value in (("3_4", "34"), ("1_2_3", "123"), ("1_2345", "12345"), ("12_34", "1234"), ("0.3_4", "0.34")):
        written = text.replace("_", blank)
        assert exact(written) is None and exactly_equal(written, value) is not True, written
    assert exactly_equal(f"\\frac{{3{blank}4}}{{5}}", "\\frac{34}{5}") is not True


def test_blanks_that_are_no_part_of_a_number_are_layout() -> None:
    for written, value in (("34\\,", "34"), ("-\\,34", "-34"), ("1,\\!000", "1000")):
        assert exactly_equal(written, value) is True
    assert exact("1,\\ 234") is None and exactly_equal("1,\\ 234", "1234") is False, "two numbers of a list"


@pytest.mark.parametrize(("one", "other"), [("[5,1]", "(5,1)"), ("[1,5]", "(1,5)"), ("[-3, -4]", "(-3, -4)")])
def test_a_pair_in_square_brackets_is_an_interval_and_no_point(one: str, other: str) -> None:
    assert exactly_equal(one, other) is False and exactly_equal(other, one) is False
