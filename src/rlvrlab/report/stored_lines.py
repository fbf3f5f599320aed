"""Lines of a record, decoded quickly: twice as fast as the standard library, and faster still without the texts.

A run's answers are most of its record. The page shows some thousands of them; a table of all of them needs what was
judged, not what was said, so `judged` skips prompt, completion and tokens where a line is laid out as it was written.
"""

from __future__ import annotations

import json
from typing import Any

from pydantic_core import from_json

NEEDED = {"skill", "correct", "reward", "error"}
TEXTS, TOKENS = b', "prompt": ', b', "tokens": ['


def decoded(line: bytes) -> Any:
    """Any JSON; the standard library has the last word on what is valid (half a surrogate pair is)."""
    try:
        return from_json(line)
    except ValueError:
        return json.loads(line)


def judged(line: bytes) -> Any:
    """A stored answer with the number of its tokens in place of them, and perhaps without its texts.

    {head…, "prompt": …, "tokens": [1, 2], tail…}  ->  {head…, tail…, "tokens": 2}

    Inside a JSON text every quotation mark is escaped, so the two markers can only be keys. If head and tail together
    are no table, or lack a needed key, the whole line is read.
    """
    texts, tokens = line.find(TEXTS), line.find(TOKENS)
    end = line.find(b"]", tokens)
    if 0 < texts < tokens < end:
        try:
            row = from_json(line[:texts] + line[end + 1 :])
        except ValueError:
            row = {}
        if row.keys() >= NEEDED and "tokens" not in row:
            begin = tokens + len(TOKENS)
            row["tokens"] = line.count(b",", begin, end) + (end > begin)
            return row
    row = decoded(line)
    if isinstance(row, dict) and isinstance(row.get("tokens"), list):
        row["tokens"] = len(row["tokens"])
    return row
