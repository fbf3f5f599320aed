r"""Words behind a number that may make another value of it.

says_otherwise("5 \\text{ twelfths}", "5") = True     says_otherwise("5 \\text{ widgets}", "5 \\text{ widgets}") = False

A list of words that change a value is never complete (`quadrillion`, `cubed`, `negated`, `nope`), so what is known is
the opposite: the units and things that are counted of units.py. A word of the right answer itself is always allowed.
"""

from __future__ import annotations

import re

from rlvrlab.judge.modes.fonts import WRAPPED
from rlvrlab.judge.modes.units import is_unit

_BETWEEN = """
a an the is are answer and or of so thus there only exactly total
"""
BETWEEN = frozenset(_BETWEEN.split())
"""Words of a sentence around an answer."""
LAYOUT = re.compile(r"\\(?:begin|end)\s{0,9}\{[^{}]*\}(?:\s{0,9}\{[lcr|\s]*\})?|\\[a-zA-Z]+")
FUNCTION = re.compile(
    r"(?<![a-zA-Z\\])(?:(?:arc)?(?:sin|cos|tan)|cot|sec|csc|log|ln|exp|sqrt|gcd|lcm|max|min)(?=\s{0,9}[({^_\\0-9a-z])"
    r"|(?<![a-zA-Z\\])(?:pi|inf|infty|infinity|theta|alpha|beta|gamma|lambda|phi|omega)(?![a-zA-Z])"
)
"""Functions and Greek letters that are written without a backslash."""
LETTERS = re.compile(r"[a-zA-Z]+")
WORD = re.compile(r"[^\W\d_]{2,}|[^\W\d_a-zA-Z]")
"""Of any script, in which a single letter may be one: `5천` is five thousand."""
ROMAN = re.compile(
    r"\\(?:operatorname|mathrm)\s{0,9}\{\s{0,9}((?:arc)?(?:sin|cos|tan)|cot|sec|csc|log|ln|exp|gcd|lcm|max|min)\s{0,9}\}"
)
"""Functions in roman letters: `\\mathrm{lcm}(4, 6)`."""
BEFORE_A_UNIT = re.compile(r"\b(?:square|cubic|sq|cu|per)\b\.?(?=\s{0,9}[a-zA-Z])")
LENGTH_TO_A_POWER = re.compile(
    r"\b((?:m|mm|cm|dm|km|in|inch(?:es)?|ft|foot|feet|yards?|miles?|units?|(?:milli|centi|deci|kilo)?met(?:er|re)s?"
    r"|s|sec(?:ond)?s?))\s{1,9}(?:squared|cubed)\b"
)
"""Behind a number these words make another value of it, behind a length another unit."""
HALF_DAY = re.compile(r"\b([ap])\.\s?m\b\.?", re.IGNORECASE)


def says_otherwise(answer: str, gold: str) -> bool:
    """Is there a word in the answer that is neither gold's nor a unit, so that it may make another value of it?

    Outside `\\text{…}` letters may be variables: where gold has letters, words that are made of them are no words.
    """
    wrapped, plain = _words(answer)
    known_wrapped, known_plain = _words(gold)
    known = {_stem(word) for word in known_wrapped | known_plain}
    letters = set(LAYOUT.sub(" ", gold).lower())
    strange = wrapped | {word for word in plain if not set(word) <= letters}
    return any(_stem(word) not in known and word not in BETWEEN and not is_unit(word) for word in strange)


def says_nothing(sentence: str) -> bool:
    """Are these only words around an answer, none of which joins two? `The answer is`."""
    words = {word.lower() for word in WORD.findall(sentence)}
    return bool(words) and words <= BETWEEN - {"and", "or"}


def _words(text: str) -> tuple[set[str], set[str]]:
    """The words of two and more letters inside `\\text{…}` and outside of it."""
    text = LENGTH_TO_A_POWER.sub(r"\1", text)
    text = BEFORE_A_UNIT.sub(" ", ROMAN.sub(r" \\\1 ", HALF_DAY.sub(r"\1m", text)))
    wrapped = " ".join(WRAPPED.findall(text))
    plain = LAYOUT.sub(" ", _without_functions(WRAPPED.sub(" ", text)))
    return {word.lower() for word in WORD.findall(wrapped)}, {word.lower() for word in WORD.findall(plain)}


def _without_functions(text: str) -> str:
    """A unit that begins like one is none: `5 minutes`, `5 seconds`."""

    def is_a_unit(start: int) -> bool:
        word = LETTERS.match(text, start)
        return word is not None and is_unit(word[0])

    return FUNCTION.sub(lambda found: found[0] if is_a_unit(found.start()) else " ", text)


def _stem(word: str) -> str:
    return word.rstrip("s")
