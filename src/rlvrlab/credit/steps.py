"""Which token belongs to which step: from characters to tokens, whatever the tokenizer.

    text "a = 1\\nb" with steps [0, 6) and [6, 7)          tokens "a", " =", " 1\\n", "b", END
    token_spans    -> [0,1) [1,3) [3,6) [6,7) [7,7)        step_of_tokens -> 0 0 0 1 GLUE

Every token is in exactly one step or is glue. A token that reaches into several steps belongs to the one it shares most
characters with, the earlier one in a tie; glue is what touches no step (white space between steps, fences, the end).
Traps: a character may be cut over several tokens (bytes of UTF-8), and then each of them has that character; decoding
single tokens is not decoding their row (leading spaces, merged bytes), so that is only believed where it adds up.
Suffixes: T tokens, S steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from rlvrlab.batch import Ints

GLUE = -1
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
LONGEST_RUN = 64
"""Tokens in a row that may end inside a character."""
Decode = Callable[[Sequence[int]], str]


def token_spans(text: str, tokens: Sequence[int], decode: Decode) -> Ints:
    """Characters [start, end) of each token in `text`; an end token, or one past the text, is empty."""
    pieces = [decode([token]) for token in tokens]
    ends = None if REPLACEMENT in text else _piece_ends(text, tokens, pieces, decode)
    ends_T = np.array(_prefix_ends(text, tokens, decode) if ends is None else ends, dtype=np.int64)
    starts_T = np.concatenate([[0], ends_T[:-1]]) if len(ends_T) else ends_T
    # Tokens that add no whole character, yet are followed by one that does, are parts of it.
    part_T = np.array([piece != "" for piece in pieces], dtype=bool) & (ends_T < ends_T.max(initial=0))
    unfinished_T = (ends_T == starts_T) & (starts_T < len(text)) & part_T
    return np.stack([starts_T, np.where(unfinished_T, starts_T + 1, ends_T)], axis=1)


def step_of_tokens(spans_T2: Ints, steps: Sequence[tuple[int, int]]) -> Ints:
    """The step of each token, or GLUE; step spans do not overlap."""
    size = int(max(spans_T2.max(initial=0), max((end for _, end in steps), default=0)))
    owner = np.full(size + 1, GLUE, dtype=np.int64)
    for index, (start, end) in enumerate(steps):
        owner[start:end] = index
    step_T = np.full(len(spans_T2), GLUE, dtype=np.int64)
    for token, (start, end) in enumerate(spans_T2):
        inside = owner[start:end]
        touched, counts = np.unique(inside[inside != GLUE], return_counts=True)
        if len(touched):
            step_T[token] = touched[counts.argmax()]  # sorted, and argmax takes the first: a tie goes to the earlier
    return step_T


def _piece_ends(text: str, tokens: Sequence[int], pieces: Sequence[str], decode: Decode) -> list[int] | None:
    """Token by token, and together where a character is cut over several; None where single tokens do not add up."""
    ends, run, at = list[int](), list[int](), 0
    base = 0  # where the run of tokens began that is still in the middle of a character
    for token, piece in zip(tokens, pieces, strict=True):
        run.append(token)
        decoded = piece if len(run) == 1 else decode(run)
        whole = decoded.rstrip(REPLACEMENT)
        if at < len(text) and (len(run) > LONGEST_RUN or not text.startswith(whole, base)):
            return None
        at = min(base + len(whole), len(text))
        ends.append(at)
        if whole == decoded or at == len(text):
            base, run = at, []
    return ends if at == len(text) else None


def _prefix_ends(text: str, tokens: Sequence[int], decode: Decode) -> list[int]:
    """How much of the text is there after each token: the decoded prefix, less what is still half a character."""
    ends, known = [], 0
    for count in range(1, len(tokens) + 1):
        prefix = decode(tokens[:count])
        end = min(len(prefix), len(text))
        if prefix[known:end] == text[known:end] and not prefix.endswith(REPLACEMENT):
            known = max(known, end)
        while known < end and prefix[known] == text[known] and not (prefix[known] == REPLACEMENT and known + 1 == end):
            known += 1
        ends.append(known)
    if ends and decode(tokens) == text:
        ends[-1] = len(text)  # a text may truly end in a replacement character
    return ends
