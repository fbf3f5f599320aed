r"""Two texts as LaTeX reads them: the same but for layout, the same but for one piece, or not alike.

same("$x=\\dfrac{9}{2}$", "x = \\frac92") -> True        same("x=\\frac{7}{2}", "x=\\frac{9}{2}") -> False
same("x=4.5", "x=\\frac{9}{2}") -> None: it takes mathematics to know

An answer that is gold with one number, letter, function, relation, bracket or word changed is another answer. Two kinds
of change leave that open: a constant of integration may have any name, and a sign may not matter where integers run
(`(-1)^{n-1}`, `\\pi - 2\\pi k`). Constants may have one value for all that (constants.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby, islice, pairwise

from rlvrlab.judge.modes.characters import GREEK, as_latex
from rlvrlab.judge.modes.constants import same_value
from rlvrlab.judge.modes.fonts import WRAPPED
from rlvrlab.judge.modes.quantities import LONGEST_ANSWER, SCIENTIFIC
from rlvrlab.judge.modes.units import RATES, SURE_PAIRS, may_mean

LAYOUT = re.compile(
    r"(\\\\)|\\(?:left|right)\s*(?:\.|(?![a-zA-Z]))|\\(?:displaystyle|limits|quad|qquad|hspace\s*\{[^{}]*\})(?![a-zA-Z])"
    r"|\\[,;:! ]|[$~]|\\begin\s*\{array\}\s*\{[lcr|]*\}"
)
"""What only says how a formula looks, or the end of a row, whose second backslash begins nothing. The columns of an
array are aligned by letters that mean nothing."""
SQUARE_ROOT = re.compile(r"\\sqrt(?![a-zA-Z])(?!\s*\[)")
ARRAY = "\\begin{array}"
TOKEN = re.compile(r"\\[a-zA-Z]+|\\.|[0-9]*\.[0-9]+|[0-9]+|[a-zA-Z]+|\S", re.ASCII | re.DOTALL)
SYNONYMS = {
    "\\dfrac": "\\frac", "\\tfrac": "\\frac", "\\cfrac": "\\frac", "\\leq": "\\le", "\\leqslant": "\\le",
    "\\geq": "\\ge", "\\geqslant": "\\ge", "\\neq": "\\ne", "\\lbrace": "\\{", "\\rbrace": "\\}", "\\%": "%",
    "\\rightarrow": "\\to", "\\lt": "<", "\\gt": ">", "*": "\\cdot",
    "\\varnothing": "\\emptyset", "\\equiv": "=", "\\colon": ":",
}  # fmt: skip
ARGUMENTS = {
    "^": 1, "_": 1, "\\sqrt": 1,
    **dict.fromkeys(("\\frac", "\\dfrac", "\\tfrac", "\\cfrac", "\\binom", "\\dbinom", "\\tbinom"), 2),
}  # fmt: skip
DIGITS = set("0123456789")
SYMBOL = re.compile(rf"[a-zA-Z]|\\(?:{'|'.join(GREEK.values())})")
PIECE = re.compile(r"\\[a-zA-Z]+|\\.|\s+|.", re.DOTALL)
NEGATIVE_POWER = re.compile(r"\^\s*(-\s*[0-9]+)", re.ASCII)
"""`10^-3` is not what TeX would want to read, but it can mean only one thing."""
GOES_ON = {"\\overline", "\\bar", "\\dot", "\\dots", "\\ldots", "\\cdots"}
"""What continues the digits before it, so that a zero there counts: `1.20\\overline{3}` is not `1.2\\overline{3}`."""
SHORTEST_WORD = 3
"""Letters in a row that are a word; fewer are variables beside each other."""
NUMBER = re.compile(r"[0-9.]*[0-9]", re.ASCII)
RELATIONS = {"<", ">", "=", "\\le", "\\ge", "\\ne", "\\in", "\\notin", "\\subset", "\\subseteq", "\\approx"}
NAME = re.compile(
    r"\\(?:(?:arc)?(?:sin|cos|tan)|cot|sec|csc|(?:sin|cos|tan)h|ln|log|exp|pi|infty|alpha|beta|gamma|delta|epsilon|theta"
    r"|lambda|mu|nu|rho|sigma|tau|phi|psi|omega|Gamma|Delta|Theta|Lambda|Sigma|Phi|Psi|Omega)"
)
OPERATORS = ({"\\cup", "\\cap"}, {"\\sum", "\\prod", "\\int"}, {"\\max", "\\min"}, RELATIONS, {"(", "["}, {")", "]"})
SAME_FUNCTION = {"\\ln", "\\log"}
WHOLE_NUMBERS = re.compile(r"integer|\\mathbb\s*\{?\s*Z|\\in\s*Z")
COUNTERS = set("kmn")
SUMMAND_ENDS = {"+", "-", ",", ")", "]", "=", "\\text", ";"}
MINUS_ONE_TO = ["(", "-", "1", ")", "^", "{"]
SMALL_WORDS = {
    "all", "any", "at", "by", "for", "if", "in", "is", "never", "no", "not", "of", "on", "or", "the", "to", "up",
}  # fmt: skip
"""They make a sentence of the words around them; without one, words behind a value name what is counted."""


def same(answer: str, gold: str) -> bool | None:
    """True: spelled alike but for layout; False: alike but for one piece that matters; None: who knows."""
    if max(len(answer), len(gold)) > LONGEST_ANSWER:
        return True if answer.strip() == gold.strip() else None
    one, other = tokens(answer), tokens(gold)
    if one == other:
        return bool(one) or None
    if len(one) == len(other):
        places = list(islice((i for i in range(len(one)) if one[i] != other[i]), 2))
        return same_value(one, other) if len(places) == 1 and _matters(one, other, places[0], gold) else None
    shorter, longer = sorted((one, other), key=len)
    negated = len(longer) == len(shorter) + 1 and longer[0] == "-" and longer[1:] == shorter
    return same_value(one, other) if negated and shorter != ["0"] else None


def tokens(text: str) -> list[str]:
    """What LaTeX reads, with arguments in braces and without idle zeros, signs and indices."""
    text = braced(as_latex(text)).replace("{,}", ",").replace("{:}", ":")
    text = LAYOUT.sub(lambda found: found.group(1) or (ARRAY if "begin" in found.group() else " "), text)
    text = SCIENTIFIC.sub("e", SQUARE_ROOT.sub(r"\\sqrt[2]", text))
    found = [SYNONYMS.get(piece, piece) for piece in _with_primes(_read(text))]
    if found[-1:] == ["."] and found[-2:-1] != ["."]:
        found.pop()
    return _without_idle_signs(list(_with_arguments(list(_with_fractions(found)))))


def braced(text: str, scripts: bool = True) -> str:
    r"""Digits that are arguments in braces, one each as TeX takes them: `2^10` is `2^{1}0`, `\frac 1 23` is half of 3.

    Letters, Greek ones too, get braces in fractions: math-verify cannot read `\frac{1}e`. Signs and other commands are
    left as they are; `scripts=False` leaves `^` and `_` alone.
    """
    made: list[str] = []
    open_brackets: list[tuple[str, int, bool]] = []
    wanted, in_pair, before = 0, False, ""
    for piece in PIECE.findall(NEGATIVE_POWER.sub(r"^{\1}", text)):
        if piece.isspace():
            made.append(piece)
            continue
        if piece == "{" or (piece == "[" and before == "\\sqrt"):
            open_brackets.append(("}", max(0, wanted - 1), in_pair) if piece == "{" else ("]", wanted, in_pair))
            wanted = 0
        elif open_brackets and piece == open_brackets[-1][0]:
            _, wanted, in_pair = open_brackets.pop()
        elif piece in ARGUMENTS and (scripts or piece not in ("^", "_")):
            wanted = ARGUMENTS[piece]
            in_pair = wanted > 1
        elif wanted:
            wanted -= 1
            piece = f"{{{piece}}}" if piece in DIGITS or (in_pair and SYMBOL.fullmatch(piece)) else piece
        made.append(piece)
        before = piece
    return "".join(made)


def _with_fractions(found: list[str]) -> Iterator[str]:
    """A bracketed ratio of numbers as a fraction.

    Behind a letter it may be the argument of a function; behind a number it is a factor, where a fraction is a summand.
    """
    i = 0
    while i < len(found):
        bracket, above, stroke, below, end = (*found[i : i + 5], *[""] * 5)[:5]
        before = found[i - 1] if i else ""
        free = bracket == "(" and not (before.isalpha() or NAME.fullmatch(before) or NUMBER.fullmatch(before))
        if free and stroke == "/" and end == ")" and above.isdigit() and below.isdigit():
            yield from ("\\frac", "{", above, "}", "{", below, "}")
            i += 5
        else:
            yield bracket
            i += 1


def _with_primes(found: Iterator[str]) -> Iterator[str]:
    r"""`f'` as `f^{\prime}`."""
    for is_prime, pieces in groupby(found, lambda piece: piece == "'"):
        run = list(pieces)
        yield from ("^", "{", *("\\prime" for _ in run), "}") if is_prime else run


def _read(text: str) -> Iterator[str]:
    for i, stretch in enumerate(WRAPPED.split(text)):
        for piece, after in pairwise([*TOKEN.findall(stretch), ""]):
            if i % 2 == 0 and piece.isalpha() and not _is_word(piece):
                yield from piece
            elif "." in piece and piece != "." and after not in GOES_ON:
                whole, _, part = piece.partition(".")
                part = part.rstrip("0")
                yield f"{whole or 0}.{part}" if part else whole or "0"
            else:
                yield piece


def _with_arguments(found: list[str]) -> Iterator[str]:
    """`x^a` as `x^{a}` and `\\frac ab` as `\\frac{a}{b}`: a bare argument is one letter or command."""
    open_brackets: list[tuple[str, int]] = []
    wanted, before = 0, ""
    for piece in found:
        if piece == "{" or (piece == "[" and before == "\\sqrt"):
            open_brackets.append(("}", max(0, wanted - 1)) if piece == "{" else ("]", wanted))
            wanted = 0
            yield piece
        elif open_brackets and piece == open_brackets[-1][0]:
            wanted = open_brackets.pop()[1]
            yield piece
        elif wanted:
            wanted -= 1
            yield from ("{", piece, "}")
        else:
            wanted = ARGUMENTS.get(piece, 0)
            yield piece
        before = piece


def _without_idle_signs(found: list[str]) -> list[str]:
    """Without the multiplication sign between a number and a letter: `2 \\cdot x` is `2x`."""
    return [
        piece
        for i, piece in enumerate(found)
        if piece != "\\cdot"
        or not NUMBER.fullmatch(found[i - 1] if i else "")
        or not (found[i + 1 : i + 2] and (found[i + 1] in ("\\pi", "\\sqrt") or found[i + 1].isalpha()))
    ]


def _matters(one: list[str], other: list[str], place: int, gold: str) -> bool:
    """Does the one place where two texts differ make them different answers?"""
    new, old = one[place], other[place]
    if {new, old} == {"+", "-"}:
        return not _either_sign_will_do(other, place, gold)
    if any(new in kind and old in kind for kind in OPERATORS):
        return True
    if _is_word(new) and _is_word(old):
        return not _means(new) & _means(old) and not (_is_counted(other, place) and _is_counted(one, place))
    if not (_is_content(new) and _is_content(old)) or {new, old} == SAME_FUNCTION or new.lstrip("0") == old.lstrip("0"):
        return False
    return not _may_be_a_constant(other, place) and not (new.isalpha() and _may_be_a_constant(one, place))


def _either_sign_will_do(found: list[str], place: int, gold: str) -> bool:
    """In the exponent of `(-1)^{n-1}`, and before a multiple of any whole number: `\\pi - 2\\pi k`."""
    exponent = max((i for i in range(place) if found[i] == "{"), default=0)
    if found[max(0, exponent - 5) : exponent + 1] == MINUS_ONE_TO:
        return True
    end = next((i for i in range(place + 1, len(found)) if found[i] in SUMMAND_ENDS), len(found))
    return bool(WHOLE_NUMBERS.search(gold) and COUNTERS & set(found[place + 1 : end]))


def _is_counted(found: list[str], place: int) -> bool:
    """A word behind a value with no other prose: `5 apples`. What is counted may have another name, a unit may not."""
    begin = next((i for i, piece in enumerate(found) if _is_word(piece)), place)
    behind_a_value = begin > 0 and (found[begin - 1] in ("}", ")", "\\pi") or NUMBER.fullmatch(found[begin - 1]))
    plain = all((piece.isalpha() and piece.lower() not in SMALL_WORDS) or piece in "./" for piece in found[begin:])
    name = found[place].lower()
    return bool(behind_a_value and plain and name not in RATES and not may_mean(name))


def _means(word: str) -> frozenset[str]:
    """What a word may stand for as a unit, however it is written; any other word, without the s of its plural."""
    name = "inch" if word.lower() == "in" else word.lower()
    return may_mean(name) or frozenset((name.rstrip("s"),))


def _is_word(piece: str) -> bool:
    """Two letters are variables beside each other, unless they are a preposition or a unit."""
    short = piece.lower() in SMALL_WORDS or piece.lower() in SURE_PAIRS
    return piece.isalpha() and (len(piece) >= SHORTEST_WORD or short)


def _is_content(piece: str) -> bool:
    return (len(piece) == 1 and piece.isalpha()) or bool(NUMBER.fullmatch(piece) or NAME.fullmatch(piece))


def _may_be_a_constant(found: list[str], place: int) -> bool:
    """A letter that is the last summand, or one with an index: `x^2 + C`, `c_1 e^x`."""
    if found[place] not in "cCkKDAB":
        return False
    last = place == len(found) - 1 and place > 0 and found[place - 1] in "+-"
    return last or (found[place] in "cC" and found[place + 1 : place + 2] == ["_"])
