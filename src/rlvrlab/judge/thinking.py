"""Where thinking ends: the one decision about its tags, however they are spelled.

after_thinking("<think>7?</think> 5") = " 5"      after_thinking("<THINK>5") = after_thinking("<thinking>5") = None

What is only thought is no answer, so every spelling of a tag hides it: models write <think>, <Think>, <thinking>,
<thought>, <|think|>, <reasoning> or [THINK]. Only `</think>` closes whatever was opened; another spelling closes its
own. Where a prompt asks for thinking, it asks for <think> and </think>, and nothing else is what was asked for.
"""

from __future__ import annotations

import re

CLOSING = "</think>"
NAMES = ("think", "thinking", "thought", "thoughts", "reasoning", "scratchpad")
TAG = re.compile(
    rf"[<\[](?:(?<=<)[\s|]{{0,3}}(/?)[\s|]{{0,3}}((?i:{'|'.join(NAMES)}))(?![\w-])[^<>]{{0,100}}>|(?<=\[)(/?)(THINK)\])"
)
"""An opening or closing tag. One in square brackets opens at the beginning of a line alone: a list may hold a name."""
INDENTED = 10
BEGINS_A_LINE = re.compile(r"(?:\n|\A)[ \t]*\Z")
"""The characters before such a tag, at most INDENTED."""
SPELLINGS = (
    ("<THINK>", "</THINK>"), ("<Think>", "</Think>"), ("< think >", "</ think >"), ("<think time=1>", "</think >"),
    ("<thinking>", "</thinking>"), ("<Thinking>", "</Thinking>"), ("<thought>", "</thought>"),
    ("<|think|>", "<|/think|>"), ("<reasoning>", "</reasoning>"), ("<scratchpad>", "</scratchpad>"),
    ("[THINK]", "[/THINK]"),
)  # fmt: skip
"""Pairs of tags beside <think> and </think>, to try."""


def after_thinking(text: str, must_think: bool = False) -> str | None:
    """What follows the last closing tag; None while thinking goes on, or when it never happened and had to."""
    end, goes_on = last_thought(text)
    return None if goes_on or (must_think and CLOSING not in text) else text[end:]


def last_thought(text: str) -> tuple[int, bool]:
    """Where the last closing tag ends, and whether thinking goes on at the end of the text."""
    end, opened = 0, set[str]()
    lowered = text.lower()
    if not any(name in lowered for name in NAMES):
        return end, False
    for tag in TAG.finditer(text):
        name = (tag[2] or tag[4]).lower()
        if not (tag[1] or tag[3]):
            if tag[2] or BEGINS_A_LINE.search(text, max(0, tag.start() - INDENTED), tag.start()):
                opened.add(name)
            continue
        opened = set() if name == "think" else opened - {name}
        end = tag.end()
    return end, bool(opened)
