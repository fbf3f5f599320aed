r"""Letters in roman, bold or slanted type: words and units, or a formula that only looks otherwise.

in_plain_type("5\\mathrm{i}") = "5 i "                 in_plain_type("5\\text{!}") = "5 ! "
in_plain_type("5\\text{ m}") = "5\\text{ m}"

math-verify passes over everything in such type, the imaginary unit too. What has no word of two letters is mathematics,
unless it is the sign of a unit behind a value.
"""

from __future__ import annotations

import re

from rlvrlab.judge.modes.units import LETTERS

SLANTED = ("mathbf", "mathit", "mathsf", "mathtt", "boldsymbol", "bm")
"""Type in which nobody writes a unit."""
UPRIGHT = (
    "text", "textbf", "textit", "textrm", "textsf", "texttt", "textup", "textnormal", "mathrm", "mbox", "operatorname",
)  # fmt: skip
WRAPPED = re.compile(rf"\\(?:{'|'.join((*UPRIGHT, *SLANTED))})\s{{0,9}}\{{([^{{}}]*)\}}")
"""Words, or letters, in a type of their own."""
TYPED = re.compile(
    rf"(^[\s$]*|[\^_,=+<>|&:;]\s{{0,9}}\{{?\s{{0,9}}|(?<!\}})-\s{{0,9}})?\\({'|'.join((*UPRIGHT, *SLANTED))})\s{{0,9}}"
    r"\{([^{}]*)\}"
)
"""The same with the sign before it, behind which no unit can stand."""
SWITCHED = re.compile(r"\\(rm|bf|it|sf|tt)\s{1,9}([a-zA-Z])(?![a-zA-Z])")
"""A letter behind a command that changes the type of all that follows: `5\\rm i`."""
WORD = re.compile(r"[a-zA-Z]{2}|[^\x00-\x7f]")
LETTER = re.compile(r"[a-zA-Z]")
NOT_IN_A_UNIT = re.compile(r"[^a-zA-Z0-9\s~/^.*()-]")
HALF_DAY = re.compile(r"\s{0,9}[ap]\.\s{0,9}m\.?\s{0,9}", re.IGNORECASE)


def in_plain_type(text: str) -> str:
    """The text with formulas in a type of their own, even a single letter, as if they stood in none."""
    return SWITCHED.sub(_switched, TYPED.sub(_typed, text)) if "\\" in text else text


def _typed(found: re.Match[str]) -> str:
    before, command, written = found[1] or "", found[2], found[3]
    if WORD.search(written) or HALF_DAY.fullmatch(written):
        return found[0]
    letters = LETTER.findall(written)
    is_unit = not before and command not in SLANTED and letters and all(letter in LETTERS for letter in letters)
    if is_unit and not NOT_IN_A_UNIT.search(written):
        return found[0]
    return f"{before} {written} "


def _switched(found: re.Match[str]) -> str:
    return found[0] if found[1] == "rm" and found[2] in LETTERS else f" {found[2]} "
