"""Systematic near-misses: whatever makes a value wrong must be refused, whatever only spells it otherwise accepted."""

from __future__ import annotations

import importlib.util
import string
from collections.abc import Iterator

import pytest
from spellings import EQUIVALENT

from rlvrlab.envs.mathematics import Mathematics
from rlvrlab.types import Problem

needs_math_verify = pytest.mark.skipif(
    importlib.util.find_spec("math_verify") is None, reason="needs math-verify: pip install 'rlvrlab[math]'"
)
SCALE_WORDS = ("hundred", "thousand", "million", "billion", "dozen")
OTHER_WORDS = ("and a half", "thirds", "tenths", "or more", "or less", "at most", "and three quarters", "doubled")
UNKNOWN_WORDS = ("twelfths", "quadrillion", "grand", "cubed", "negated", "nope", "never", "tenfold", "myriad", "pct")
WORDS_OF_OTHERS = ("тысяч", "тыс", "миллионов", "ألف", "não", "천", "백만", "mil", "µ")
"""Thousands, millions and a refusal in other languages."""
"""Words that no list of such words would have; where gold says them, they may be a unit that nobody knows."""
IN_TYPE = (
    "\\mathrm{i}", "\\text{i}", "\\mathrm{e}", "\\mathrm{e}^{3}", "\\text{!}", "\\mathbf{i}", "\\mathit{i}", "\\rm i",
    "\\operatorname{i}", "\\mathbf{v}", "\\texttt{x}", "\\mathbb{Z}", "+\\mathbb{R}",
)  # fmt: skip
UNIT_PAIRS = [
    ("cm", "m"), ("hours", "minutes"), ("cm", "km"), ("dollars", "cents"), ("kg", "g"), ("feet", "inches"),
    ("m/s", "km/h"), ("mW", "MW"), ("MHz", "mHz"), ("degrees", "radians"), ("May", "June"),
    ("Monday", "Friday"), ("square cm", "cubic cm"), ("kJ", "J"), ("kJ", "joules"), ("volts", "amps"), ("Hz", "kHz"),
    ("cups", "tablespoons"), ("centuries", "years"), ("rupees", "dollars"), ("kWh", "Wh"), ("celsius", "fahrenheit"),
    ("kcal", "cal"), ("mmol", "mol"), ("nm", "km"), ("pence", "pounds"), ("percent", "degrees"), ("N m", "N"),
    ("sq in", "sq ft"), ("megawatts", "milliwatts"),
]  # fmt: skip


def near_misses() -> Iterator[tuple[str, str]]:
    """Pairs of a wrong answer and its reference."""
    yield from _numbers()
    yield from _bases_times_and_lists()
    yield from _equations_and_intervals()
    yield from _decimals_for_symbols()
    yield from _other_letters()
    yield from _percentages()
    yield from _rates()
    yield from _bare_arguments()
    yield from _marks_of_arc()
    yield from _inequalities()
    yield from _mathematics_in_type()
    yield from _more_than_a_constant()
    yield from _stuck_signs()
    yield from _odd_units()


HARMLESS_BEHIND = set("$.\\")
"""A sign of money or the border of a formula, a full stop; a backslash would keep the box open. Degrees are a unit."""
HARMLESS_BEFORE = set("$+.=\\")
"""Signs that change nothing or belong to the value, and an equals sign, which says no more than an arrow."""
OTHER_SIGNS = "±∓≈≤≥≠∼〜§¶†‡№©®™•¿¡«»‹›¨¯¸·°′″‴‰‱∴∵∝∘⊕⊗⌀☺✓✗→←↑↓"
MORE_BEHIND = (
    "!!", "..", "__", "^^", "**", "@@", "' '", "''", "_{}", "^{}", "^{ }", "_{ }", " #", " @", "\\#", "\\_", "\\&",
    "\\@", "\\'", "\\~", "\\^", "\\.", '\\"', "\\`", "\\|", "\\text{'}", "\\text{@}", "\\text{#}", "\\text{_}",
    "\\text{~}", "\\text{|}", "\\pm", "^\\prime",
)  # fmt: skip
MORE_BEFORE = (
    "--", "-−", "+-", "-+", "++", "- -", "~ ", "# ", "\\#", "\\~", "\\sim ", "\\text{~}", "\\text{#}", "\\pm ",
)  # fmt: skip


def _stuck_signs() -> Iterator[tuple[str, str]]:
    """Every sign of the keyboard and others, before a value and behind it: `5_`, `~5`, `5!`, `-−5`."""
    golds = ("5", "-4", "2.5", ".729", "2.45e6", "1,200", "\\frac{3}{4}", "\\sqrt{2}", "3\\pi", "x+4", "(1,2)")
    behind = [*(set(string.punctuation) - HARMLESS_BEHIND), *(set(OTHER_SIGNS) - set("°")), *MORE_BEHIND]
    before = [*(set(string.punctuation) - HARMLESS_BEFORE), *(set(OTHER_SIGNS) - set("→")), *MORE_BEFORE]
    for gold in golds:
        yield from ((gold + sign, gold) for sign in sorted(behind) if sign not in "{}")
        yield from ((sign + gold, gold) for sign in sorted(before) if sign not in "{}" and sign + gold != "--4")


def _odd_units() -> Iterator[tuple[str, str]]:
    """Two currencies, or one beside another unit, and units that are no unit together."""
    moneys = {"\\$": "dollars", "$": "dollars", "€": "euros", "£": "pounds", "¥": "yen"}
    for gold in ("5", "2.5", "\\frac{3}{4}", "13000"):
        for sign, own in moneys.items():
            for unit in ("dollars", "euros", "yen", "rupees", "kg", "cents", "hours", "apples", "degrees", "percent"):
                if unit != own:
                    yield f"{sign}{gold} {unit}", gold
                    yield f"{sign}{gold} \\text{{ {unit}}}", gold
            yield from ((f"{sign}{other}{gold}", gold) for other in moneys if moneys[other] != own)
            yield f"{sign}{gold}\\%", gold
        for pair in ("dollars euros", "kg dollars", "km kg", "hours apples dollars", "km miles"):
            yield f"{gold} \\text{{ {pair}}}", gold
        yield from ((f"{gold}{mark}", gold) for mark in ("'", "''", '"', "′", "″"))
    for number in ("13", "5"):
        yield f"{number} \\text{{ thousand euros}}", f"\\${number}000"
        yield f"\\${number} \\text{{ thousand euros}}", f"{number}000"


def _more_than_a_constant() -> Iterator[tuple[str, str]]:
    """Relations, dots and doubts beside a value are no value, whether it is a plain number or not."""
    for gold in ("90^\\circ", "8\\pi", "\\frac{\\sqrt{3}}{3}", "\\$18.90", "10,\\!080", "1+2i", "e^{2}"):
        for wrong in ("\\ne {}", "\\ge {}", "> {}", "{}\\ldots", "{}...", "{}\\text{{ or so}}", "{}?", "7 = {}"):
            yield wrong.format(gold), gold
    yield "0 = 15x - 80", "15x - 80"
    yield "7 = \\begin{pmatrix} 1 \\\\ 2 \\end{pmatrix}", "\\begin{pmatrix} 1 \\\\ 2 \\end{pmatrix}"


def _bare_arguments() -> Iterator[tuple[str, str]]:
    """TeX takes one digit as an argument: `2^10` is twice nothing, and `\\frac 1 23` is half of three."""
    for above, below in (("1", "23"), ("2", "35"), ("7", "10")):
        for command in ("\\frac", "\\dfrac", "\\tfrac"):
            yield f"{command} {above} {below}", f"\\frac{{{above}}}{{{below}}}"
            yield f"{command}{{{above}}}{below}", f"\\frac{{{above}}}{{{below}}}"
            yield f"-{command} {above}{below}", f"-\\frac{{{above}}}{{{below}}}"
    for base, exponent, value in (("2", "10", "1024"), ("3", "12", "531441"), ("x", "15", ""), ("\\pi", "24", "")):
        yield f"{base}^{exponent}", value or f"{base}^{{{exponent}}}"
        yield f"{base}^{exponent}", f"{base}^{{{exponent}}}"
    for radicand, value in (("12", "2\\sqrt{3}"), ("25", "5"), ("10", "\\sqrt{10}")):
        yield f"\\sqrt{radicand}", value
        yield f"\\sqrt {radicand}", value
    yield "1A3_16", "1A3_{16}"
    yield "a_12", "a_{12}"
    yield "\\binom 1 02", "\\binom{10}{2}"


def _mathematics_in_type() -> Iterator[tuple[str, str]]:
    """Letters and signs in roman or bold type are no units, and a set is no unit at all."""
    for gold in ("5", "3", "x+4", "x", "\\frac{1}{2}"):
        for more in IN_TYPE:
            yield gold + more, gold
            yield gold, gold + more
    yield from (("7^{\\mathrm{T}}", "7"), ("\\{1,\\ldots,2\\}", "\\{1,2\\}"), ("1-5", "1-5\\mathrm{i}"))


def _marks_of_arc() -> Iterator[tuple[str, str]]:
    """A mark behind a number is a unit."""
    degrees = ("90^\\circ", "90^{\\circ}", "90°", "90 \\text{ degrees}")
    marks = ("90'", "90''", "90^\\prime", "90^{\\prime\\prime}", '90"')
    yield from ((one, other) for pair in ((d, m) for d in degrees for m in marks) for one, other in (pair, pair[::-1]))
    yield from (("90'", "90''"), ("90''", "90'"), ("5'", "5 \\text{ inches}"), ("5''", "5 \\text{ feet}"))
    yield from (("50^\\circ 30'", "50^\\circ 31'"), ("50^\\circ 30''", "50^\\circ 30'"))


def _inequalities() -> Iterator[tuple[str, str]]:
    """An inequality for an interval with another border, another side or another end."""
    for gold, wrongs in {
        "[3,\\infty)": ("x>3", "x\\le3", "x\\ge4", "x\\ge-3", "3\\ge x", "x=3"),
        "(-\\infty,3]": ("x<3", "x\\ge3", "x\\le2"),
        "[1,2)": ("1<x<2", "1\\le x\\le2", "1\\le x<3", "x<2", "2\\le x<1"),
        "(-\\infty,1)\\cup(2,\\infty)": ("1<x<2", "x<1", "x\\ne1"),
    }.items():
        yield from ((wrong, gold) for wrong in wrongs)


def _numbers() -> Iterator[tuple[str, str]]:
    for gold in ("13", "7", "-4", "1,200", "2.5", "\\frac{3}{4}", "-\\frac{2}{7}", "\\sqrt{2}", "3\\pi"):
        for word in SCALE_WORDS + OTHER_WORDS:
            yield f"{gold} \\text{{ {word}}}", gold
            yield gold, f"{gold} \\text{{ {word}}}"
        for word in UNKNOWN_WORDS + WORDS_OF_OTHERS:
            yield f"{gold} \\text{{ {word}}}", gold
        for word in WORDS_OF_OTHERS:
            yield f"{gold} {word}", gold
        yield f"-{gold}" if not gold.startswith("-") else gold[1:], gold
        yield f"{gold} \\cdot 10", gold
        for wrong in (f"{gold}~6", f"{gold}^2", f"{gold}_2", f"{gold};1", f"{gold}:2", f"{gold}+1"):
            yield wrong, gold
    for one, other in (("thousand", "million"), ("million", "billion"), ("hundred", "dozen")):
        yield f"5 \\text{{ {one}}}", f"5 \\text{{ {other}}}"
    for wrong, gold in (
        ("12%", "1.2"),
        ("1.2", "12%"),
        ("120%", "12%"),
        ("1200", "12%"),
        ("5%", "0.5"),
        ("13%", "12%"),
    ):
        yield wrong, gold
        yield wrong.replace("%", "\\%"), gold.replace("%", "\\%")
    for gold, wrongs in {
        "-1./3": ("-1./4", "-2./3", "1./3"), "1.\\overline{3}": ("1.\\overline{4}", "1", "1.\\overline{34}"),
        "0.\\overline{27}": ("0.\\overline{28}", "0"),
        "2\\frac{1}{3}": ("2\\frac{1}{4}", "3\\frac{1}{3}", "\\frac{2}{3}"),
        "\\$2.50": ("\\$2.60", "2.50 \\text{ cents}", "\\$250", "\\$2.5 \\text{ million}"),
        "3.2 \\times 10^5": ("3.2 \\times 10^6", "3.3 \\times 10^5", "3.2 \\times 10^{-5}"),
    }.items():  # fmt: skip
        yield from ((wrong, gold) for wrong in wrongs)
    for one, other in UNIT_PAIRS:
        for number in ("5", "\\frac{2}{3}", "2\\sqrt{3}"):
            yield f"{number} \\text{{ {one}}}", f"{number} \\text{{ {other}}}"
            yield f"{number} \\text{{ {other}}}", f"{number} \\text{{ {one}}}"
    for one, other in (
        ("\\text{ cm}^2", "\\text{ cm}^3"),
        ("\\text{ m}^2", "\\text{ cm}^2"),
        ("\\text{ m}", "\\text{ m}^2"),
    ):
        yield f"15{one}", f"15{other}"
    yield "5 \\text{ ft } 4\\text{ in}", "5 \\text{ ft } 3\\text{ in}"
    yield "3 \\text{ h } 20 \\text{ min}", "3 \\text{ h } 25 \\text{ min}"


def _bases_times_and_lists() -> Iterator[tuple[str, str]]:
    for gold in ("204_5", "1011_2", "2516_8", "1A3_{16}", "204_{\\text{five}}"):
        digits = gold.partition("_")[0]
        for wrong in (f"{digits}_7", f"{digits}_{{9}}", f"{digits}_{{10}}", f"1{gold}", f"{digits}_{{\\text{{six}}}}"):
            yield wrong, gold
        yield f"{digits} \\text{{ (base 7)}}", gold
    yield from ((f"204_{base}", "204") for base in (5, 6, 8))
    for gold, wrongs in {
        "11:45": ("11:46", "10:45", "11:54", "11", "11:45:30", "12:45"), "11:15": ("22:30", "11:05"),
        "11:45 \\text{ a.m.}": ("11:45 \\text{ p.m.}", "11:46 \\text{ a.m.}", "23:45"),
        "11:45 p.m.": ("11:46 p.m.", "11:45 a.m."), "22:15": ("10:15 a.m.", "22:16"), "9:03:36 a.m.": ("9:03:37 a.m.",),
        "3:4": ("4:3", "3:5", "3"), "1:2:3": ("1:2:4", "1:3:2"),
        "24 December 2014": ("25 December 2014", "24 December 2015"),
        "12\\text{ May}": ("13\\text{ May}", "12\\text{ June}"), "2014-12-24": ("2014-12-25", "2014-11-24"),
        "12/24/2014": ("12/25/2014", "12/24/2015"),
        "11:55 p.m. on 24 December 2014.": ("11:55 p.m. on 25 December 2014.",),
        "1;$\\frac{8}{9}$": ("2;$\\frac{8}{9}$", "1;$\\frac{7}{9}$", "$\\frac{8}{9}$", "$\\frac{8}{9}$;1"),
        "$(3,0)$;$\\sqrt{3}$": ("$(3,1)$;$\\sqrt{3}$", "$(3,0)$;$\\sqrt{2}$", "$\\sqrt{3}$"),
        "24;112": ("24;113", "25;112", "112;24", "24", "24,112"), "$a;\\sqrt{2}$": ("$b;\\sqrt{2}$",),
        "1,2": ("1,3", "1,2,3", "1,2,2", "1", "2"), "(1,2)": ("(2,1)", "(1,3)", "[1,2]", "\\{1,2\\}", "(1,2,3)"),
        "(1,2,3)": ("(1,3,2)", "(1,2)", "(1,2,4)"), "\\{1,2\\}": ("\\{1,3\\}", "(1,2)", "\\{1\\}"),
        "tip: $20/11$, length: $9/11$": ("tip: $21/11$, length: $9/11$", "$9/11$", "tip: $20/11$, length: $8/11$"),
        "$d=5$, $M=(1,2)$": ("$d=6$, $M=(1,2)$", "$d=5$, $M=(1,3)$"),
    }.items():  # fmt: skip
        yield from ((wrong, gold) for wrong in wrongs)


def _equations_and_intervals() -> Iterator[tuple[str, str]]:
    for gold, wrongs in {
        "=3": ("=4", "4", "=-3"), "x=3": ("x=4", "y=3", "6=3", "4", "x=-3", "x=3 \\text{ thousand}"),
        "3": ("x=4", "4=3"),
        "\\log_2(32)=5": ("\\log_2(64)=5", "\\log_2(32)=6", "2+2=5"), "y=2x+1": ("y=2x+2", "y=3x+1", "x=2y+1"),
        "x+y=3": ("x+y=4", "x-y=3"), "x^{2}-7=0": ("x^{2}-8=0", "x^{3}-7=0", "x^2-7=1"), "x=-2,5": ("x=-2,6", "x=2,5"),
        "x=1,y=2": ("x=2,y=1", "x=1,y=3"), "[1,2)": ("(1,2]", "[1,2]", "(1,2)", "[1,3)", "[2,1)"),
        "(-\\infty,3)": ("(-\\infty,3]", "(3,\\infty)", "(-\\infty,4)"), "x<3": ("x \\le 3", "x>3", "x<4"),
        "1<x<2": ("1<x\\le 2", "[1,2]", "1<x<3"), "(-1,0) \\cup (1,\\infty)": ("(-1,0) \\cup [1,\\infty)", "(-1,0)"),
    }.items():  # fmt: skip
        yield from ((wrong, gold) for wrong in wrongs)


def _decimals_for_symbols() -> Iterator[tuple[str, str]]:
    """However many digits a decimal has, it is not the number that it approximates."""
    symbols = {
        "\\pi": "3.141592653589793238462643", "e": "2.718281828459045235360287",
        "\\sqrt{2}": "1.414213562373095048801689",
        "\\frac{1}{3}": "0.333333333333333333333333", "\\frac{22}{7}": "3.142857142857142857142857",
        "\\ln 2": "0.693147180559945309417232", "\\frac{\\sqrt{3}}{2}": "0.866025403784438646763723",
        "2\\pi": "6.283185307179586476925287", "\\log_2 3": "1.584962500721156181453739",
    }  # fmt: skip
    for symbol, decimal in symbols.items():
        for digits in (3, 6, 8, 10, 14, 17, 20, 26):
            yield decimal[:digits], symbol
        for gold, answer in ((f"({symbol}, 1)", f"({decimal[:12]}, 1)"), (f"x={symbol}", f"x={decimal[:12]}"),
                             (f"[0, {symbol}]", f"[0, {decimal[:12]}]"), (f"{symbol}\\text{{ cm}}", decimal[:12]),
                             (symbol, f"{decimal[:12]}\\text{{ cm}}"),
                             (f"\\{{1, {symbol}\\}}", f"\\{{1, {decimal[:12]}\\}}"),
                             (f"-{symbol}", f"-{decimal[:12]}")):  # fmt: skip
            yield answer, gold


def _other_letters() -> Iterator[tuple[str, str]]:
    """Small letters and capitals are different variables."""
    for gold in (
        "x",
        "x^2+1",
        "a+b",
        "ab",
        "\\frac{n}{2}",
        "\\sqrt{y}",
        "(a,b)",
        "y=2x+1",
        "2t",
        "\\sin x",
        "N",
        "2K+1",
    ):
        plain = gold.replace("\\frac", "#").replace("\\sqrt", "@").replace("\\sin", "&")
        yield plain.swapcase().replace("#", "\\frac").replace("@", "\\sqrt").replace("&", "\\sin"), gold


def _percentages() -> Iterator[tuple[str, str]]:
    """Where nobody asks for a percentage, a percent sign makes a hundredth."""
    for gold in ("10", "1", "2.5", "\\frac{3}{4}", "150", "-4", "\\sqrt{2}", "2\\pi", "1,2", "(1,2)"):
        yield f"{gold}\\%", gold
        yield f"{gold}%", gold
        for words in (
            " \\text{ percent}",
            "\\text{ percent}.",
            " percent.",
            " \\text{ percent of the total}",
            " \\text{ cents}",
        ):
            yield f"{gold}{words}", gold


def _rates() -> Iterator[tuple[str, str]]:
    """One unit by another is neither of them, nor their product."""
    for number in ("5", "\\frac{2}{3}", "2\\sqrt{3}"):
        for above, below in (("m", "s"), ("km", "h"), ("miles", "hour"), ("g", "ml"), ("feet", "second"), ("m", "s^2")):
            gold = f"{number} \\text{{ {above}/{below}}}"
            for wrong in (
                f"\\text{{ {above}}}",
                f"\\text{{ {below.partition('^')[0]}}}",
                f"\\text{{ {above} {below}}}",
                above,
            ):
                yield f"{number} {wrong}", gold
            yield f"{number} \\text{{ {above} per {below}}}", f"{number} \\text{{ {above}}}"
            for upside_down in (f"\\text{{ {below}/{above}}}", f"\\frac{{\\text{{{below}}}}}{{\\text{{{above}}}}}"):
                yield f"{number} {upside_down}", gold
            yield f"{number} \\text{{ {below} per {above}}}", f"{number} \\text{{ {above} per {below}}}"
    for wrong, gold in (("\\text{ 1/s}", "\\text{ s}"), ("gallons per mile", "\\text{ miles per gallon}"),
                        ("\\text{ m}^{-1}\\text{ s}", "\\text{ m s}^{-1}"), ("in.", "\\text{ square inches}"),
                        ("in^3", "\\text{ square inches}")):  # fmt: skip
        yield f"30 {wrong}", f"30 {gold}"
    for wrong, gold in (("x=6=5", "x=5"), ("x=5=6", "x=5"), ("x=6=5", "5"), ("5=6=5", "5"), ("x=5=4+2", "x=5"),
                        ("13=12", "12"), ("1+1=3=2", "2"), ("y=\\sqrt{4}=3", "y=3"),
                        ("f(x)=3=2", "f(x)=2")):  # fmt: skip
        yield wrong, gold


@needs_math_verify
@pytest.mark.slow
def test_cents_are_hundredths_unless_the_question_speaks_of_coins() -> None:
    pairs = [("5 \\text{ cents}", "5"), ("5¢", "5")]
    assert verdicts(pairs, "How much does it cost?") == [False, False]
    assert verdicts([("5 \\text{ cents}", "5")], "How much are five pennies?") == [True]


def verdicts(pairs: list[tuple[str, str]], question: str = "") -> list[bool | None]:
    problems = [Problem("p", "math", "math", question, {"answer": gold, "choices": 0}) for _, gold in pairs]
    texts = [f"\\boxed{{{answer}}}" for answer, _ in pairs]
    return [verdict.correct for verdict in Mathematics().verify_many(list(zip(problems, texts, strict=True)))]


@pytest.mark.long
@needs_math_verify
@pytest.mark.slow
def test_no_near_miss_is_accepted() -> None:
    pairs = list(dict.fromkeys(near_misses()))
    assert len(pairs) >= 500
    accepted = [pair for pair, correct in zip(pairs, verdicts(pairs), strict=True) if correct]
    assert accepted == []


@needs_math_verify
@pytest.mark.slow
def test_equivalent_spellings_are_accepted() -> None:
    pairs = [(answer, gold) for gold, answer in EQUIVALENT]
    refused = [pair for pair, correct in zip(pairs, verdicts(pairs), strict=True) if not correct]
    assert refused == []


@pytest.mark.parametrize(("question", "right"), [("What percent is it?", True), ("In %?", True), ("How many?", False)])
def test_a_percent_sign_is_no_part_of_the_value_where_percentages_are_asked_for(question: str, right: bool) -> None:
    pairs = [("12\\%", "12"), ("2.5 %", "2.5"), ("\\frac{1}{2}\\%", "\\frac{1}{2}")]
    assert verdicts(pairs, question) == [right] * 3
