"""Where an answer's steps are looked for: in its last block of code, in its tool calls, or in its prose.

    auto   ```sql or SELECT … -> sql;  ```python or text that looks like a program -> python;
           a tool's result in the text -> turns;  anything else -> text
What was thought before </think> is no program. Everything takes one look at each line, for a policy finds texts on
which cleverer ways take for ever.
"""

from __future__ import annotations

import re
from functools import lru_cache

from rlvrlab.envs.code.answer import CODE_LIKE, MARK, PYTHON
from rlvrlab.envs.code.trees import parses
from rlvrlab.rollout.python_steps import canonical_python, python_steps
from rlvrlab.rollout.segments import Edited, Kind, Segments, Span
from rlvrlab.rollout.sql_steps import canonical_sql, sql_steps
from rlvrlab.rollout.text_steps import RESULT, text_steps, turn_steps, word_steps

QUERY = re.compile(r"\s*(?:SELECT|WITH)\b", re.IGNORECASE)
SQL = ("sql", "sqlite", "postgres", "duckdb", "")


@lru_cache(maxsize=512)  # answers of one group are often equal
def segment(text: str, kind: str = "auto") -> Segments:
    """The steps of an answer; what is in no step is glue."""
    start = len(text) - len(text.rpartition("</think>")[2])
    fences = _fences(text, start)
    if kind == "auto":
        languages = {language for language, _ in fences}
        lines = [] if fences else text[start:].split("\n")
        if "sql" in languages or (not fences and QUERY.match(text, start)):
            kind = "sql"
        elif RESULT.search(text):
            kind = "turns"
        elif languages & set(PYTHON) or any(CODE_LIKE.match(line[:200].lstrip()) for line in lines):
            kind = "python"
    if kind == "python":
        return python_steps(text, _last(fences, PYTHON) or (start, len(text)))
    if kind == "sql":
        return sql_steps(text, _last(fences, SQL) or (start, len(text)))
    return {"turns": turn_steps, "words": word_steps}.get(kind, text_steps)(text)


def sound(segments: Segments, edited: Edited) -> bool:
    """Can the altered answer be what it was meant to be? Only Python is parsed; a query is left to its verifier."""
    return segments.kind != "python" or segments.broken or parses(segments.header + edited.code)


def canonical(kind: Kind, edited: Edited) -> tuple[str, str, str]:
    """Equal for answers that differ only in the layout of their program."""
    before, after = edited.around
    if kind == "python":
        return before, canonical_python(edited.code), after
    return before, canonical_sql(edited.code) if kind == "sql" else edited.code, after


def _last(fences: list[tuple[str, Span]], languages: tuple[str, ...]) -> Span | None:
    """The content of the last block in one of these languages."""
    return next((span for language, span in reversed(fences) if language in languages), None)


def _fences(text: str, at: int) -> list[tuple[str, Span]]:
    """Language and content of each fenced block, an unfinished one only where there is no other."""
    blocks: list[tuple[str, Span]] = []
    fence, language, begin = "", "", 0
    for line in text[at:].split("\n"):
        mark = MARK.match(line) if "```" in line or "~~~" in line else None
        if not fence and mark:
            fence, language, begin = mark.group(1), mark.group(2).lower(), min(at + len(line) + 1, len(text))
        elif fence and mark and mark.group(1).startswith(fence) and not line[mark.end(1) :].strip():
            blocks.append((language, (begin, at)))
            fence = ""
        at += len(line) + 1
    return blocks or ([(language, (begin, len(text)))] if fence else [])
