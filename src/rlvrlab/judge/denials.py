"""Whether the words beside an answer take it back: the one decision for all that is read from prose.

    The answer is not [0, 1, 2]        It isn't $\\\\boxed{5}$        [0, 1, 2] is wrong        denied
    not 4 but \\\\boxed{5}        no two of them are adjacent: [0, 2]        prime or not? #### 5        not denied

A denial is a word that says no with nothing but words like `the right answer` between it and the answer, on the same
line. Any other sentence with a `not` in it may speak of something else, and right answers are full of them.
"""

from __future__ import annotations

import re

WINDOW = 120
"""Characters before and after an answer that are looked at."""
GAP = r"[ \t*_$#\"'`“”‘’(\\]"
NOUNS = "answer|result|solution|list|path|tour|route|set|order|value|number|one|sequence|mapping|subset|cover|clique"
FILLER = (
    r"(?:(?:be|equal|to|the|a|an|my|our|really|actually|simply|exactly|necessarily|certainly|right|correct|best|final"
    rf"|optimal|shortest|valid|following|given|by|{NOUNS})\b{GAP}*)"
)
NO = (
    r"(?:(?<!\bor )(?<!\bwhether )\bnot|\b(?:is|are|was|were|does|do|can|could|should|would|wo|ca)n['’]?t|\bcannot"
    r"|\bnever|\bneither|\bnor|\b(?:anything|everything|all|nothing) (?:but|except))"
)
FALSE = r"\b(?:wrong|incorrect|false|invalid|untrue|mistaken)\b"
BEFORE = re.compile(
    rf"(?:{NO}\b{GAP}+(?:{FILLER}{{1,6}}:?{GAP}*)?"
    rf"|{FALSE} (?:final )?(?:{NOUNS})\b{GAP}*(?:is|are|was|would be)?:?{GAP}*)$",
    re.IGNORECASE,
)
"""Directly behind a `not` there is no colon: `a solution does not exist: 0`."""
BE = r"(?:is|are|was|were|would be|can be|could be|will be|must be)"
AFTER = re.compile(
    r"[ \t*_$\"'`“”‘’)\]}\\]{0,9}(?:, (?:which|that) )?"
    rf"(?:(?:{BE}(?: certainly| definitely| clearly)? (?:not|never)|(?:is|are|was|were)n['’]?t"
    r"|(?:cannot|can['’]?t|could not) be)"
    rf" (?:(?:the|a|an|my|our) )?(?:right|correct|best|final|optimal|valid|true|what|it|{NOUNS})\b"
    rf"|{BE} (?:{FALSE}|no (?:{NOUNS})\b))",
    re.IGNORECASE,
)


def is_denied(text: str, start: int, end: int) -> bool:
    """Do the words right before or right after this part of a text say that it is not the answer?"""
    begin = max(0, start - WINDOW)
    begin = max(begin, text.rfind("\n", begin, start) + 1)
    after = text[end : end + WINDOW].partition("\n")[0]
    return BEFORE.search(text[begin:start]) is not None or AFTER.match(after) is not None
