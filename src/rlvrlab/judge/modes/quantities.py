r"""What the words, units, bases and clocks beside a number say about its value. math-verify drops them unread.

differ("13 \\text{ thousand}", "13") = True      differ("3 \\text{ hours}", "3 \\text{ minutes}") = True
differ("204_6", "204_5") = True                  differ("5 \\text{ cm}", "5") = None: more must be known
"""

from __future__ import annotations

import re
from collections import Counter
from fractions import Fraction

from rlvrlab.judge.modes.characters import lacks_something, unread
from rlvrlab.judge.modes.expressions import latex_number, number
from rlvrlab.judge.modes.fonts import WRAPPED
from rlvrlab.judge.modes.measures import LONGEST_PRODUCT, has_odd_unit, is_marked, other_units, units, unwrapped
from rlvrlab.judge.modes.strays import RELATION, strays
from rlvrlab.judge.modes.units import is_unit
from rlvrlab.judge.modes.words import says_otherwise

LONGEST_ANSWER = 4000
"""Characters; what is longer is not read."""
COMMAND = re.compile(r"\\[a-zA-Z]+")
WORD = re.compile(r"[a-zA-Z]+")
SCALES = {
    "hundred": 10**2, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12, "dozen": 12,
    "lakh": 10**5, "crore": 10**7,
}  # fmt: skip
SCALED = re.compile(rf"(.*?[0-9.])\s*((?:\b(?:{'|'.join(SCALES)})s?\b\s*)+)([a-zA-Z\s.]*)", re.IGNORECASE)
CHANGING = re.compile(
    rf"\b(?:(?:{'|'.join(SCALES)})s?|tens|hal(?:f|ves)|(?:a|one|three) quarters?"
    r"|(?:third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|hundredth|thousandth|millionth|billionth)s?"
    r"|negative|minus|below zero|at least|at most|or (?:more|less|fewer|above|below)|(?:more|less|fewer|greater) than"
    r"|about|approximately|roughly|nearly|almost|maybe|perhaps|possibly|probably|false"
    r"|twice|doubled|tripled|factorial|reciprocal|inverse|opposite)\b|(?<=[0-9})])\s{0,9}(?:squared|cubed|gross|score)\b|‰",
    re.IGNORECASE,
)
"""Words that make another value of the number beside them."""
_MORE = (
    r"[<>?]|\\(?:neq?|not|leq?|geq?|lt|gt|ll|gg|propto)(?![a-zA-Z])"
    r"|(?:[-+*/^]|\\(?:times|cdot|div|pm|[lc]?dots)|\.\.)\s*$"
    r"|(?<![\w.])0[xXbBoO][0-9a-fA-F]+|\^\s{0,9}\{?\s{0,9}[-+*]\s{0,9}(?:\}|$)"
    r"|(?<!\w)(?:no|not|never|wrong|incorrect|invalid|untrue|or so)(?!\w)"
)
SAYS_MORE, SAYS_MORE_OR_ROUNDS = re.compile(_MORE), re.compile(rf"{_MORE}|\\(?:approx|sim|simeq)(?![a-zA-Z])")
"""What makes more or less of a value: a relation that is no equality, a question mark, a sign with nothing behind it, a
prefix that names another base, a word that takes it back. Behind an exact value that is no plain number, decimals may
follow."""
INEQUALITY = re.compile(r"[<>]|\\(?:lt|gt|leq?|geq?|leqslant|geqslant|neq?|infty)(?![a-zA-Z])")
RELATED = re.compile(r"[=,;:\[\]]|\\(?:in|cup|cap|pm|mp|text|infty)(?![a-zA-Z])")
"""In golds that are no single value."""
LETTERS_OF_NUMBERS = {"e", "i"}
CUT_SHORT = r"(k|K|M|B|[mb]ln?|[bm]n|tn|Mio\.?|Mrd\.?)"
ABBREVIATED = re.compile(
    WRAPPED.pattern.replace("([^{}]*)", rf"\s*{CUT_SHORT}\s*") + rf"|\\rm\s+{CUT_SHORT}(?![a-zA-Z])"
)
"""A scale that is cut short, behind a number: `2 \\text{ bn}`. Gold must name those that are units."""
COUNTED = {
    "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11,
    "twelve": 12, "sixteen": 16,
}  # fmt: skip
BASED = re.compile(
    r"([0-9][0-9A-F]*|[A-F][0-9A-F]+)\s*(?:_\s*\{?\s*(?:base\s*)?|[\s(]*base\s*)"
    rf"([0-9]{{1,2}}|{'|'.join(COUNTED)})[\s)}}]*",
    re.ASCII,
)
CLOCK = re.compile(r"([0-9]{1,2}):([0-9]{2})(?::([0-9]{2}))?\s*([ap]m)?", re.ASCII | re.IGNORECASE)
CONSTANT = re.compile(r"\+\s*[cCkK]\s*\$?\s*$|(?<![a-zA-Z])[cC](?=\s*_)")
"""Of an integral: the last summand, or one with an index."""
SCIENTIFIC = re.compile(r"(?<=[0-9])[eE](?=[+-]?[0-9])", re.ASCII)
"""The E of `1E5`, which may be small."""
ROUGHLY = re.compile(r"\s{0,9}[a-zA-Z]\w{0,9}\s{0,9}\\approx(?![a-zA-Z])")
"""A name that is said to be nearly something: `x \\approx 3`. Behind an exact value decimals may follow it."""
PRIMED = re.compile(
    r"([a-zA-Z)\]}])\s{0,9}('{1,9}(?!s\b)|\^\s{0,9}(?:\\prime(?![a-zA-Z])|\{(?:\s{0,9}\\prime(?![a-zA-Z])){1,9}\s{0,9}\}))"
)
"""A derivative or another point of the same name: `f'(x)`, `y^{\\prime}`, `A'`."""
TRIGONOMETRIC = re.compile(r"\\(?:sin|cos|tan|cot|sec|csc)(?![a-zA-Z])")
"""Of 30 degrees it is another number than of 30; anywhere else a sign of degrees may be left out."""


def differ(answer: str, gold: str) -> bool | None:
    """Whether what stands beside the numbers makes the two different; False: the same for certain, None: who knows."""
    if max(len(answer), len(gold)) > LONGEST_ANSWER:
        return None
    one, other = unwrapped(answer), unwrapped(gold)
    scales = [{wrapped or roman for wrapped, roman in ABBREVIATED.findall(text)} for text in (answer, gold)]
    if unread(answer) != unread(gold) or scales[0] - scales[1]:
        return True
    for read in (_in_base, _on_the_clock, _as_ratios):
        decided = read(one, other)
        if decided is not None:
            return decided
    if scaled(gold) is not None and (SAYS_MORE_OR_ROUNDS.search(one) or lacks_something(one)):
        return True
    if _is_constant(other) and SAYS_MORE.search(one) and not SAYS_MORE.search(other):
        return True
    if _says_a_number_is(one, other):
        return True
    if says_otherwise(answer, gold):
        return True
    if ROUGHLY.match(one) and "\\approx" not in other:
        return True
    if scaled(answer) is None or scaled(gold) is None:
        words = [Counter(word.lower().rstrip("s") for word in CHANGING.findall(text)) for text in (one, other)]
        if words[0] != words[1]:
            return True
    degrees = ["degree" in {unit for unit, _ in units(text)} for text in (answer, gold)]
    if degrees[0] != degrees[1] and TRIGONOMETRIC.search(one) and TRIGONOMETRIC.search(other):
        return True
    if other_units(answer, gold) or _other_case(answer, gold):
        return True
    if _primed(answer, gold) != _primed(gold, answer):
        return True
    if {_brackets(one), _brackets(other)} in ({"()", "{}"}, {"()", "[]"}):
        return True
    lists = [[number(part) for part in text.split(",")] for text in (one, other)]
    return True if None not in lists[0] + lists[1] and Counter(lists[0]) != Counter(lists[1]) else None


def is_stuck(answer: str, gold: str) -> bool:
    """Does a sign or a unit stick to the answer that may make another value of it: `5_`, `~5`, `5'`, `$5 euros`?"""
    stuck = strays(answer) - strays(gold)
    if stuck.keys() - {RELATION} or (stuck and not INEQUALITY.search(gold)):
        return True
    if units(gold, sure=False):
        return False
    return is_marked(answer) or (_is_constant(unwrapped(gold)) and has_odd_unit(answer))


def _is_constant(text: str) -> bool:
    """Is it one value, made of numbers, roots, degrees and the like?"""
    letters = set(WORD.findall(COMMAND.sub(" ", text)))
    return not RELATED.search(text) and all(set(word) <= LETTERS_OF_NUMBERS for word in letters)


def _says_a_number_is(answer: str, gold: str) -> bool:
    """Does an answer say that another number equals it? `7 = 1 + 2i`, beside a gold answer that says no equation."""
    left, equals, _ = answer.partition("=")
    value = number(left) if equals and "=" not in gold else None
    return value is not None and value != scaled(gold)


def scaled(text: str) -> Fraction | None:
    """The value of a number that may have scale words behind it: `13 thousand dollars` is 13000."""
    text = unwrapped(text).replace("{,}", ",")
    match = SCALED.fullmatch(text)
    if not match:
        return latex_number(text)
    value = number(match.group(1).removeprefix("\\$").removeprefix("$"))
    if value is None or not all(map(is_unit, WORD.findall(match.group(3)))):
        return None
    for word in WORD.findall(match.group(2)):
        value *= SCALES[word.lower().removesuffix("s")]
    return value


def _in_base(answer: str, gold: str) -> bool | None:
    """Digits and base must be the same; an answer may leave the base out that gold names, not the other way round."""
    one, other = (_based(text) for text in (answer, gold))
    if not one and not other:
        return None
    digits, base = _digits_and_base(answer, one)
    expected, expected_base = _digits_and_base(gold, other)
    if not (digits.isalnum() and expected.isalnum()):
        return None
    return digits != expected or (base != expected_base and base is not None and (expected_base or 10) != base)


def _based(text: str) -> re.Match[str] | None:
    """Digits with their base, each of them less than it: `204_5`, but not the segment `BD_1`."""
    match = BASED.fullmatch(text)
    base = _digits_and_base(text, match)[1] or 0
    return match if match and all(int(digit, 36) < base for digit in match.group(1)) else None


def _digits_and_base(text: str, match: re.Match[str] | None) -> tuple[str, int | None]:
    digits, base = match.groups() if match else (text, "")
    digits = digits.upper().lstrip("0") or "0"
    return digits, (int(base) if base.isdigit() else COUNTED[base]) if base else None


def _on_the_clock(answer: str, gold: str) -> bool | None:
    """Times of day; `p.m.` counts where both say so or one is written with 24 hours."""
    matches = CLOCK.fullmatch(answer), CLOCK.fullmatch(gold)
    if not matches[0] or not matches[1]:
        return None
    faces, times = [], []
    for match in matches:
        hour, *rest = (int(part or 0) for part in match.groups()[:3])  # type: ignore[union-attr]
        half = (match.group(4) or "").lower()  # type: ignore[union-attr]
        faces.append((hour, *rest))
        times.append((hour % 12 + 12 * (half == "pm") if half else hour, *rest))
    marked = [match.group(4) is not None for match in matches if match]
    return not (times[0] == times[1] or (marked[0] != marked[1] and faces[0] == faces[1]))


def _as_ratios(answer: str, gold: str) -> bool | None:
    """Ratios such as 1:2:3 are the same where their terms are proportional; one of three or more is no number."""
    one, other = ([number(term) for term in text.split(":")] for text in (answer, gold))
    fewest, most = sorted((len(one), len(other)))
    if (fewest < 2 and most < 3) or not all(one) or not all(other):
        return None
    factors = {a / b for a, b in zip(one, other, strict=False) if a and b}
    return len(one) != len(other) or len(factors) != 1


def _other_case(answer: str, gold: str) -> bool:
    """Does a variable stand in one as a small letter and in the other as a capital? math-verify makes all small.

    Longer words are names, in which it does not matter; nor does it for the constant of an integral.
    """
    letters = []
    for text in (answer, gold):
        greek = {command[1:] for command in COMMAND.findall(text)}
        plain = CONSTANT.sub("", SCIENTIFIC.sub(" ", COMMAND.sub(" ", WRAPPED.sub(" ", text))))
        letters.append(greek | {sign for word in WORD.findall(plain) if len(word) <= LONGEST_PRODUCT for sign in word})
    one, other = letters
    return any(name not in other and name[0].swapcase() + name[1:] in other for name in one)


def _primed(text: str, beside: str) -> set[tuple[str, int]]:
    """What is marked with primes, and with how many: `f''` is not `f'`, but math-verify reads neither.

    A name before what it equals does not count where the other text has none.
    """
    text = WRAPPED.sub(" ", text if "=" in beside else text.rpartition("=")[2])
    return {(name, marks.count("'") + marks.count("prime")) for name, marks in PRIMED.findall(text)}


def _brackets(text: str) -> str:
    """The pair of brackets around a list, `()` or `{}`, or nothing; `[]` around two values, which are an interval."""
    text = text.replace("\\left", "").replace("\\right", "").replace(" ", "")
    if "," not in text:
        return ""
    if text.startswith("(") and text.endswith(")") and text.count("(") == 1:
        return "()"
    if text.startswith("[") and text.endswith("]") and text.count("[") == text.count(",") == 1:
        return "[]"
    return "{}" if text.startswith("\\{") and text.endswith("\\}") and text.count("\\{") == 1 else ""
