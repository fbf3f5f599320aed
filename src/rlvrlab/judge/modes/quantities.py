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

LONGEST_ANSWER = 4000
"""Characters; what is longer is not read."""
WRAPPED = re.compile(r"\\(?:text|textbf|textit|textrm|mathrm|mathbf|mbox|operatorname)\s*\{([^{}]*)\}")
COMMAND = re.compile(r"\\[a-zA-Z]+")
WORD = re.compile(r"[a-zA-Z]+")
HALF_DAY = re.compile(r"\b([ap])\.?\s?m\b\.?", re.IGNORECASE)
COLON = re.compile(r"\{:\}|\\colon(?![a-zA-Z])")
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
SAYS_MORE = re.compile(
    r"[<>?]|\\(?:neq?|not|leq?|geq?|lt|gt|ll|gg|approx|sim|simeq|propto)(?![a-zA-Z])"
    r"|(?:[-+*/^]|\\(?:times|cdot|div|pm|[lc]?dots)|\.\.)\s*$"
    r"|(?<![\w.])0[xXbBoO][0-9a-fA-F]+|\^\s{0,9}\{?\s{0,9}[-+*]\s{0,9}(?:\}|$)"
    r"|(?<!\w)(?:no|not|never|wrong|incorrect|invalid|untrue|or so)(?!\w)"
)
"""What makes more or less of a number than its value: a relation that is no equality, a question mark, a sign with
nothing behind it, a prefix that names another base, a word that takes it back."""
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
POWER = re.compile(
    r"(square|sq|cubic|cu)\b\.?\s*([a-zA-Z]+)"
    r"|(?<![a-zA-Z])([a-zA-Z]{1,20})\s{0,9}(?:\^\s*\{?\s*([0-9])|(squared|cubed)\b)"
)
POWERS = {"square": 2, "sq": 2, "squared": 2, "cubic": 3, "cu": 3, "cubed": 3}
UNITS = {
    name: names.split()[0]
    for names in (
        "mm millimeter millimetre", "cm centimeter centimetre", "dm decimeter decimetre", "m meter metre",
        "km kilometer kilometre", "inch inches", "ft foot feet", "yd yard", "mi mile", "mg milligram", "g gram",
        "kg kilogram", "lb lbs pound", "oz ounce", "ton tonne", "ml milliliter millilitre", "l liter litre",
        "gal gallon", "ms millisecond", "second sec s", "minute min", "hour hr hrs h", "day", "week", "month",
        "year yr yrs", "cent", "dollar", "euro", "sterling", "yen", "degree deg", "arcminute", "arcsecond",
        "radian rad", "am", "pm", "january", "february", "march", "april", "may", "june", "july",
        "august", "september", "october", "november", "december", "monday", "tuesday", "wednesday", "thursday",
        "friday", "saturday", "sunday",
    )
    for name in names.split()
}  # fmt: skip
SIGNS = {
    "^\\circ": " degree ", "^{\\circ}": " degree ", "°": " degree ", "\\$": " dollar ", "€": " euro ",
    "£": " sterling ", "¥": " yen ", "¢": " cent ",
}  # fmt: skip
MARKED = re.compile(
    r"(?<![\w{.])([0-9]+(?:\.[0-9]+)?)\s{0,9}"
    r"(?:(''|\"|″)|['′]|\^\s{0,9}(?:\\prime(?![a-zA-Z])|\{\s{0,9}\\prime\s{0,9}(\\prime)?\s{0,9}\}))"
)
"""A number with marks behind it: minutes of arc or feet with one, seconds or inches with two."""
MARKS = {"arcminute": ("minute", "ft"), "arcsecond": ("second", "inch")}
"""What a mark may stand for where the other text says it in words."""
MONEY = {("dollar", 1), ("euro", 1)}
PER = ("per", 1)
DIVIDED = re.compile(r"[a-zA-Z]\.?\s*(?:/|\bper\b)\s*[a-zA-Z]|[a-zA-Z]\s*\^\s*\{?\s*-\s*[0-9]")
"""One unit by another: `m/s`, `miles per hour`, `m s^{-1}`."""
CONSTANT = re.compile(r"\+\s*[cCkK]\s*\$?\s*$|(?<![a-zA-Z])[cC](?=\s*_)")
"""Of an integral: the last summand, or one with an index."""
SCIENTIFIC = re.compile(r"(?<=[0-9])[eE](?=[+-]?[0-9])", re.ASCII)
"""The E of `1E5`, which may be small."""
PREFIXED = re.compile(r"(?<![a-zA-Z\\])([mM])(W|V|A|J|N|T|Hz|Pa|eV)h?(?![a-zA-Z])")
"""Units that are a billion times larger with a capital: `mW`, `MW`."""
ROUGHLY = re.compile(r"\s{0,9}[a-zA-Z]\w{0,9}\s{0,9}\\approx(?![a-zA-Z])")
"""A name that is said to be nearly something: `x \\approx 3`. Behind an exact value decimals may follow it."""
PRIMED = re.compile(
    r"([a-zA-Z)\]}])\s{0,9}('{1,9}(?!s\b)|\^\s{0,9}(?:\\prime(?![a-zA-Z])|\{(?:\s{0,9}\\prime(?![a-zA-Z])){1,9}\s{0,9}\}))"
)
"""A derivative or another point of the same name: `f'(x)`, `y^{\\prime}`, `A'`."""
LONGEST_PRODUCT = 2
"""Letters in a row that are taken for variables; three may be a word."""
TRIGONOMETRIC = re.compile(r"\\(?:sin|cos|tan|cot|sec|csc)(?![a-zA-Z])")
"""Of 30 degrees it is another number than of 30; anywhere else a sign of degrees may be left out."""
RATES = {"mph": ("mi", "hour"), "kph": ("km", "hour"), "kmh": ("km", "hour")}


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
    if scaled(gold) is not None and (SAYS_MORE.search(one) or lacks_something(one)):
        return True
    if ROUGHLY.match(one) and "\\approx" not in other:
        return True
    if scaled(answer) is None or scaled(gold) is None:
        words = [Counter(word.lower().rstrip("s") for word in CHANGING.findall(text)) for text in (one, other)]
        if words[0] != words[1]:
            return True
    degrees = ["degree" in {unit for unit, _ in _units(text, 2)} for text in (answer, gold)]
    if degrees[0] != degrees[1] and TRIGONOMETRIC.search(one) and TRIGONOMETRIC.search(other):
        return True
    prefixed = [set(PREFIXED.findall(text)) for text in (one, other)]
    if all(prefixed) and prefixed[0] != prefixed[1]:
        return True
    if _other_units(answer, gold) or _other_case(answer, gold):
        return True
    if _primed(answer, gold) != _primed(gold, answer):
        return True
    if {_brackets(one), _brackets(other)} == {"()", "{}"}:
        return True
    lists = [[number(part) for part in text.split(",")] for text in (one, other)]
    return True if None not in lists[0] + lists[1] and Counter(lists[0]) != Counter(lists[1]) else None


def unwrapped(text: str) -> str:
    r"""Without dollars around it and with the words of `\text{…}` in plain sight."""
    text = WRAPPED.sub(r" \1 ", text.strip().strip("$")).replace("~", " ")
    return HALF_DAY.sub(r"\1m", COLON.sub(":", text)).strip()


def scaled(text: str) -> Fraction | None:
    """The value of a number that may have scale words behind it: `13 thousand dollars` is 13000."""
    text = unwrapped(text).replace("{,}", ",")
    match = SCALED.fullmatch(text)
    if not match:
        return latex_number(text)
    value = number(match.group(1).removeprefix("\\$").removeprefix("$"))
    if value is None or CHANGING.search(match.group(3)):
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


def _other_units(answer: str, gold: str) -> bool:
    """Do both name units, and not the same ones? A sign of money may stand for all of `dollars per hour`."""
    marked = bool(_units(answer, 2) or _units(gold, 2))
    one, other = (_units(text, 1 if marked else 2) for text in (answer, gold))
    one, other = _spelled_out(one, other), _spelled_out(other, one)
    return bool(one and other) and one != other and not (one <= other and one <= MONEY)


def _spelled_out(units: set[tuple[str, int]], beside: set[tuple[str, int]]) -> set[tuple[str, int]]:
    """The units with marks as what the other text calls them."""
    return {
        (next((name for name in MARKS.get(unit, ()) if (name, power) in beside), unit), power) for unit, power in units
    }


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


def _units(text: str, shortest_outside: int) -> set[tuple[str, int]]:
    """Known units with their powers, and PER where one is divided by another.

    Inside `\\text{…}` a single letter is a unit; elsewhere it may be a variable, and only those of a length count.
    """
    text = MARKED.sub(lambda found: f"{found[1]} {'arcsecond' if found[2] or found[3] else 'arcminute'} ", text)
    text = HALF_DAY.sub(r"\1m", text)
    for sign, name in SIGNS.items():
        text = text.replace(sign, name)
    inside = " ".join(
        f"{words}{power}" for words, power in re.findall(WRAPPED.pattern + r"\s*(\^\s*\{?\s*[0-9])?", text)
    )
    outside = COMMAND.sub(" ", WRAPPED.sub(" ", text))
    units = set()
    for part, shortest in ((inside, 1), (outside, shortest_outside)):
        powers = {}
        for before, unit, base, exponent, after in POWER.findall(part):
            powers[unit or base] = int(exponent) if exponent else POWERS[before or after]
        for word in WORD.findall(part):
            name = word.lower()
            for unit in RATES.get(name, (UNITS.get(name) or UNITS.get(name.removesuffix("s")),)):
                if unit and len(word) >= shortest:
                    units.add((unit, powers.get(word, 1)))
            if name in RATES:
                units.add(PER)
    return units | {PER} if units and DIVIDED.search(unwrapped(text)) else units


def _primed(text: str, beside: str) -> set[tuple[str, int]]:
    """What is marked with primes, and with how many: `f''` is not `f'`, but math-verify reads neither.

    A name before what it equals does not count where the other text has none.
    """
    text = WRAPPED.sub(" ", text if "=" in beside else text.rpartition("=")[2])
    return {(name, marks.count("'") + marks.count("prime")) for name, marks in PRIMED.findall(text)}


def _brackets(text: str) -> str:
    """The pair of brackets around a list, `()` or `{}`, or nothing."""
    text = text.replace("\\left", "").replace("\\right", "").replace(" ", "")
    if "," not in text:
        return ""
    if text.startswith("(") and text.endswith(")") and text.count("(") == 1:
        return "()"
    return "{}" if text.startswith("\\{") and text.endswith("\\}") and text.count("\\{") == 1 else ""
