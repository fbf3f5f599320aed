"""The program inside a completion: the one fenced block, or the whole text when it has no fence.

    "Here you go:\\n```python\\nprint(1)\\n```" -> "print(1)\\n"
Of several blocks the last one is the answer, as a person reading would take it, unless told otherwise.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from typing import Literal

OPENING = re.compile(r"[ \t]*(```+|~~~+)[ \t]*([\w+#.-]*)")
CODE_LIKE = re.compile(
    r"^[ \t]*(?:def |class |import |from |print\(|@|#|[A-Za-z_]\w*(?:\s*,\s*\w+)*\s*[-+*/]?=|for |while |if )",
    re.MULTILINE,
)

Which = Literal["first", "last", "only", "all"]


@dataclass(frozen=True, slots=True)
class Extracted:
    """A program, or the reason there is none."""

    code: str | None
    reason: str = ""


def extract_code(
    text: str, languages: tuple[str, ...] = ("python", "py", "python3"), which: Which = "last"
) -> Extracted:
    """The program in a completion; bare text counts as a program when it looks like one."""
    lines = text.split("\n")
    fenced = _fenced(lines)
    blocks = [code for language, code in fenced if language in (*languages, "")]
    if fenced and not blocks:
        return Extracted(None, f"no code block in {languages[0]}")
    if not blocks and (opened := [i for i, line in enumerate(lines[:-1]) if OPENING.match(line)]):
        return Extracted("\n".join(lines[opened[0] + 1 :]), "the code block never ends")
    if not blocks:
        return Extracted(text) if CODE_LIKE.search(text) else Extracted(None, "no code: only prose")
    if which == "only" and len(blocks) > 1:
        return Extracted(None, f"{len(blocks)} code blocks where one was asked for")
    chosen = "\n".join(blocks) if which == "all" else blocks[0] if which == "first" else blocks[-1]
    return Extracted(chosen) if chosen.strip() else Extracted(None, "the code block is empty")


def _fenced(lines: list[str]) -> list[tuple[str, str]]:
    """Language and content of every block; line by line, for hostile text makes a regular expression take for ever."""
    ends: dict[str, list[int]] = {}
    for i, line in enumerate(lines):
        ends.setdefault(line.strip(" \t\r"), []).append(i)
    found, i = [], 0
    while i < len(lines):
        opening = OPENING.match(lines[i])
        later = ends.get(opening[1], []) if opening else []
        end = bisect_right(later, i)
        if opening and end < len(later):
            found.append((opening[2].lower(), "".join(f"{line}\n" for line in lines[i + 1 : later[end]])))
            i = later[end]
        i += 1
    return found
