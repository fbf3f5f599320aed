"""When is a final answer the right one? Letters and plain numbers are settled here, the rest is left to the judge.

exact("\\\\dfrac{3}{4}") = exact("0.75")    letters("(B)") = "B"    letters("C, A") = "AC"    letters("A or B") = None
"""

from __future__ import annotations

import re
import unicodedata
from fractions import Fraction

from rlvrlab.judge.modes.characters import grouped, without_borders
from rlvrlab.judge.modes.expressions import latex_number

LONGEST = 400
WRAPPED = re.compile(r"\\(?:text|textbf|mathrm|mathbf|mbox)\s*\{([^{}]*)\}")
LETTERS = re.compile(r"\(?([A-J](?:[ ,]*[A-J])*)[).]?", re.ASCII)
NAMED = re.compile(r"\s*\\?[a-zA-Z][\w\\{}(), ']*", re.ASCII)
NO_NUMBER = re.compile(r"[a-zA-Z]+|[0-9eE.,;/+ -]*|.*,.*|(?:\\\w+\s*\{\s*\})*", re.ASCII | re.DOTALL)
HEDGES = re.compile(r"\\approx|\\ne|\\not|\\sim\b|≈|≠|\bnot\b")
OR = re.compile(r"\bor\b|\\lor\b")


def exact(text: str) -> Fraction | None:
    """The value of an integer, decimal (repeating ones too) or fraction, in LaTeX or not; None for anything else."""
    if len(text) > LONGEST:
        return None
    text = grouped(without_borders(text))
    for decoration in ("\\!", "\\,", "\\ ", "{,}", "\\$"):
        text = text.replace(decoration, "," if decoration == "{,}" else "")
    text = text.strip()
    value = latex_number(text.strip("$"))
    ended = value is None and text.endswith(".") and not text.endswith("..")
    return latex_number(text[:-1].strip("$")) if ended else value


def letters(text: str) -> str | None:
    """The chosen letters in order, each once; None when anything else stands there."""
    match = LETTERS.fullmatch(WRAPPED.sub(r"\1", without_borders(text).strip().strip("$")).strip())
    chosen = re.sub("[ ,]", "", match.group(1)) if match else ""
    return "".join(sorted(chosen)) if chosen and len(set(chosen)) == len(chosen) else None


def is_hedged(answer: str, gold: str) -> bool:
    """Says more than one thing: `6=5`, `5 \\approx 5.1`, `not 5`, `5 or 6`.

    A name may stand before what it equals (`x = 5`), and where gold is a list, `or` may join its members.
    """
    if HEDGES.search(answer) and not HEDGES.search(gold):
        return True
    several = exact(gold) is None and ("," in gold or "\\pm" in gold or OR.search(gold) is not None)
    if OR.search(answer) and not several:
        return True
    if "=" not in answer or "=" in gold:
        return False
    plain = WRAPPED.sub(r"\1", answer)
    for part in re.split(r",|\bor\b|\band\b", plain) if several else [plain]:
        named, *values = part.split("=")
        if len(values) > 1 or (len(values) == 1 and not NAMED.fullmatch(named)):
            return True
    return False


def no_number(answer: str) -> bool:
    """Cannot be a number in the form asked for: a word, a list, an open sum, digits of another script.

    For answers that `exact` cannot read where one number is expected; what may still be one, like a root, is left open.
    """
    if NO_NUMBER.fullmatch(answer):
        return True
    return any(unicodedata.category(letter)[0] == "N" for letter in answer if not letter.isascii())
