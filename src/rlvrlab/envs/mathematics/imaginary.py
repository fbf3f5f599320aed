r"""Whether `i` is the imaginary unit in a question and its answer, or a variable like any other.

is_imaginary("Simplify $(3-2i)^2$", "5-12i")        is_imaginary("Solve $x^2=-9$", "3i, -3i")
not is_imaginary("Expand $(x+i)^2$", "x^2+2xi+i^2")     not is_imaginary("Let $i$ be an index. Find $a_i$", "2i")

As a variable `i^2` is not -1, so the question must say which it is: it names complex numbers; or its gold answer has an
`i` that the question does not have, which then can be nothing else; or all it has are sums of numbers and multiples of
`i`, with no other letter than z and w. Nothing counts where `i` is an index, a vector or a thing with a name.
"""

from __future__ import annotations

import re

LETTER = re.compile(r"(?<![a-zA-Z\\])i(?![a-zA-Z])(?!\.\s?e\.)|\\mathrm\s{0,9}\{\s{0,9}i\s{0,9}\}")
NAMED = re.compile(
    r"\bcomplex (?:number|plane|root|solution|zero|conjugate|value)|\bimaginary\b|\broots? of unity\b|复数|虚数"
    r"|(?<![a-zA-Z\\])i\s{0,9}\^\s{0,9}\{?\s{0,9}2\s{0,9}\}?\s{0,9}=\s{0,9}-\s{0,9}1(?![0-9])|\bpowers? of \$?i\b"
    r"|(?<![a-zA-Z\\])i\s{0,9}=\s{0,9}\\sqrt\s{0,9}\{?\s{0,9}-\s{0,9}1(?![0-9])",
    re.IGNORECASE,
)
ANOTHER = re.compile(
    r"_\s{0,9}\{?[^{}\s]{0,20}(?<![a-zA-Z\\])i(?![a-zA-Z])|\\(?:vec|hat|mathbf|boldsymbol|overrightarrow)\s{0,9}\{?\s{0,9}\\?i"
    r"|(?<![a-zA-Z\\])i\s{0,9}(?:=\s{0,9}[0-9]|\\in\b|\\leq?\b|\\geq?\b|<|>)|\bi\s{0,9}\$?\s{0,9}-?\s{0,9}th\b"
    r"|\b(?:integers?|each|every|all|any|index|indices|variable|rate|current|interest)\s{1,9}\$?i(?![a-zA-Z])"
)
"""An index, a vector, or something that has the letter for a name."""
SUM = re.compile(
    r"[0-9})]\s{0,9}[+-]\s{0,9}(?:[0-9.]{1,20}|\\sqrt\s{0,9}\{[^{}]{1,20}\})?\s{0,9}(?:\\mathrm\{)?i(?![a-zA-Z])"
)
FORMULA = re.compile(r"\$+([^$]+)\$+")
OTHER_LETTERS = re.compile(r"(?<![a-zA-Z\\])[a-zA-Z](?![a-zA-Z])")


def is_imaginary(question: str, gold: str) -> bool:
    """Does the question leave no doubt that `i` is the square root of -1?"""
    if ANOTHER.search(question) or ANOTHER.search(gold):
        return False
    if NAMED.search(question):
        return True
    if not LETTER.search(question):
        return bool(question.strip()) and LETTER.search(gold) is not None
    formulas = " ".join(FORMULA.findall(question))
    letters = set(OTHER_LETTERS.findall(formulas))
    return SUM.search(formulas) is not None and "i" in letters and letters <= {"i", "z", "w"}
