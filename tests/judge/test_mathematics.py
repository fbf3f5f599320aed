"""Mathematical answers: exact numbers here, symbols in a jailed worker."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

from rlvrlab.judge.jail.limits import Limits
from rlvrlab.judge.judge import Judge
from rlvrlab.judge.modes.mathematics import MathTask, exactly_equal
from rlvrlab.judge.modes.quantities import LONGEST_ANSWER
from rlvrlab.judge.modes.spelling import same
from rlvrlab.types import ErrorKind

needs_math_verify = pytest.mark.skipif(
    importlib.util.find_spec("math_verify") is None, reason="needs math-verify: pip install 'rlvrlab[math]'"
)


@pytest.mark.parametrize(
    ("answer", "gold", "equal"),
    [
        ("1,000", "1000", True),
        ("0.5", "1/2", True),
        ("\\[5\\]", "5", True),
        ("\\[\\frac{1}{2}\\].", "0.5", True),
        ("\\(1,000\\)", "\\[1000\\]", True),
        ("\\[5\\]", "6", False),
        ("\\[5\\] \\[6\\]", "6", None),
        ("\\\\[5\\\\]", "5", None),
        ("50%", "0.5", True),
        ("50\\%", "50", False),
        ("50\\%", "50\\%", True),
        ("50", "50\\%", True),
        ("0.\\overline{3}", "\\frac{1}{3}", True),
        ("0.33333333", "\\frac{1}{3}", False),
        ("1.1\\overline{6}", "7/6", True),
        ("X", "x", False),
        ("2(1/2)", "2\\frac{1}{2}", None),
        ("x = 1.2\\overline{3}", "x = 1.20\\overline{3}", False),
        ("x = 1.20", "x = 1.2", True),
        ("BD", "BD_1", None),
        ("204", "204_5", True),
        ("f(x)", "f'(x)", False),
        ("f''(x)", "f'(x)", False),
        ("\\triangle ABC", "\\triangle A'BC", False),
        ("f'(x) = 2x", "2x", None),
        ("f^{\\prime}(x)", "f'(x)", True),
        ("f^{\\prime\\prime}", "f''", True),
        ("x = 3 \\pmod 5", "x \\equiv 3 \\pmod 5", True),
        ("\\varnothing", "\\emptyset", True),
        ("5 \\text{ inches}", "5 \\text{ in}", None),
        ("1e5 x", "1E5 x", True),
        ("5 \\mathrm{MW}", "5 \\mathrm{mW}", False),
        ("5 \\text{ kg}", "5 \\text{ Kg}", None),
        ("C_1 e^x", "c_1 e^x", None),
        ("(-1)^{n+1}", "(-1)^{n-1}", None),
        ("\\pi - 2\\pi k \\text{ for any integer }k", "\\pi + 2\\pi k \\text{ for any integer }k", None),
        ("\\text{concave up}", "\\text{concave down}", False),
        ("13 \\text{ pieces}", "13 \\text{ apples}", None),
        ("\\sqrt[3]{2}", "\\sqrt{2}", False),
        ("[0, 1)", "(0, 1)", False),
        ("\\dfrac12 \\cdot x.", "$\\left(1/2\\right) x$", None),
        ("2 \\cdot x", "2x", True),
        ("f(1/2)", "f \\frac{1}{2}", None),
        ("a + B", "a + b", False),
        ("x^2 + c", "x^2 + C", None),
        ("5 \\text{ m}", "5 \\text{ m/s}", False),
        ("5 m", "5 \\text{ m/s}", False),
        ("5 \\text{ m s}", "5 \\text{ m/s}", False),
        ("5 \\text{ m s}^{-1}", "5 \\text{ m/s}", None),
        ("\\$5", "5 \\text{ dollars per hour}", None),
        ("0.5", "50%", True),
        ("50%", "60%", False),
        ("51%", "50", False),
        ("\\$32,\\!348", "32348", True),
        ("$7$", "7", True),
        ("2", "3", False),
        ("=4", "=3", False),
        ("=3", "3", True),
        ("-1./4", "-1./3", False),
        ("13 \\text{ thousand}", "13", False),
        ("13 \\text{ thousand}", "13{,}000", True),
        ("13 \\text{ apples}", "13", None),
        ("204_6", "204_5", False),
        ("204_{\\text{five}}", "204_5", True),
        ("204", "204_5", True),
        ("204_5", "204", False),
        ("x_1", "x_2", False),
        ("11:46 p.m.", "11:45 p.m.", False),
        ("22:30", "11:15", False),
        ("10:15 \\text{ p.m.}", "22:15", True),
        ("1:3:2", "1:2:3", False),
        ("3 \\text{ minutes}", "3 \\text{ hours}", False),
        ("3 \\text{ hrs}", "3 \\text{ hours}", None),
        ("1,2,2", "1,2", False),
        ("(1,2)", "\\{1,2\\}", False),
        *(
            (text, "5", False)
            for text in ("\\leq 5", "\\neq 5", "x < 5", "\\approx 5", "5+", "5\\times", "5..", "5\\ldots")
        ),
        *((text, "5", None) for text in ("x = 5", "\\left(5\\right)", "\\sqrt{25}", "4 + 1")),
        ("x < 5.0", "x < 5", True),
        ("90^\\circ", "90'", False),
        ("90°", "90^{\\prime}", False),
        ("90'", "90''", False),
        ("5'", "5 \\text{ ft}", None),
        ("5'", "5 \\text{ inches}", False),
        ("\\frac 1 23", "\\frac{1}{2}3", True),
        ("\\frac 1 23", "\\frac{1}{23}", None),
        ("x^10", "x^{1}0", True),
        ("2^{10}", "2^{11}", False),
        ("\\sqrt[3]12", "\\sqrt[3]{1}2", True),
        ("1A3_16", "1A3_{16}", None),
        ("\\sin 30", "\\sin 30^\\circ", False),
        ("30", "30^\\circ", None),
        ("5¢", "\\$5", False),
        ("£5", "\\$5", False),
        ("5‰", "5\\%", False),
        ("3{:}30", "3:30", True),
        ("3\\colon 31", "3:30", False),
        *((text, "3", False) for text in ("3⑤", "3十", "3〇", "3٪", "3\u0338", "3\u200b", "3…", "‑ 3", "⁻3", "3⊕")),
        *((f"\\{name}{{3}}", "3", False) for name in ("neg", "not", "phantom", "hidden", "cancel", "dot")),
        *((f"3 \\text{{ {word}}}", "3", False) for word in ("squared", "bn", "is wrong", "or so", "inverse", "gross")),
        *((text, "3", False) for text in ("3\\permil", "3\\vdots", "3^{+}", "3^\\dagger")),
        *((text, "3", False) for text in ("3 \\sqrt", "3 \\cup", "\\int 3", "\\leqslant 3", "\\det{3}", "3 \\otimes")),
        *((text, "3", None) for text in ("\\sqrt 3", "\\lfloor 3 \\rfloor", "3\\pi", "\\boxed{3}", "\\ln{3}")),
        *((text, "x=3", False) for text in ("x=3?", "x \\not= 3", "x≈3", "\\neg(x=3)")),
        ("x⊕y", "x+y", False),
        ("2Π", "2\\pi", False),
        ("120!", "5!!", False),
        ("5 \\text{ cm squared}", "5 \\text{ cm}^2", None),
        ("5", "5 \\text{ K}", None),
        *(
            (text, "5", False)
            for text in ("5 percent.", "5\\text{ percent}.", "5 \\text{ percent of it}", "5¢", "5 cents")
        ),
        ("5\\text{ J}", "5\\text{ kJ}", False),
        ("5\\text{ degrees}", "5 percent", False),
        ("5\\text{ N m}", "5\\text{ J}", None),
        ("5\\text{ m}", "5\\text{ apples}", None),
        ("5\\text{ rupees}", "5\\text{ apples}", False),
        ("5\\mathrm{i}", "5i", True),
        ("7\\mathbb{Z}", "7", False),
        ("1,\\ldots,2", "1,2", False),
        ("x² + y₁₂", "x^2 + y_{12}", True),
        ("x⁻¹", "x^{-1}", True),
        ("2√x + √12 + √(x+1)", "2\\sqrt{x} + \\sqrt{12} + \\sqrt{x+1}", True),
        ("½", "0.5", True),
        ("α ∈ ℝ", "\\alpha \\in \\mathbb{R}", True),
        ("1 1/2", "1.5", True),
        ("1 1/2", "1\\frac{1}{2}", True),
        ("5 minutes", "5", None),
        ("5 seconds", "5", None),
        ("5 тысяч", "5", False),
        ("\\ne 90^\\circ", "90^\\circ", False),
        ("8\\pi\\ldots", "8\\pi", False),
        ("10,\\!080\\text{ or so}", "10,\\!080", False),
        ("7 = 1+2i", "1+2i", False),
        ("z = 1+2i", "1+2i", None),
        ("5\\text{천}", "5", False),
        ("não 5", "5", False),
        ("5\\text{ s/m}", "5\\text{ m/s}", False),
        ("5 gallons per mile", "5\\text{ miles per gallon}", False),
        ("5\\frac{\\text{m}}{\\text{s}}", "5\\text{ m/s}", None),
        ("1 3/2", "2.5", None),
        ("x", "x", True),
        ("x", "y", False),
        ("x + y", "2x", None),
        ("", "", None),
    ],
)
def test_fast_path(answer: str, gold: str, equal: bool | None) -> None:
    assert exactly_equal(answer, gold) is equal


@pytest.mark.parametrize(("percent", "equal"), [(False, False), (True, True)])
def test_a_percent_sign_is_a_hundredth_unless_percentages_are_asked_for(percent: bool, equal: bool) -> None:
    assert exactly_equal("10\\%", "10", percent) is equal
    assert exactly_equal("10\\%", "0.1", percent) is True
    assert exactly_equal("10\\%", "1000", percent) is False


@pytest.mark.parametrize("piece", ["a", "1", " ", "1,", "1 thousand ", "\\text{", "1:", "sq ", "("])
def test_no_answer_is_slow_to_read(quickly: Any, piece: str) -> None:
    quickly(0.5, lambda: exactly_equal("5" + (piece * 4000)[:3990] + "!", "5\\text{ cm}"))


def test_numbers_need_no_worker(judge: Judge) -> None:
    verdict = judge.verify(MathTask("18"), "18.0")
    assert (verdict.correct, verdict.isolation) == (True, "none")
    assert judge.verify(MathTask("18"), "17").error is ErrorKind.WRONG
    assert judge.verify(MathTask("18"), " ").error is ErrorKind.FORMAT
    assert not judge.pools["mathematics"]._workers


@pytest.mark.skipif(importlib.util.find_spec("math_verify") is not None, reason="math-verify is there")
def test_without_math_verify_symbols_stay_unjudged(judge: Judge) -> None:
    verdict = judge.verify(MathTask("\\sqrt{2}"), "2^{1/2}")
    assert verdict.correct is None and "rlvrlab[math]" in verdict.detail


@needs_math_verify
@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "gold", "equal"),
    [
        ("\\frac{\\sqrt{2}}{2}", "\\frac{1}{\\sqrt{2}}", True),
        ("(x+1)^2", "x^2+2x+1", True),
        ("\\[x+1\\]", "1+x", True),
        ("5^{0.5}", "\\sqrt{5}", True),
        ("5^{-.5}", "\\frac{1}{\\sqrt5}", True),
        ("2^{1.5}", "2\\sqrt{2}", True),
        ("e^{0.5}", "\\sqrt{e}", True),
        ("5^{0.6}", "\\sqrt{5}", False),
        ("5^{0.50000001}", "\\sqrt{5}", False),
        ("\\frac1e", "e^{-1}", True),
        ("\\frac1\\pi", "\\pi^{-1}", True),
        ("\\frac ab", "a/b", True),
        ("\\frac12e", "\\frac{1}{2e}", False),
        ("\\{1,2\\}", "\\{2,1\\}", True),
        ("(1,2)", "[1,2]", False),
        ("x<1 or x>2", "(-\\infty,1)\\cup(2,\\infty)", True),
        ("5", "5\\ {\\rm cm}", True),
        ("{\\bf 5}", "5", True),
        ("5\\rm bn", "5", False),
        ("5\\text{M}", "5\\text{ M}", True),
        ("(1,2)\\cup(5,\\infty)", "1<x<2\\text{ or }x>5", True),
        ("x\\le 1 or x>2", "(-\\infty,1)\\cup(2,\\infty)", False),
        ("x<1 or x>3", "(-\\infty,1)\\cup(2,\\infty)", False),
        ("x<1 or y>2", "(-\\infty,1)\\cup(2,\\infty)", False),
        ("x=2 or x=3", "2,3", True),
        ("10^-3", "0.001", True),
        ("x^-12", "x^{-12}", True),
        ("x^-12", "x^{-1}2", False),
        ("0x10", "0", False),
        ("0b1", "0", False),
        ("5\\text{ cm}", "5", True),
        ("(-\\infty, 3]", "x \\le 3", True),
        ("1,2", "1", False),
        ("3.14159265", "\\pi", False),
        ("3.14159265358979323846264", "\\pi", False),
        ("(1.41421356, 1)", "(\\sqrt{2}, 1)", False),
        ("x=6=5", "x=5", False),
        ("x=5=5", "x=5", True),
        ("\\binom{5}{2}", "10", True),
        ("\\binom{5}{2}", "11", False),
        ("2(1/2)", "2\\frac{1}{2}", False),
        ("2(1/2)", "1", True),
        ("BD", "BD_1", False),
        ("5 \\text{ inches}", "5 \\text{ in}", True),
        ("5\\mathrm{i}", "5", False),
        ("5", "5\\mathrm{i}", False),
        ("-4", "1-5\\mathrm{i}", False),
        ("5\\text{!}", "120", True),
        ("5 dollars", "\\$5", True),
        ("\\{0.\\overline{3}, 2\\}", "\\{2, \\frac{1}{3}\\}", True),
        ("\\sqrt{3}", "\\sqrt{2}", False),
        ("__import__('os').system('true')", "5", False),
        ("\\text{no idea}", "5", False),
        ("3²", "3", False),
        ("3²", "9", True),
        ("2½", "2", False),
        ("2½", "2.5", True),
        ("5\\text{ cm²}", "5\\text{ cm}^2", True),
        ("(2,1)", "x=1, y=2", False),
        ("(1,2)", "x=1, y=2", True),
        ("y=2, x=1", "(1,2)", True),
        ("x=2, y=1", "(1,2)", False),
        ("1, 234", "1; 234", True),
        ("1,234", "1; 234", False),
        ("234, 1", "1; 234", False),
    ],
)
def test_symbols(judge: Judge, answer: str, gold: str, equal: bool) -> None:
    assert judge.verify(MathTask(gold), answer).correct is equal


@needs_math_verify
@pytest.mark.slow
@pytest.mark.parametrize(("last", "equal"), [(30, True), (31, False)])
def test_in_a_text_of_many_numbers_each_of_them_counts(judge: Judge, last: int, equal: bool) -> None:
    rows = " \\\\ ".join(f"{3 * i} & {3 * i + 1} & {3 * i + 2}" for i in range(10))
    gold, answer = (f"$\\left|\\begin{{array}}{{rrr}}{rows}\\end{{array}}\\right|={n}$" for n in (30, last))
    assert judge.verify(MathTask(gold), f"{answer} ").correct is equal


@needs_math_verify
@pytest.mark.slow
def test_an_endless_answer_is_ended(judge: Judge) -> None:
    verdict = judge.verify(MathTask("5", limits=Limits(cpu_s=1.0, memory_mb=1024)), "9^{9^{9^9}}")
    assert verdict.correct is False and verdict.error in (ErrorKind.TIMEOUT, ErrorKind.MEMORY)


@needs_math_verify
@pytest.mark.slow
@pytest.mark.parametrize(
    ("gold", "answer", "right"),
    [
        ("P(1+r)^T", "P(1+r)", False),
        ("2", "2^{T}", False),
        ("P(1+r)^T", "P(r+1)^{T}", True),
        ("f'(x)", "f(x)", False),
        ("y''+y=0", "y'+y=0", False),
        ("f'(x)=2x", "2x", True),
        ("3/4", "3:4:1", False),
        ("1:2:3", "2:4:6", True),
        ("5", "5?", False),
        ("5", "5\\text{ (false)}", False),
        ("5", "5\\text{ apples}", True),
    ],
)
def test_signs_that_math_verify_passes_over_in_silence_count(judge: Judge, gold: str, answer: str, right: bool) -> None:
    """An exponent T, primes, the third term of a ratio, and words that take the number back."""
    assert judge.verify(MathTask(gold), answer).correct is right


def test_the_longest_answer_that_is_allowed_is_still_read() -> None:
    longest = "x" + " " * (LONGEST_ANSWER - 3) + "+y"
    assert same(longest, "x+y") is True and same(f"{longest} ", "x+y") is None


@pytest.mark.parametrize(
    ("answer", "gold", "right"),
    [
        ("1, 234", "1,234", False), ("1, 234", "1234", False), ("1,234", "1234", True), ("1, 234", "1, 234", True),
        ("1.5e3", r"1.5 \cdot 10^{3}", True), (r"1.5 \times 10^3", "1500", True), 
        ("1.5e-3", r"1.5 \times 10^{-3}", True),
        ("1.5e4", r"1.5 \cdot 10^{3}", False), ("101", "101_2", True), ("50", r"50\%", True),
    ],
)  # fmt: skip
def test_numbers_and_how_they_are_written(answer: str, gold: str, right: bool) -> None:
    assert exactly_equal(answer, gold) is right
