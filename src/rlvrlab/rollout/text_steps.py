"""Prose, tool calls and plain words in steps.

    text    paragraphs; a text of one paragraph in lines, one of one line in sentences. the tags of thinking are glue,
            <answer>…</answer> is one step.
    turns   what the assistant says together with the tool's result: neither is left without the other
    words   separated by white space, for tasks whose actions are single words
    characters   one by one, white space too, for tasks whose actions are single characters
Trap: removing a thought cannot change the verdict on an answer that stands after it, so for reasoning text only
truncate and resample say something; deleting tells which lines hold the answer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice

from rlvrlab.judge.thinking import TAG as THINKING
from rlvrlab.rollout.segments import Kind, Segments, Siblings, Span
from rlvrlab.types import Step

TAG = re.compile(rf"(?:(?:{THINKING.pattern})\s*)+|<answer>.*?</answer>\s*|<answer>.*\Z", re.DOTALL)
BLANKS = r"[^\S\n]"
PARAGRAPH = re.compile(rf"(?:{BLANKS}*+\S[^\n]*(?:\n|\Z))+\s*|{BLANKS}+")
LINE = re.compile(rf"{BLANKS}*+\S[^\n]*(?:\n\s*|\Z)|{BLANKS}+")
"""Both also match blanks alone, which are no unit: otherwise a search would begin anew at each of them."""
SENTENCE = re.compile(r"\S.*?(?:[.!?](?=\s)\s*|\Z)", re.DOTALL)
WORD = re.compile(r"\S+\s*")
RESULT = re.compile(
    r"<(tool_response|tool_result|observation|output|result)>.*?(?:</\1>|\Z)\s*"
    r"|^Observation:[^\n]*(?:\n(?!(?:Thought|Action|Final Answer|Answer)\b)[^\n]*)*(?:\n|\Z)",
    re.DOTALL | re.MULTILINE,
)
NOTHING = "observation: none\n"
"""Stands for a tool's result under the null intervention."""
MOST_STEPS = 100_000
"""The last one takes all that is left: an answer of more steps is junk, and each of them costs a microsecond."""
Unit = tuple[str, Span]
"""Kind and place of a step."""


def text_steps(text: str) -> Segments:
    """Prose between the tags, in the coarsest units that give more than one step, and the answers."""
    tags = list(TAG.finditer(text))
    for kind, pattern in (("paragraph", PARAGRAPH), ("line", LINE), ("sentence", SENTENCE)):
        units, at = list[Unit](), 0
        for tag in (*tags, None):
            end = tag.start() if tag else len(text)
            # No pattern takes blank lines in front; looking for one from each of their characters would be quadratic.
            first = end - len(text[at:end].lstrip())
            at = max(at, text.rfind("\n", at, first) + 1)
            units += [(kind, span) for span in _spans(pattern, text, at, end)] if first < end else []
            if tag is not None:
                units += [("answer", tag.span())] if tag.group().startswith("<answer>") else []
                at = tag.end()
        if len(units) > 1:
            break
    return _flat(text, "text", units)


def word_steps(text: str) -> Segments:
    """Each word with the space after it."""
    return _flat(text, "words", [("word", span) for span in _spans(WORD, text, 0, len(text))])


def character_steps(text: str) -> Segments:
    """Each character."""
    return _flat(text, "characters", [("character", (at, at + 1)) for at in range(len(text))])


def turn_steps(text: str) -> Segments:
    """Each assistant turn with its tool result; what follows the last result is the final turn."""
    turns, neutral, start = list[Unit](), list[str](), 0
    for match in RESULT.finditer(text):
        turns.append(("turn", (start, match.end())))
        neutral.append(text[start : match.start()] + NOTHING)
        start = match.end()
    if text[start:].strip():
        turns.append(("final", (start, len(text))))
        neutral.append("")
    return _flat(text, "turns", turns, neutral)


def _spans(pattern: re.Pattern[str], text: str, start: int, end: int) -> list[Span]:
    """Where the pattern matches, MOST_STEPS times at most."""
    spans = [match.span() for match in islice(pattern.finditer(text, start, end), MOST_STEPS)]
    if len(spans) == MOST_STEPS:
        spans[-1] = (spans[-1][0], end)
    return spans


def _flat(text: str, kind: Kind, units: list[Unit], neutral: Sequence[str] = ()) -> Segments:
    if len(units) > MOST_STEPS:
        last, end = units[MOST_STEPS - 1], units[-1][1][1]
        units, neutral = [*units[: MOST_STEPS - 1], (last[0], (last[1][0], end))], neutral[:MOST_STEPS]
    steps = [Step(i, name, span, text[span[0] : span[1]]) for i, (name, span) in enumerate(units)]
    siblings = [Siblings(tuple(range(len(steps))))] if steps else []
    return Segments.flat(text, kind, steps, siblings, neutral or [""] * len(steps), (0, len(text)))
