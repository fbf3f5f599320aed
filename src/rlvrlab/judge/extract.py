"""The program inside a completion: the one fenced block, or the whole text when it has no fence.

    "Here you go:\\n```python\\nprint(1)\\n```" -> "print(1)\\n"
Of several blocks the last one is the answer, as a person reading would take it, unless told otherwise.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

FENCE = re.compile(r"^[ \t]*(```+|~~~+)[ \t]*([\w+#.-]*)[^\n]*\n(.*?)^[ \t]*\1[ \t]*$", re.MULTILINE | re.DOTALL)
OPEN_FENCE = re.compile(r"^[ \t]*(?:```+|~~~+)[ \t]*([\w+#.-]*)[^\n]*\n", re.MULTILINE)
CODE_LIKE = re.compile(
    r"^\s*(?:def |class |import |from |print\(|@|#|[A-Za-z_]\w*(?:\s*,\s*\w+)*\s*[-+*/]?=|for |while |if )",
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
    blocks = [match.group(3) for match in FENCE.finditer(text) if match.group(2).lower() in (*languages, "")]
    if not blocks and (unclosed := OPEN_FENCE.search(text)):
        if FENCE.search(text) is not None:
            return Extracted(None, f"no code block in {languages[0]}")
        return Extracted(text[unclosed.end() :], "the code block never ends")
    if not blocks:
        return Extracted(text) if CODE_LIKE.search(text) else Extracted(None, "no code: only prose")
    if which == "only" and len(blocks) > 1:
        return Extracted(None, f"{len(blocks)} code blocks where one was asked for")
    chosen = "\n".join(blocks) if which == "all" else blocks[0] if which == "first" else blocks[-1]
    return Extracted(chosen) if chosen.strip() else Extracted(None, "the code block is empty")
