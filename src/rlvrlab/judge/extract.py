"""The one reader of completions: where the program, the query or the final answer stands in a text.

Training, the judge server's /submit, `rlvr judge`, `rlvr credit` and the segmentation into steps all read with these
functions, so they always judge and cut the same characters. Only what follows the last </think> is read, and a <think>
after it hides everything, however the tags are spelled (thinking.py). A value that the words beside it deny, such as
`not \\boxed{5}`, is no answer (denials.py); a program or query is what it does.

A block is opened by a line of three or more ` or ~ with at most one word that counts, its language, and closed by a
line of nothing but the same sign, at least as often; other fences between the two are text. A block in a list is
indented: what its opening fence is indented by (a list's mark counts) is taken away from each of its lines, as
CommonMark does, but never more than its first line is indented by: some write only the fences like that.

|                       | program_in                        | query_in                         | value_in         |
|-----------------------|-----------------------------------|----------------------------------|------------------|
| blocks that count     | python, py, python3, no language  | sql, sqlite, no language         | any language     |
| several blocks        | the last closed one that counts   | the last, none if it cannot count| the last         |
| a block never closed  | counts where no other one does    | no query                         | all there is     |
| no block at all       | the text, if a line is like code  | the text, if it starts a query   | the text         |
| too long              | over 200,000 after the thinking   | a query over 20,000              | as for a program |

Line ends \\r\\n become \\n. Everything takes one look at each line: searching pairs of fences by a regular expression
takes time that grows with the square of the text, and a policy finds such texts.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import lru_cache
from typing import NamedTuple

from rlvrlab.judge.denials import is_denied
from rlvrlab.judge.thinking import after_thinking

LONGEST = 200_000
LONGEST_QUERY = 20_000
LONGEST_BOX = 4000
PYTHON = ("python", "py", "python3", "")
SQL = ("sql", "sqlite", "")
SPACE = " \t\r\n"
TICKS = re.compile(r"```|~~~")
FENCE = re.compile(r"[ \t]{0,20}((?:[-*+]|[0-9]{1,9}[.)])[ \t]{1,4})?(`{3,99}|~{3,99})[ \t]{0,20}([\w+#.-]{0,20})")
"""Blanks, a list's mark, the fence, its language."""
TAB = 4
"""Columns from one stop of the tabulator to the next, as CommonMark counts them."""
CODE_LIKE = re.compile(
    r"(?:def |class |import |from |print\(|@|#|\w+(?:, ?\w+)* ?[-+*/]?=|for |while |if |return |async )"
)
INDENTED = re.compile(r"[ \t]+\S")
QUERY = re.compile(r"(?:SELECT|WITH)\b", re.IGNORECASE)
BRACE = re.compile(r"\\[\\{}]|[{}]")


class Found(NamedTuple):
    """A program, query or value, or the reason there is none."""

    code: str | None
    reason: str = ""
    span: tuple[int, int] = (0, 0)
    """Where it stands in the completion."""


class Block(NamedTuple):
    """What stands between two fences."""

    language: str
    code: str
    """Without the indentation of the fence."""
    start: int
    end: int
    """Where it stands in the text, with that indentation."""
    closed: bool = True


@lru_cache(maxsize=4)  # one answer is read several times in a row: for its kind, its program, its query
def blocks(text: str) -> tuple[Block, ...]:
    """All fenced blocks in order; only the last one can be unclosed."""
    done: list[Block] = []
    fence, language, columns, begin = "", "", 0, 0
    for at, line in _lines_with_ticks(text):
        mark = FENCE.match(line)
        if not fence and mark:
            fence, language, begin = mark.group(2), mark.group(3).lower(), min(at + len(line) + 1, len(text))
            columns = len(line[: mark.start(2)].expandtabs(TAB))
        elif fence and mark and _closes(fence, line, mark):
            done.append(Block(language, _dedented(text[begin:at], columns), begin, at))
            fence = ""
    if fence:
        done.append(Block(language, _dedented(text[begin:], columns), begin, len(text), closed=False))
    return tuple(done)


def _closes(fence: str, line: str, mark: re.Match[str]) -> bool:
    """Nothing but the same sign, at least as often."""
    return mark.group(1) is None and mark.group(2).startswith(fence) and not line[mark.end(2) :].strip()


def _dedented(code: str, columns: int) -> str:
    """The lines without their first columns, as far as these are blank and the first line has them."""
    lines = code.split("\n") if columns else []
    first = next((line for line in lines if line.strip()), "")
    columns = min(columns, len(first[: len(first) - len(first.lstrip(" \t"))].expandtabs(TAB)))
    return "\n".join(_without_columns(line, columns) for line in lines) if columns else code


def _without_columns(line: str, columns: int) -> str:
    """What is left of a tabulator that reaches further stays as blanks."""
    at = width = 0
    while width < columns and line[at : at + 1] in (" ", "\t"):
        width += TAB - width % TAB if line[at] == "\t" else 1
        at += 1
    return " " * (width - columns) + line[at:]


def _lines_with_ticks(text: str) -> Iterator[tuple[int, str]]:
    """The lines that may be fences, with where they begin; all others are passed over at the speed of a search."""
    end = -1
    for ticks in TICKS.finditer(text):
        if ticks.start() > end:
            begin = text.rfind("\n", end + 1, ticks.start()) + 1 or end + 1
            end = text.find("\n", ticks.start())
            end = len(text) if end < 0 else end
            yield begin, text[begin:end]


def program_in(text: str, entry_point: str = "", begun: str = "") -> Found:
    """The whole Python program; an answer that only continues `begun` is put behind it."""
    tail = after_thinking(text)
    if tail is None:
        return Found(None, "thinking never ended")
    if len(tail) > LONGEST:
        return Found(None, f"an answer of {len(tail):,} characters; at most {LONGEST:,}")
    code, start, end, continues = tail, len(text) - len(tail), len(text), False
    if fenced_blocks := blocks(tail):
        python = [block for block in fenced_blocks if block.language in PYTHON]
        if not python:
            return Found(None, "no code block in python")
        chosen = next((block for block in reversed(python) if block.closed), python[-1])
        if not chosen.code.strip():
            return Found(None, "the code block is empty")
        code, start, end = chosen.code, start + chosen.start, start + chosen.end
    else:
        lines = tail.split("\n")
        continues = INDENTED.match(next((line for line in lines if line.strip()), "")) is not None
        if not (begun and continues) and not any(CODE_LIKE.match(line[:200].lstrip()) for line in lines):
            return Found(None, "no code: only prose")
    program = code.replace("\r\n", "\n")
    name = re.escape(entry_point)
    binding = rf"^(?:async def|def|class) {name}\b|^{name} ?="
    if begun and (continues or (name and not re.search(binding, program, re.MULTILINE))):
        program = begun + program
    return Found(program, span=(start, end))


def query_in(text: str, must_think: bool = False) -> Found:
    """The SQL query, without the white space around it."""
    tail = after_thinking(text, must_think)
    if tail is None:
        return Found(None, "thinking never ended, or never happened")
    start = len(text) - len(tail)
    if fenced_blocks := blocks(tail):
        if not fenced_blocks[-1].closed or fenced_blocks[-1].language not in SQL:
            return Found(None, "the last block is not a closed one in sql")
        block = fenced_blocks[-1]
    elif "```" not in tail and QUERY.match(tail.lstrip(SPACE)):
        block = Block("", tail, 0, len(tail))
    else:
        return Found(None, "no query: only prose")
    code, written = block.code.strip(SPACE), tail[block.start : block.end]
    start += block.start + len(written) - len(written.lstrip(SPACE))
    if not code or len(code) > LONGEST_QUERY:
        return Found(None, "an empty query" if not code else f"a query of {len(code):,} characters")
    return Found(code.replace("\r\n", "\n"), span=(start, start + len(written.strip(SPACE))))


def value_in(text: str) -> Found:
    """A value or a printed text that is asked for alone or in a block."""
    tail = after_thinking(text)
    if tail is None or len(tail) > LONGEST:
        return Found(None, "thinking never ended" if tail is None else f"an answer of {len(tail):,} characters")
    block = (Block("", tail, 0, len(tail)), *blocks(tail))[-1]
    start = len(text) - len(tail)
    if not block.code.strip() or _is_denied(tail, block):
        return Found(None, "no answer after the thinking")
    return Found(block.code.replace("\r\n", "\n"), span=(start + block.start, start + block.end))


def fenced(tail: str, languages: Collection[str]) -> str | None:
    """The content of the last block when it is closed and in one of these languages."""
    last = blocks(tail)[-1:]
    if not last or not last[0].closed or last[0].language not in languages or _is_denied(tail, last[0]):
        return None
    return last[0].code.strip(SPACE)


def _is_denied(tail: str, block: Block) -> bool:
    """By the line before its opening fence."""
    opening = tail.rfind("\n", 0, max(0, block.start - 1))
    line = tail[tail.rfind("\n", 0, opening) + 1 : opening] + " " if opening > 0 else ""
    return is_denied(line, len(line), len(line))


def boxed(tail: str) -> str | None:
    """The content of the last \\\\boxed{…}; None when there is none, it never closes, is endless or denied."""
    start = tail.rfind("\\boxed{")
    if start < 0:
        return None
    begin, depth = start + len("\\boxed{"), 1
    for match in BRACE.finditer(tail, begin, begin + LONGEST_BOX):
        depth += {"{": 1, "}": -1}.get(match.group(), 0)
        if depth == 0:
            denied = is_denied(tail, start, match.end())
            return None if denied else tail[begin : match.start()].strip(SPACE)
    return None


def hashed(tail: str) -> str | None:
    """The rest of the line after the only ####; two of them are a hedge."""
    if tail.count("####") != 1 or "#####" in tail:
        return None
    place = tail.index("####")
    if is_denied(tail, place, len(tail)):
        return None
    return tail.partition("####")[2].partition("\n")[0].strip(SPACE) or None


def tagged(tail: str) -> str | None:
    """The content of the only <answer>…</answer>; two of them are a hedge."""
    if tail.count("<answer>") != 1 or tail.count("</answer>") != 1:
        return None
    start, end = tail.index("<answer>"), tail.index("</answer>")
    if end < start or is_denied(tail, start, end + len("</answer>")):
        return None
    return tail[start + len("<answer>") : end].strip(SPACE)


def python_block(program: str) -> str:
    """A program written as an answer, as program_in reads it."""
    return f"```python\n{program.rstrip()}\n```\n"
