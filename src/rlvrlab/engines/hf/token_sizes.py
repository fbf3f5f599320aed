"""Tokenizers that make much of little: tokens as long as books, and rules that write a text anew and longer each time.

They come with a model, and the library that runs them has no bounds of its own but for patterns.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from rlvrlab import plain_files
from rlvrlab.errors import UserError

LONGEST_TOKEN = 1 << 14
"""Characters; the longest of models are runs of a few hundred blanks."""
MOST_GROWTH = 16
"""Times its length that a text may come out of all rules; those of models replace a sign by another."""
LONGEST_BEFORE = 1000
"""Characters that may be put before a text."""
MOST_RULES = 200


def refuse_long_tokens(path: Path) -> None:
    """UserError where a token of a tokenizer.json is longer than any: an answer of a thousand would fill the memory."""
    try:
        content = plain_files.read_bytes(path)
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}); fetch the model again") from None
    signs = np.frombuffer(content, dtype=np.uint8)
    quotes = np.flatnonzero((signs[1:] == ord('"')) & (signs[:-1] != ord("\\")))
    if not len(quotes) or int(np.diff(quotes).max(initial=0)) <= LONGEST_TOKEN:
        return  # no text between two quotes is so long, and most files end here
    longest = max(map(len, _tokens(content)), default=0)
    if longest > LONGEST_TOKEN:
        text = f"a token of {longest} characters, at most {LONGEST_TOKEN} are read; give the model another tokenizer"
        raise UserError(f"{path}: {text}")


def _tokens(content: bytes) -> list[str]:
    """None where the file is not one; the library tells of it."""
    try:
        whole = json.loads(content)
        vocab = whole["model"]["vocab"]
        known = list(vocab) if isinstance(vocab, dict) else [one[0] for one in vocab]
        return [str(one) for one in (*known, *(token["content"] for token in whole["added_tokens"]))]
    except (ValueError, LookupError, TypeError, RecursionError):
        return []


def growth_of(inner: Any) -> str | None:
    """Why the rules of a tokenizer (of the library's) make too much of a text, or None where they do not."""
    for part in ("normalizer", "decoder"):
        held = getattr(inner, part, None)
        rules = [] if held is None else _rules(json.loads(held.__getstate__()))
        if len(rules) > MOST_RULES:
            return f"{part} has {len(rules)} rules, at most {MOST_RULES} are run"
        factor, before = 1.0, 0
        for rule in rules:
            factor *= _factor(rule)
            before = max(before, len(rule.get("prepend") or "") if rule.get("type") == "Prepend" else 0)
        if factor > MOST_GROWTH or before > LONGEST_BEFORE:
            most = f"{MOST_GROWTH} times its length, and {LONGEST_BEFORE} characters before it, are the most"
            return f"{part} makes a text longer and longer; {most}"
    return None


def _rules(state: Any) -> list[dict[str, Any]]:
    """One after the other, however they lie in one another."""
    found, left = [], [state]
    while left:
        one = left.pop()
        inner = one.get("normalizers", one.get("decoders")) if isinstance(one, dict) else None
        if isinstance(inner, list):
            left += inner[::-1]
        elif isinstance(one, dict):
            found.append(one)
    return found


def _factor(rule: dict[str, Any]) -> float:
    if rule.get("type") != "Replace":
        return 1.0
    pattern = rule.get("pattern") or {}
    least = max(1, len(pattern.get("String") or ""))  # a pattern may be any one character
    return max(1.0, len(rule.get("content") or "") / least)
