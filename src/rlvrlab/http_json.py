"""Large JSON bodies, read in a thread that lets others go on.

json.loads does not give the interpreter away before it is done: millions of keys hold up every other caller of a
server for seconds, in whatever thread they are read. So a body of many members is read by the scanner in Python, which
is about four times slower and interrupted at any time; texts, which most large bodies consist of, are as fast.
"""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from json import decoder, scanner
from typing import Any

MANY = 1 << 17
"""Commas and colons in a body, those of its texts too, up to which it is read at once."""
MOST_MEMBERS = 1 << 22
"""Of these; 32 MiB of Python's own library hold a seventh of it."""
MOST_KEYS = 1 << 16
"""Of one object: making a table of keys cannot be interrupted."""
READING = ThreadPoolExecutor(1, "reading")
"""One is enough: more of them would only take turns."""


def members(body: bytes) -> int:
    """At least as many as the values of a JSON text, but for the innermost."""
    return body.count(b",") + body.count(b":")


async def read_beside(body: bytes) -> Any:
    """The value of a JSON text; ValueError or RecursionError where it is none."""
    return await asyncio.get_running_loop().run_in_executor(READING, read_fairly, body)


def read_fairly(body: bytes) -> Any:
    """As json.loads, but other threads have their turns."""
    patient = json.JSONDecoder(object_pairs_hook=_table)
    patient.parse_object, patient.parse_array = decoder.JSONObject, decoder.JSONArray  # type: ignore[attr-defined]
    patient.scan_once = scanner.py_make_scanner(patient)  # type: ignore[attr-defined]
    return patient.decode(body.decode(json.detect_encoding(body), "surrogatepass"))


def _table(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(pairs) > MOST_KEYS:
        raise ValueError(f"an object of {len(pairs)} keys, at most {MOST_KEYS} in a large body")
    return dict(pairs)
