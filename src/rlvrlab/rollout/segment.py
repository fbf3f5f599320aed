"""Where an answer's steps are looked for: in the program or query that is judged, in its tool calls, or in its prose.

    auto   ```sql or SELECT … -> sql;  ```python or text that looks like a program -> python;
           a tool's result in the text -> turns;  anything else -> text
The program or query is the one that training judges: judge/extract.py finds it for both.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache

from rlvrlab.envs.python_trees import parses
from rlvrlab.judge.extract import SQL, Found, blocks, program_in, query_in
from rlvrlab.judge.thinking import after_thinking, last_thought
from rlvrlab.rollout.python_steps import canonical_python, python_steps
from rlvrlab.rollout.segments import Edited, Kind, Segments, Span
from rlvrlab.rollout.sql_steps import canonical_sql, sql_steps
from rlvrlab.rollout.text_steps import RESULT, character_steps, text_steps, turn_steps, word_steps

PLAIN = {"turns": turn_steps, "words": word_steps, "characters": character_steps}


@lru_cache(maxsize=512)  # answers of one group are often equal
def segment(text: str, kind: str = "auto") -> Segments:
    """The steps of an answer; what is in no step is glue."""
    if kind == "auto":
        kind = _kind(text)
    if kind == "python":
        return python_steps(text, _region(text, program_in(text)))
    if kind == "sql":
        return sql_steps(text, _region(text, query_in(text)))
    return PLAIN.get(kind, text_steps)(text)


def sound(segments: Segments, edited: Edited) -> bool:
    """Can the altered answer be what it was meant to be? Only Python is parsed; a query is left to its verifier."""
    return segments.kind != "python" or segments.broken or parses(segments.header + edited.code)


def canonical(kind: Kind, edited: Edited) -> tuple[str, str, str]:
    """Equal for answers that differ only in the layout of their program."""
    before, after = edited.around
    if kind == "python":
        return before, canonical_python(edited.code), after
    return before, canonical_sql(edited.code) if kind == "sql" else edited.code, after


def statements_of(segments: Segments, kind: str) -> list[str]:
    """A short name of each step that is equal for steps of this kind which differ only in their layout."""
    texts = (segments.piece(step.index) for step in segments.steps)
    alone = (Edited(text, "valid", text.strip(), ("", "")) for text in texts)
    pieces = (canonical(segments.kind, one)[1] for one in alone)
    return [hashlib.sha256(f"{kind}\0{piece}".encode("utf-8", "surrogatepass")).hexdigest()[:12] for piece in pieces]


def _kind(text: str) -> str:
    fenced = blocks(after_thinking(text) or "")
    if query_in(text).code is not None and (not fenced or fenced[-1].language):
        return "sql"
    if RESULT.search(text):
        return "turns"
    if program_in(text).code is not None:
        return "python"
    return "sql" if fenced and fenced[-1].language in SQL else "text"


def _region(text: str, found: Found) -> Span:
    """Where the program stands that is judged; in an answer without one, its last block or all that was not thought."""
    if found.code is not None:
        return found.span
    start, _ = last_thought(text)
    last = blocks(text[start:])[-1:]
    return (start + last[0].start, start + last[0].end) if last else (start, len(text))
