"""The one reader of completions: where the program, the query or the final answer stands in a text.

Training, the judge server's /submit, `rlvr judge`, `rlvr credit` and the segmentation into steps all read with these
functions, so they always judge and cut the same characters. Only what follows the last </think> is read, and a <think>
after it hides everything. A block is opened by a line of three or more ` or ~ with at most one word that counts, its
language, and closed by a line of nothing but the same sign, at least as often; other fences between the two are text.

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

LONGEST = 200_000
LONGEST_QUERY = 20_000
LONGEST_BOX = 4000
PYTHON = ("python", "py", "python3", "")
SQL = ("sql", "sqlite", "")
SPACE = " \t\r\n"
TICKS = re.compile(r"```|~~~")
FENCE = re.compile(r"[ \t]{0,20}(`{3,99}|~{3,99})[ \t]{0,20}([\w+#.-]{0,20})")
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
    start: int
    closed: bool = True


def after_thinking(text: str, must_think: bool = False) -> str | None:
    """What follows the last </think>; None while thinking goes on, or when it never happened and had to."""
    _, closed, tail = text.rpartition("</think>")
    if "<think>" in tail or (must_think and not closed):
        return None
    return tail


@lru_cache(maxsize=4)  # one answer is read several times in a row: for its kind, its program, its query
def blocks(text: str) -> tuple[Block, ...]:
    """All fenced blocks in order; only the last one can be unclosed."""
    done: list[Block] = []
    fence, language, begin = "", "", 0
    for at, line in _lines_with_ticks(text):
        mark = FENCE.match(line)
        if not fence and mark:
            fence, language, begin = mark.group(1), mark.group(2).lower(), min(at + len(line) + 1, len(text))
        elif fence and mark and mark.group(1).startswith(fence) and not line[mark.end(1) :].strip():
            done.append(Block(language, text[begin:at], begin))
            fence = ""
    return (*done, Block(language, text[begin:], begin, closed=False)) if fence else tuple(done)


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
    code, start, continues = tail, len(text) - len(tail), False
    if fenced_blocks := blocks(tail):
        python = [block for block in fenced_blocks if block.language in PYTHON]
        if not python:
            return Found(None, "no code block in python")
        chosen = next((block for block in reversed(python) if block.closed), python[-1])
        if not chosen.code.strip():
            return Found(None, "the code block is empty")
        code, start = chosen.code, start + chosen.start
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
    return Found(program, span=(start, start + len(code)))


def query_in(text: str, must_think: bool = False) -> Found:
    """The SQL query, without the white space around it."""
    tail = after_thinking(text, must_think)
    if tail is None:
        return Found(None, "thinking never ended, or never happened")
    start = len(text) - len(tail)
    if fenced_blocks := blocks(tail):
        if not fenced_blocks[-1].closed or fenced_blocks[-1].language not in SQL:
            return Found(None, "the last block is not a closed one in sql")
        code, start = fenced_blocks[-1].code, start + fenced_blocks[-1].start
    elif "```" not in tail and QUERY.match(tail.lstrip(SPACE)):
        code = tail
    else:
        return Found(None, "no query: only prose")
    start += len(code) - len(code.lstrip(SPACE))
    code = code.strip(SPACE)
    if not code or len(code) > LONGEST_QUERY:
        return Found(None, "an empty query" if not code else f"a query of {len(code):,} characters")
    return Found(code.replace("\r\n", "\n"), span=(start, start + len(code)))


def value_in(text: str) -> Found:
    """A value or a printed text that is asked for alone or in a block."""
    tail = after_thinking(text)
    if tail is None or len(tail) > LONGEST:
        return Found(None, "thinking never ended" if tail is None else f"an answer of {len(tail):,} characters")
    block = (Block("", tail, 0), *blocks(tail))[-1]
    start = len(text) - len(tail) + block.start
    if not block.code.strip():
        return Found(None, "no answer after the thinking")
    return Found(block.code.replace("\r\n", "\n"), span=(start, start + len(block.code)))


def fenced(tail: str, languages: Collection[str]) -> str | None:
    """The content of the last block when it is closed and in one of these languages."""
    last = blocks(tail)[-1:]
    return last[0].code.strip(SPACE) if last and last[0].closed and last[0].language in languages else None


def boxed(tail: str) -> str | None:
    """The content of the last \\\\boxed{…}; None when there is none, it never closes or is endless."""
    start = tail.rfind("\\boxed{")
    if start < 0:
        return None
    begin, depth = start + len("\\boxed{"), 1
    for match in BRACE.finditer(tail, begin, begin + LONGEST_BOX):
        depth += {"{": 1, "}": -1}.get(match.group(), 0)
        if depth == 0:
            return tail[begin : match.start()].strip(SPACE)
    return None


def hashed(tail: str) -> str | None:
    """The rest of the line after the only ####; two of them are a hedge."""
    if tail.count("####") != 1 or "#####" in tail:
        return None
    return tail.partition("####")[2].partition("\n")[0].strip(SPACE) or None


def tagged(tail: str) -> str | None:
    """The content of the only <answer>…</answer>; two of them are a hedge."""
    if tail.count("<answer>") != 1 or tail.count("</answer>") != 1:
        return None
    content, closed, _ = tail.partition("<answer>")[2].partition("</answer>")
    return content.strip(SPACE) if closed else None


def python_block(program: str) -> str:
    """A program written as an answer, as program_in reads it."""
    return f"```python\n{program.rstrip()}\n```\n"
