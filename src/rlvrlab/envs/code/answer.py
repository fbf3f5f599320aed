"""The program in an answer: the last fenced block after the last </think>, or bare code.

| answer                                               | verdict                                     |
|------------------------------------------------------|---------------------------------------------|
| several blocks, also conflicting ones                | the last one is judged, the others are talk |
| a block that never ends                              | what there is of it is judged               |
| no block, and the text looks like code               | the text is judged                          |
| no block and prose, empty, or only other languages   | format                                      |
| still thinking: <think> without </think> after it    | format                                      |
| more than LONGEST characters after the thinking      | format                                      |
| NUL, lone surrogates, anything that does not compile | syntax                                      |

Everything here takes one look at each line: a search for pairs of fences by a regular expression takes time that grows
with the square of the text, and a policy finds such texts.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from rlvrlab.envs.answers import after_thinking

LONGEST = 200_000
PYTHON = ("python", "py", "python3", "")
MARK = re.compile(r"[ \t]{0,20}(`{3,99}|~{3,99})[ \t]{0,20}([\w+#.-]{0,20})")
CODE_LIKE = re.compile(
    r"(?:def |class |import |from |print\(|@|#|\w+(?:, ?\w+)* ?[-+*/]?=|for |while |if |return |async )"
)
CONTINUES = re.compile(r"[ \t]+\S")


class Found(NamedTuple):
    """A program, or the reason there is none."""

    code: str | None
    reason: str = ""


class Block(NamedTuple):
    """What stands between two fences."""

    language: str
    code: str
    closed: bool = True


def blocks(text: str) -> list[Block]:
    """All fenced blocks; the last may never end."""
    found: list[Block] = []
    fence, language, inside = "", "", list[str]()
    for line in text.split("\n"):
        mark = MARK.match(line) if "```" in line or "~~~" in line else None
        if not fence and mark:
            fence, language, inside = mark.group(1), mark.group(2).lower(), []
        elif fence and mark and mark.group(1).startswith(fence) and not line[mark.end(1) :].strip():
            found.append(Block(language, "".join(inside)))
            fence = ""
        elif fence:
            inside.append(f"{line}\n")
    return [*found, Block(language, "".join(inside), closed=False)] if fence else found


def program_in(text: str, entry_point: str = "", begun: str = "") -> Found:
    """The whole program; an answer that only continues `begun` is put behind it."""
    tail = after_thinking(text)
    if tail is None:
        return Found(None, "thinking never ended")
    if len(tail) > LONGEST:
        return Found(None, f"an answer of {len(tail):,} characters; at most {LONGEST:,}")
    tail = tail.replace("\r\n", "\n")
    found = blocks(tail)
    if not found:
        first = next((line for line in tail.split("\n") if line.strip()), "")
        if begun and CONTINUES.match(first):
            return Found(begun + tail)
        code_like = any(CODE_LIKE.match(line[:200].lstrip()) for line in tail.split("\n"))
        return _continued(tail, entry_point, begun) if code_like else Found(None, "no code: only prose")
    python = [block for block in found if block.language in PYTHON]
    chosen = next((block for block in reversed(python) if block.closed), python[-1] if python else None)
    if chosen is None:
        return Found(None, "no code block in python")
    return (
        _continued(chosen.code, entry_point, begun) if chosen.code.strip() else Found(None, "the code block is empty")
    )


def _continued(code: str, entry_point: str, begun: str) -> Found:
    return Found(begun + code if begun and entry_point and not defines(code, entry_point) else code)


def defines(code: str, name: str) -> bool:
    """Does it bind the name at the top level?"""
    return re.search(rf"^(?:async def|def|class) {re.escape(name)}\b|^{re.escape(name)} ?=", code, re.M) is not None


def fenced(program: str) -> str:
    """A program as an answer."""
    return f"```python\n{program.rstrip()}\n```\n"


def size(text: str) -> int:
    """Characters that count: layout does not, so joining lines by ; makes no program shorter."""
    return sum(map(len, text.replace(";", " ").split()))
