r"""Signs that stand in a text where they say nothing: math-verify passes over them in silence and reads the rest.

strays("5_") = Counter("_")      strays("~5") = Counter("~")      strays("5\\#") = Counter("#")      strays("a_5") = {}

What only the answer has of these may make another value of it (`~5` is about five, `5^` a power of five), so its
strays must be gold's. A sign counts where it has no work: at an end of the text that it should join to something, twice
in a row, before an empty script, without its other half; some have no work anywhere.
"""

from __future__ import annotations

import re
from collections import Counter

PIECE = re.compile(r"\\[a-zA-Z]+|\\.|[^\\]|\\\Z", re.DOTALL)
LAYOUT = frozenset(("\\,", "\\;", "\\:", "\\!", "\\ ", "\\>", "\\\n", "\\\\"))
"""Commands of one sign that are blanks or end a row."""
READ = LAYOUT | {"\\{", "\\}", "\\$", "\\%", "\\|", "\\(", "\\)", "\\[", "\\]"}
NO_WORK = frozenset("@#`")
RELATION = "a relation before it"
RELATIONS = frozenset((
    "<", ">", "\\lt", "\\gt", "\\le", "\\leq", "\\leqslant", "\\ge", "\\geq", "\\geqslant", "\\ne", "\\neq", "\\ll",
    "\\gg", "\\approx", "\\sim", "\\simeq",
))  # fmt: skip
"""Before a text they say that it is not the value; where gold is an inequality, they may stand without its variable."""
FIRST = frozenset("~|:;,'\"_^*/&")
LAST = frozenset("~|:;,'\"_^*/&=<>+-")
"""Signs that join what stands on both sides of them, or are one half of a pair."""
QUOTED = re.compile(r"\s*(['\"`])([^'\"`]*)\1\s*")
"""A whole text in quotes."""
TWO_SIGNS = re.compile(r"[+-][+-]|(?:^|[(\[{,;=])\s{0,9}[+-]\s{1,9}[+-]")
EMPTY_SCRIPT = re.compile(r"[_^]\s{0,9}(?:\{[\s{}]{0,9}\}|(?=[)\],;&=]|\\\\))")
MARKED_DIGITS = re.compile(r"(?<=[0-9])['\"](?=[0-9])", re.ASCII)
MOST = 10
"""Signs at one end that are counted; each takes a look at all of the text."""
HALF = re.compile(r"\\(?:left|right)\s{0,9}\.")
"""A bracket that is not to be seen, so that another one has no partner."""


def strays(text: str) -> Counter[str]:
    """The signs of a text that have no work in it, each as often as it stands."""
    if quoted := QUOTED.fullmatch(text):
        text = quoted[2]
    pieces = PIECE.findall(text)
    found = Counter(sign.lstrip("\\") for sign in pieces if sign in NO_WORK or _is_unread(sign))
    if "\\begin" not in text:
        found["&"] += pieces.count("&")
    found["&"] += pieces.count("\\&")
    found["two signs"] = len(TWO_SIGNS.findall(text))
    found["mark in digits"] = len(MARKED_DIGITS.findall(text))
    found["script"] = len(EMPTY_SCRIPT.findall(text))
    found.update(_at_the_ends(pieces))
    found.update(_unpaired(text, pieces))
    return +found


def _is_unread(piece: str) -> bool:
    """A command of one sign that is neither layout nor a sign that is meant: `\\#`, `\\'`, `\\5`."""
    return len(piece) == 2 and piece[0] == "\\" and not piece[1].isalpha() and piece not in READ and piece != "\\&"


def _at_the_ends(pieces: list[str]) -> list[str]:
    """The signs before the first and behind the last thing of a text; a mark behind a value is no stray."""
    inner = [piece for piece in pieces if not (piece.isspace() or piece == "$" or piece in LAYOUT)]
    found = []
    while len(inner) > 1 and inner[-1] == "." and inner[-2] != "\\right":
        found.append(inner.pop())
    found = found[1:]  # one full stop is what a sentence ends with
    if inner and inner[0] in RELATIONS:
        inner.pop(0)
        found.append(RELATION)
    while inner and len(found) < MOST and inner[0] in FIRST and not _is_pair(inner[0], inner):
        found.append(inner.pop(0))
    while (
        inner and len(found) < 2 * MOST and inner[-1] in LAST and not _is_pair(inner[-1], inner) and not _is_mark(inner)
    ):
        found.append(inner.pop())
    return found


def _is_pair(sign: str, pieces: list[str]) -> bool:
    """Bars around a value, and quotes in a sentence."""
    return sign in '|"' and pieces.count(sign) % 2 == 0


def _is_mark(pieces: list[str]) -> bool:
    """Behind a number it is a unit (measures.py), behind a letter or bracket a prime (quantities.py)."""
    before = next((piece for piece in reversed(pieces) if piece not in "'\""), "")
    if pieces[-1] == '"':
        return before.isdigit()
    return pieces[-1] == "'" and before != "" and (before[-1].isalnum() or before in ")]}.")


def _unpaired(text: str, pieces: list[str]) -> Counter[str]:
    """Brackets without their partner, of whichever kind: an interval may have one of each."""
    norms = Counter({"\\|": pieces.count("\\|") % 2})
    if HALF.search(text):
        return norms
    opened = sum(pieces.count(sign) for sign in ("(", "[", "\\(", "\\["))
    closed = sum(pieces.count(sign) for sign in (")", "]", "\\)", "\\]"))
    return norms + Counter({"(" if opened > closed else ")": abs(opened - closed)})
