"""Prose, tool calls and plain words in steps.

    text    paragraphs; a text of one paragraph in lines, one of one line in sentences. <think> and </think> are glue,
            <answer>…</answer> is one step.
    turns   what the assistant says together with the tool's result: neither is left without the other
    words   separated by white space, for tasks whose actions are single words
Trap: removing a thought cannot change the verdict on an answer that stands after it, so for reasoning text only
truncate and resample say something; deleting tells which lines hold the answer.
"""

from __future__ import annotations

import re

from rlvrlab.rollout.segments import Kind, Segments, Siblings, Span
from rlvrlab.types import Step

TAG = re.compile(r"</?think>\s*|<answer>.*?</answer>\s*|<answer>.*\Z", re.DOTALL)
BLANKS = r"[^\S\n]"
PARAGRAPH = re.compile(rf"(?:{BLANKS}*+\S[^\n]*(?:\n|\Z))+\s*|{BLANKS}+")
LINE = re.compile(rf"{BLANKS}*+\S[^\n]*(?:\n\s*|\Z)|{BLANKS}+")
"""Both also match a blank line, which is no unit, for otherwise a search would begin anew at each of its blanks."""
SENTENCE = re.compile(r"\S.*?(?:[.!?](?=\s)\s*|\Z)", re.DOTALL)
WORD = re.compile(r"\S+\s*")
RESULT = re.compile(
    r"<(tool_response|tool_result|observation|output|result)>.*?(?:</\1>|\Z)\s*"
    r"|^Observation:[^\n]*(?:\n(?!(?:Thought|Action|Final Answer|Answer)\b)[^\n]*)*(?:\n|\Z)",
    re.DOTALL | re.MULTILINE,
)
NOTHING = "observation: none\n"


def text_steps(text: str) -> Segments:
    """Prose in its coarsest units of which there is more than one."""
    for kind, pattern in (("paragraph", PARAGRAPH), ("line", LINE), ("sentence", SENTENCE)):
        found = _units(text, pattern, kind)
        if len(found) > 1:
            break
    return _flat(text, "text", found)


def word_steps(text: str) -> Segments:
    """Each word with the space after it."""
    return _flat(text, "words", [("word", match.span()) for match in WORD.finditer(text)])


def turn_steps(text: str) -> Segments:
    """Each assistant turn with its tool result; what follows the last result is the final turn."""
    found, neutral, start = list[tuple[str, Span]](), list[str](), 0
    for match in RESULT.finditer(text):
        found.append(("turn", (start, match.end())))
        neutral.append(text[start : match.start()] + NOTHING)
        start = match.end()
    if text[start:].strip():
        found.append(("final", (start, len(text))))
        neutral.append("")
    return _flat(text, "turns", found, tuple(neutral))


def _units(text: str, pattern: re.Pattern[str], kind: str) -> list[tuple[str, Span]]:
    found, at = list[tuple[str, Span]](), 0
    for tag in (*TAG.finditer(text), None):
        end = tag.start() if tag else len(text)
        found += [(kind, match.span()) for match in pattern.finditer(text, at, end) if match.group().strip()]
        if tag is None:
            break
        if tag.group().startswith("<answer>"):
            found.append(("answer", tag.span()))
        at = tag.end()
    return found


def _flat(text: str, kind: Kind, found: list[tuple[str, Span]], neutral: tuple[str, ...] = ()) -> Segments:
    steps = tuple(Step(i, name, span, text[span[0] : span[1]]) for i, (name, span) in enumerate(found))
    siblings = (Siblings(tuple(range(len(steps)))),) if steps else ()
    return Segments(
        text,
        kind,
        steps,
        tuple(step.span for step in steps),
        (-1,) * len(steps),
        siblings,
        neutral or ("",) * len(steps),
        (0, len(text)),
    )
