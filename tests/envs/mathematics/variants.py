r"""Systematic variants of a reference answer: near-misses, which say something else, and respellings, which do not.

    near_misses("$x=\\frac{9}{2}$")  -> ("number", "$x=\\frac{8}{2}$"), ("sign", …), ("letter", "$y=\\frac{9}{2}$") …
    respellings("$x=\\frac{9}{2}$")  -> ("dollars", "x=\\frac{9}{2}"), ("fraction", "$x=\\dfrac{9}{2}$") …

Neither knows anything of the judge. What only looks like a near-miss is left out by rule: the case of words and of
the E in `1E5`, the name of a constant of integration, and what is counted (`13 apples`, `13 pieces`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from zlib import crc32

TOKEN = re.compile(r"\\[a-zA-Z]+|\\.|[0-9]+|[a-zA-Z]+|\s+|.", re.DOTALL)
WORDS = re.compile(r"(\\(?:text|textbf|textit|textrm|mathrm|mbox|operatorname|begin|end)\s*\{[^{}]*\}|\{[lcr|]+\})")
PLACES = 3
"""How many places of one reference are tried for each kind of change: the first, the last and one between."""
ROMAN = (("mathrm", "i"), ("text", "e"), ("mathbf", "v"))
"""Mathematics that looks like words."""
UNIT = re.compile(r"(\\(?:text|mathrm|mbox)\s*\{[\s~]*)([a-zA-Z]+)(?=\s*\})")
OTHER_UNITS = {
    "mm": "cm", "cm": "km", "m": "km", "km": "nm", "ft": "yd", "yd": "ft", "mi": "km", "inches": "feet", "s": "h",
    "sec": "ms", "min": "s", "hr": "min", "h": "s", "g": "kg", "kg": "mg", "lb": "kg", "N": "kN", "W": "kW", "V": "mV",
    "cents": "dollars", "degrees": "radians", "rad": "degrees", "mph": "ft/s",
}  # fmt: skip
RELATIONS = {"<": "\\le ", ">": "\\ge ", "=": "\\ne ", "\\le": "<", "\\leq": "<", "\\ge": ">", "\\geq": ">"}
OTHERS = {
    "\\sin": "\\cos", "\\cos": "\\sin", "\\tan": "\\cot", "\\pi": "e", "\\cup": "\\cap", "\\sqrt": "\\sqrt[5]",
    "\\arctan": "\\arcsin", "\\infty": "0", "\\theta": "\\phi", "\\alpha": "\\beta", "\\sum": "\\prod",
}  # fmt: skip
WORD_LIKE = re.compile(r"(?<![\\a-zA-Z])[a-zA-Z]{3,}(?![a-zA-Z])")
CONSTANT = re.compile(r"(?:[+-]\s*|^\s*|[=(]\s*)[cCkKAB](?![a-zA-Z])|[cC]_")
SCIENTIFIC = re.compile(r"[0-9]\s*$")

SMALL_WORDS = {
    "at", "by", "if", "in", "is", "it", "no", "of", "on", "or", "to", "pt", "ft", "cm", "km", "kg", "mm", "mi", "hr",
    "pm", "am", "lb",
}  # fmt: skip

STUCK_BEHIND = (
    "_", "@", "#", "~", "|", "^", "&", "`", ":", ";", "*", "=", "<", ">", "\\#", "\\_", "\\&", "\\@", "\\'", "\\|",
    "_{}", "^{}", "!!", "?", "..", " \\text{@}", " \\text{#}",
)  # fmt: skip
STUCK_BEFORE = (
    "~",
    "#",
    "@",
    "_",
    "^",
    "|",
    ":",
    ";",
    "'",
    "`",
    "&",
    "*",
    "/",
    "<",
    "\\#",
    "\\ge ",
    "\\approx ",
    "+-",
    "--",
)
INEQUALITIES = ("<", "\\ge ", "\\approx ")
RELATION = re.compile(r"[<>]|\\(?:[gl]eq?|neq?|approx|infty)(?![a-zA-Z])")
STUCK = 8
MIXED_MONEY = (
    "$X euros", "\\$X euros", "\\$X \\text{ euros}", "€X dollars", "£X \\text{ dollars}", "$X kg", "\\$X \\text{ kg}",
    "\\$X \\text{ cents}", "\\$X \\text{ apples}", "X \\text{ dollars euros}", "\\$€X", "€£X", "X\\% \\text{ dollars}",
    "\\$X\\%", "\\$X^\\circ", "X \\text{ km kg}", "€X \\text{ hours}", "\\$X \\text{ thousand euros}",
)  # fmt: skip

Variants = Iterator[tuple[str, str]]


def near_misses(gold: str) -> Variants:
    """Each with the kind of change; every one is another answer than gold."""
    for kind, change in (
        ("number", _other_number), ("case", _other_case), ("letter", _other_letter), ("sign", _other_sign),
        ("relation", _other_relation), ("bracket", _other_bracket), ("function", _other_function),
        ("word", _other_word),
    ):  # fmt: skip
        yield from ((kind, text) for text in _spread(list(_changed(gold, change))))
    yield from (("list", text) for text in _other_lists(gold))
    if renamed := _renamed(gold):
        yield "renamed", renamed
    if not re.search("[1-9a-zA-Z]", gold):
        return  # a thousand times nothing, or a hundredth of it
    yield "scale", _appended(gold, " \\text{ thousand}")
    yield from (("unit", text) for text in _other_units(gold))
    if re.fullmatch("[0-9]{1,2}", gold):
        yield from (("roman", f"{gold}\\{font}{{{letter}}}") for font, letter in ROMAN)
    if re.fullmatch(r"\$?[0-9.,]+\$?", gold):
        yield "cents", _appended(gold, " \\text{ cents}")
    yield from (("stuck", text) for text in _stuck(gold))
    if re.fullmatch(r"-?[0-9]+(?:\.[0-9]+)?", gold):
        yield from (("money", text.replace("X", gold)) for text in MIXED_MONEY)
    if "%" not in gold and "percent" not in gold:
        yield "percent", _appended(gold, "\\%")
        yield "percent", _appended(gold, " \\text{ percent}.")


def _stuck(gold: str) -> Iterator[str]:
    """A sign that says nothing, or something else, before gold or behind it; not one that gold has.

    A few for each gold, others for each, so that all golds together have all of them.
    """
    inner = gold.strip().strip("$")
    ends_in_a_digit = inner[-1:].isdigit() and not re.search(r"[\\_^'{:]", inner)
    behind = (*STUCK_BEHIND, *(("'", "''", '"') if ends_in_a_digit else ()))
    pairs = [*((sign, "") for sign in STUCK_BEFORE), *(("", sign) for sign in behind)]
    first = crc32(gold.encode()) % len(pairs)
    for before, after in (pairs[first:] + pairs[:first])[:STUCK]:
        if (before + after).strip("\\ ") not in gold and not (before in INEQUALITIES and RELATION.search(gold)):
            yield _appended(_prepended(gold, before), after)


def _prepended(gold: str, beginning: str) -> str:
    """Inside the first dollar where there is one, so that it belongs to the formula."""
    whole = gold.endswith("$") and gold.count("$") == 2 and gold.startswith("$")
    return f"${beginning}{gold[1:]}" if whole else beginning + gold


def respellings(gold: str) -> Variants:
    """Each with the kind of change; every one says the same as gold."""
    for kind, respelled in (
        ("dollars", _dollars(gold)),
        ("spaces", _spaced(gold)),
        ("tight", _tight(gold)),
        ("thin space", _appended(gold, "\\,")),
        ("full stop", gold if gold.rstrip("$ \n").endswith(".") else gold + "."),
        ("fraction", re.sub(r"\\frac(?![a-zA-Z])", r"\\dfrac", gold)),
        ("left and right", _left_and_right(gold)),
        ("exponent", re.sub(r"([\^_])\s*\{\s*([0-9a-zA-Z])\s*\}", r"\1\2", gold)),
        ("braces", re.sub(r"([\^_])\s*([0-9a-zA-Z])(?![0-9])", r"\1{\2}", gold)),
        ("relation", re.sub(r"\\(le|ge|ne)(?![a-zA-Z])", r"\\\1q", gold)),
        ("sign", _as_characters(gold)),
        ("words", re.sub(r"\\text\s*(?=\{)", r"\\mathrm", gold)),
        ("decimals", re.sub(r"(?<![0-9.,:])([0-9]+\.[0-9]+)(?![0-9.,:]|\\\w)", r"\g<1>0", gold)),
        ("set", re.sub(r"^(\$?\\\{)([^{},;|:]+),([^{},;|:]+)(\\\}\$?)$", r"\1\3,\2\4", gold)),
        *_rewritten(gold),
    ):
        if respelled.strip() != gold.strip():
            yield kind, respelled


def _rewritten(gold: str) -> Variants:
    """Written otherwise by a rule of arithmetic, so that only mathematics can tell that it is the same."""
    yield "quotient", re.sub(r"\\frac\s*\{\s*([0-9]+)\s*\}\s*\{\s*([0-9]+)\s*\}", r"(\1/\2)", gold, count=1)
    yield "product", re.sub(r"(?<![0-9^_{.:a-zA-Z]) ?([0-9]+) ([a-z](?![a-zA-Z.]))", r" \1 \\cdot \2", gold, count=1)
    yield "root", re.sub(r"\\sqrt\s*\{\s*([0-9]+)\s*\}", r"\\sqrt[2]{\1}", gold, count=1)
    dollars = gold.startswith("$") and gold.endswith("$") and gold.count("$") == 2
    inner = gold[1:-1] if dollars else gold
    if re.search(
        r"\$|[=<>,;:|]|\\(?:[gln]e|pm|mp|text|mathrm|sum|int|begin|cdots|ldots)|[a-zA-Z]{3}",
        re.sub(r"\\[a-z]+rt|\\frac|\\pi", "", inner),
    ):
        return
    terms = [""]
    for sign in inner:
        outside = sum(map("({[".count, terms[-1])) == sum(map(")}]".count, terms[-1]))
        if sign in "+-" and outside and terms[-1].strip():
            terms.append("")
        terms[-1] += sign
    if len(terms) == 2 and terms[1].startswith("+") and not terms[0].lstrip().startswith("-"):
        swapped = f"{terms[1][1:].strip()} + {terms[0].strip()}"
        yield "sum", f"${swapped}$" if dollars else swapped


def _changed(gold: str, change: Callable[[str, str, str], str | None]) -> Iterator[str]:
    """Gold with one token changed, for every token that can be; `change` sees what stands before, it and after."""
    words = [match.span() for match in WORDS.finditer(gold)]
    for match in TOKEN.finditer(gold):
        start, end = match.span()
        if change is not _other_word and any(left <= start < right for left, right in words):
            continue
        new = change(gold[:start], match.group(), gold[end:])
        if new is not None:
            yield gold[:start] + new + gold[end:]


def _spread(found: list[str]) -> list[str]:
    return found if len(found) <= PLACES else [found[0], found[len(found) // 2], found[-1]]


def _other_number(before: str, token: str, after: str) -> str | None:
    if not token.isascii() or not token.isdigit():
        return None
    return f"{token[:-1]}{(int(token[-1]) + 1) % 10 or 1}"


def _is_variable(before: str, token: str, after: str) -> bool:
    """A letter by itself or a product of two, outside of prose; the E of `1E5` is none."""
    if (
        not re.fullmatch("[a-zA-Z]{1,2}", token, re.ASCII)
        or token.lower() in SMALL_WORDS
        or re.search(r"[a-zA-Z]\s$|[a-zA-Z]['.]$", before)
    ):
        return False
    if re.match(r"\s[a-zA-Z]{2}", after) or re.match(r"['.][a-zA-Z]", after):
        return False
    return not (token in "eE" and SCIENTIFIC.search(before) and re.match("[+-]?[0-9]", after))


def _is_constant(before: str, token: str, after: str) -> bool:
    """A constant of integration: it may have any name."""
    near = before.replace("$", "").rstrip()[-1:] + token + after[:1].replace("{", "")
    return CONSTANT.search(near) is not None


def _other_case(before: str, token: str, after: str) -> str | None:
    if not _is_variable(before, token, after) or _is_constant(before, token, after):
        return None
    return token.swapcase()


def _other_letter(before: str, token: str, after: str) -> str | None:
    if not _is_variable(before, token, after) or _is_constant(before, token, after):
        return None
    return next((letter for letter in "wqvj" if letter not in (before + token + after).lower()), None)


def _other_sign(before: str, token: str, after: str) -> str | None:
    if re.match(r"[^+,;)=-]*[kmn]", after) and re.search(r"integer|\\mathbb|\(-1\)", before + token + after):
        return None  # a multiple of any whole number, or the exponent of -1
    return {"+": "-", "-": "+"}.get(token) if re.search(r"\S", before.replace("$", "")) else {"-": ""}.get(token)


def _other_relation(before: str, token: str, after: str) -> str | None:
    return RELATIONS.get(token)


def _other_bracket(before: str, token: str, after: str) -> str | None:
    """The border of an interval or a tuple; a bracket around a sum is none."""
    if token == "(" and re.match(r"[^()\[\]]*,[^()\[\]]*[\])]", after):
        return "["
    return "(" if token == "[" and re.match(r"[^()\[\]]*,[^()\[\]]*[\])]", after) else None


def _other_function(before: str, token: str, after: str) -> str | None:
    if token == "\\sqrt" and after.lstrip().startswith("["):
        return None
    return OTHERS.get(token)


def _other_word(before: str, token: str, after: str) -> str | None:
    """Another word of prose; units, names of functions and links such as `and` say nothing by themselves."""
    if (
        not WORD_LIKE.fullmatch(token)
        or before.endswith("\\")
        or re.search(r"\\(?:begin|end)\s*\{(?:array\}\{)?$", before)
    ):
        return None
    if token.lower() in LINKS or (COUNTED.fullmatch(before + token + after) and token.lower().rstrip("s") not in UNITS):
        return None
    return "otter"


COUNTED = re.compile(
    r"[\s$]*[^a-zA-Z]*(?:\\?[a-zA-Z]+\{[0-9]+\})*[0-9.,}$)]+[\\\s~]*(?:text|mathrm|mbox)?[\s{~]*[a-zA-Z/ ]+[}.$\s]*"
)
"""`13 apples`: what is counted may have another name."""
UNITS = {
    "inche", "feet", "mile", "minute", "min", "hour", "second", "sec", "meter", "gram", "pound", "day", "cent",
    "dollar", "year", "week",
}  # fmt: skip
LINKS = {"and", "the", "for", "are", "with", "where", "when", "then", "all", "any"}


def _other_lists(gold: str) -> Iterator[str]:
    """One member more, one less, and two of a tuple exchanged."""
    match = re.fullmatch(
        r"(\$?(?:\\left)?[(\[]|\$?)([^()\[\]{},;=$]+),([^()\[\]{},;=$]+)((?:\\right)?[)\]]\$?|\$?)", gold
    )
    if not match or re.fullmatch(r"\s*[0-9]{3}\s*", match.group(3)):
        return
    opening, one, other, closing = match.groups()
    yield f"{opening}{one},{other},17{closing}"
    yield f"{opening}{one}{closing}"
    if opening.strip("$") and one.strip() != other.strip():
        yield f"{opening}{other},{one}{closing}"


def _other_units(gold: str) -> Iterator[str]:
    """Another unit in the place of each."""
    for match in UNIT.finditer(gold):
        if match.group(2) in OTHER_UNITS:
            yield f"{gold[: match.start(2)]}{OTHER_UNITS[match.group(2)]}{gold[match.end() :]}"


def _renamed(gold: str) -> str | None:
    """Another variable throughout the first of several formulas."""
    match = re.search(r"\$([^$]+)\$", gold)
    if not match or gold.count("$") < 4 or "$$" in gold:
        return None
    letter = re.search(r"(?<![\\a-zA-Z])[a-z](?![a-zA-Z])", WORDS.sub("", match.group(1)))
    new = next((one for one in "wqvj" if one not in gold), None)
    if not letter or not new:
        return None
    formula = re.sub(rf"(?<![\\a-zA-Z]){letter.group()}(?![a-zA-Z])", new, match.group(1))
    return gold[: match.start(1)] + formula + gold[match.end(1) :]


def _appended(gold: str, end: str) -> str:
    """Inside the last dollar where there is one, so that it belongs to the formula."""
    return gold[:-1] + end + "$" if gold.endswith("$") and gold.count("$") == 2 and gold.startswith("$") else gold + end


def _dollars(gold: str) -> str:
    if gold.startswith("$") and gold.endswith("$") and gold.count("$") == 2:
        return gold[1:-1]
    return gold if "$" in gold else f"${gold}$" if not WORD_LIKE.search(gold) else gold


def _spaced(gold: str) -> str:
    return WORDS.sub(r"\1", re.sub(r"(?<=[\w})])\s*([+=])\s*(?=[\w\\({])", r" \1 ", gold))


def _tight(gold: str) -> str:
    """Without the spaces that mean nothing: none between letters, digits or behind a command."""
    pieces = WORDS.split(gold)
    if WORD_LIKE.search(" ".join(pieces[::2])):
        return gold
    tight = [re.sub(r"(?<=[^a-zA-Z0-9\\\s]) +| +(?=[^a-zA-Z0-9\\\s])", "", one) for one in pieces[::2]]
    return "".join(one for pair in zip(tight, [*pieces[1::2], ""], strict=True) for one in pair)


def _left_and_right(gold: str) -> str:
    if "\\left" in gold:
        return re.sub(r"\\(?:left|right)\s*(?=[()\[\]|]|\\[{}])", "", gold)
    return re.sub(r"\(([^()\[\]]*)\)", r"\\left(\1\\right)", gold) if gold.count("(") == gold.count(")") else gold


def _as_characters(gold: str) -> str:
    """Signs as Unicode has them."""
    for command, character in {
        "\\pi": "π", "\\infty": "∞", "\\le": "≤", "\\ge": "≥", "\\leq": "≤", "\\geq": "≥"
    }.items():  # fmt: skip
        gold = re.sub(re.escape(command) + "(?![a-zA-Z])", character, gold)
    return re.sub(r"-(?=\s*[0-9a-zA-Z\\(])", "−", gold) if "\\begin" not in gold else gold
