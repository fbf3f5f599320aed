"""Symbolic equality by math-verify: one pair per child, so no answer can touch another's verdict.

math-verify reads what it can and passes over the rest in silence (`11` in `11 ~ 46`, `204` in `204_5`, the last formula
of several), so its yes counts only where nothing that matters was passed over.
"""

from __future__ import annotations

import importlib
import logging
import re
from typing import Any

from rlvrlab.judge.jail.child import Job, Report

try:
    math_verify: Any = importlib.import_module("math_verify")
    sympy: Any = importlib.import_module("sympy")
except ImportError:  # the worker then answers that it is missing
    math_verify = sympy = None

logging.disable(logging.WARNING)

DIGITS = re.compile(r"(\\(?:text|textbf|mathrm|mbox)\s*\{[^{}]*\}\s*\^\s*\{?\s*-?\s*)?([0-9]+)", re.ASCII)
"""A run of digits; in the first group the unit it is an exponent of, as in `\\text{cm}^2`."""
GROUPED = re.compile(r"[0-9]{1,3}(?:,[0-9]{3})+", re.ASCII)
BRACKETS = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}
FORMULA = re.compile(r"\$+([^$]+)\$+")
WORD = re.compile(r"[a-zA-Z]+")
LETTER = re.compile(r"(?<![\\a-zA-Z])[a-zA-Z](?![a-zA-Z])")
TO_THE_T = re.compile(r"\^\s*(?:T(?![a-zA-Z])|\{\s*T\s*\})")
"""math-verify takes it for the sign of a transposed matrix, and `(1+r)^T` for `1+r`."""
SMALL_T = "^{t}"
"""All other letters are made small by math-verify as well; where both stand in a text, `quantities.py` has seen it."""
OR = re.compile(r"\\text\s*\{\s*or\s*\}|\\lor(?![a-zA-Z])|(?<![\\a-zA-Z])or(?![a-zA-Z])")
APPROXIMATELY = re.compile(r"\\approx|≈")
PRECISION = 60
MOST_DIGITS = 24
"""In texts with more numbers all of them count as passed over, and must be the same: every number costs a parse."""


def _parsed(text: str) -> Any:
    alternatives = OR.split(text.replace("$", ""))
    union = _union([_parsed(part) for part in alternatives]) if len(alternatives) > 1 else []
    if union:
        return union
    wrapped = text if "$" in text or "\\boxed" in text else f"${text}$"
    forms = [math_verify.LatexExtractionConfig(), math_verify.ExprExtractionConfig()]
    return math_verify.parse(wrapped, forms, parsing_timeout=None)


def _equal(gold: Any, answer: Any) -> bool:
    """Also `x \\ge 3` for `[3, \\infty)`, and the other way round."""
    return bool(math_verify.verify(gold, answer, allow_set_relation_comp=True, timeout_seconds=None))


def _union(parts: list[Any]) -> list[Any]:
    """`x < 1 or x > 2` as the set of all such x; nothing where a part is no inequality in the same variable."""
    found = [part[0] for part in parts if part]
    inequalities = (sympy.StrictLessThan, sympy.LessThan, sympy.StrictGreaterThan, sympy.GreaterThan, sympy.And)
    if len(found) < len(parts) or not all(isinstance(one, inequalities) for one in found):
        return []
    variables = set[Any]().union(*(one.free_symbols for one in found))
    return [sympy.Or(*found).as_set()] if len(variables) == 1 else []


def _split(text: str, separator: str) -> list[str]:
    """The parts of a list, cut where no bracket is open; each keeps its dollars only if they come in pairs."""
    parts, depth = [""], 0
    for before, sign in zip(" " + text, text, strict=False):
        depth += BRACKETS.get(sign, 0)
        if sign == separator and depth <= 0 and before != "\\":
            parts.append("")
        else:
            parts[-1] += sign
    return [part.replace("$", "") if part.count("$") % 2 else part for part in parts]


def _unread(text: str) -> list[str]:
    """The numbers the parser passes over, such as the base in `204_5`: another one there leaves the result the same."""
    text = text.replace("$", "") if text.count("$") % 2 else text
    places = [match for match in DIGITS.finditer(text) if not match.group(1)]
    if len(places) > MOST_DIGITS:
        return [place.group(2) for place in places]
    result = _symbols(_parsed(text))
    unread = []
    for place in places:
        digits = place.group(2)
        # Two of them: one alone may have the same value, as five over three has that of five over two.
        others = (f"{digits[:-1]}{(int(digits[-1]) + step) % 10}" for step in (1, 3))
        if all(_symbols(_parsed(text[: place.start(2)] + one + text[place.end(2) :])) == result for one in others):
            unread.append(digits)
    return unread


def _symbols(parsed: Any) -> list[Any]:
    return [part for part in parsed if not isinstance(part, str)]


def _is_false(parsed: Any) -> bool:
    """An equation of constants whose sides differ: `\\log_2 64 = 5`, or one of several: `x = 6 = 5`."""
    found = [one for part in _symbols(parsed) for one in (part.args if type(part).__name__ == "And" else (part,))]
    equations = [one for one in found if type(one).__name__ == "Equality"]
    return any(part.lhs.is_number and part.rhs.is_number and not _equal(part.lhs, part.rhs) for part in equations)


def _numbers(parsed: Any) -> list[Any]:
    """The constants of an answer: those of a list or an interval each by itself, and none where variables stand."""
    found, left = [], [part for part in _symbols(parsed) if isinstance(part, sympy.Basic)]
    while left:
        part = left.pop()
        if part.is_number:
            found.append(part)
        elif not part.is_Add and not part.is_Mul:
            left += part.args
    return found


def _is_exact(gold: Any, answer: Any, percent: bool) -> bool:
    """Is every decimal of the answer exactly a number of gold's? math-verify rounds, and takes 3.14159265 for pi."""
    decimals = [number for number in _numbers(answer) if number.atoms(sympy.Float)]
    golds = _numbers(gold) if decimals else []
    golds += [100 * number for number in golds] if percent else []
    return not golds or all(any(_same(number, one) for one in golds) for number in decimals)


def _same(one: Any, other: Any) -> bool:
    """Equal to PRECISION digits, a decimal being just what is written."""
    written = [
        number.xreplace({part: sympy.Rational(str(part)) for part in number.atoms(sympy.Float)})
        for number in (one, other)
    ]
    difference, size = (sympy.N(value, PRECISION) for value in (written[0] - written[1], written[1]))
    return bool(abs(difference) <= sympy.Float(10) ** (10 - PRECISION) * (1 + abs(size)))


def _equal_complex(gold: Any, answer: Any) -> bool:
    """Are two expressions equal where `i` is the imaginary unit? By expansion, or to PRECISION digits as numbers."""
    one, other = (next(iter(_symbols(parsed)), None) for parsed in (gold, answer))
    if not isinstance(one, sympy.Expr) or not isinstance(other, sympy.Expr):
        return False
    found = [part.subs({sign: sympy.I for sign in part.free_symbols if sign.name == "i"}) for part in (one, other)]
    if found[0].is_number and found[1].is_number and not any(part.atoms(sympy.Float) for part in found):
        return _same(*found)
    return bool(sympy.expand(found[0] - found[1]) == 0)


def _compared(gold_text: str, answer_text: str, imaginary: bool = False) -> tuple[Any, ...]:
    """What to report: math-verify must call the two equal, and have read all of both or left the same unread."""
    golds = _split(gold_text, ";")
    answers = _split(answer_text, ";")
    if len(golds) > 1 or len(answers) > 1:
        if len(answers) == 1 and not GROUPED.fullmatch(answer_text.strip()):
            answers = _split(answer_text, ",")
        if len(golds) != len(answers):
            return ("equal", False)
        reports = [_compared(*pair, imaginary) for pair in zip(golds, answers, strict=True)]
        return next((report for report in reports if report != ("equal", True)), ("equal", True))
    apart = _formulas_equal(gold_text, answer_text)
    if apart is not None:
        return ("equal", apart)
    gold, answer = _parsed(gold_text), _parsed(answer_text)
    if not gold:
        return ("equal", True) if gold_text.strip() == answer_text.strip() else ("bad_gold",)
    if not answer:
        return ("unreadable",)
    if gold_text.strip() == answer_text.strip():
        return ("equal", True)
    equal = _equal(gold, answer) or (imaginary and _equal_complex(gold, answer))
    if not equal or (_is_false(answer) and not _is_false(gold)):
        return ("equal", False)
    if not _is_exact(gold, answer, "%" in gold_text):
        return ("equal", False)
    # A name before what it equals, such as f(3) = 5, says nothing that the gold value could confirm or deny.
    unread = _unread(answer_text if "=" in gold_text else answer_text.rpartition("=")[2])
    return ("equal", unread == _unread(gold_text) or unread == _unread(APPROXIMATELY.split(gold_text)[0]))


def _formulas_equal(gold: str, answer: str) -> bool | None:
    """Two sentences with as many formulas each, of which math-verify would read the last; None for anything else."""
    golds, answers = FORMULA.findall(gold), FORMULA.findall(answer)
    if len(golds) < 2 or len(golds) != len(answers):
        return None
    words = [sorted(WORD.findall(FORMULA.sub(" ", text).lower())) for text in (gold, answer)]
    if words[0] != words[1]:
        return False
    for one, other in zip(golds, answers, strict=True):
        letters = [set(LETTER.findall(text)) for text in (one, other)]
        if one.strip() != other.strip() and (letters[0] != letters[1] or _compared(one, other) != ("equal", True)):
            return False
    return True


def run(job: Job, report: Report) -> None:
    """Is the answer the gold answer? The supervisor is the only clock."""
    if math_verify is None:
        report("missing")
        return
    gold, answer = (job[name].replace("\\$", "").strip().removesuffix("\\,") for name in ("gold", "answer"))
    gold, answer = (TO_THE_T.sub(SMALL_T, text) for text in (gold, answer))
    report(*_compared(gold, answer, bool(job.get("imaginary"))))


if math_verify is not None:
    # Builds the parser's tables and sympy's caches once, in the process everybody is forked from.
    for pair in (("\\frac{1}{2}", "0.5"), ("x^2+1", "1+x^2"), ("(1,2)", "(1,3)")):
        _equal(*map(_parsed, pair))
