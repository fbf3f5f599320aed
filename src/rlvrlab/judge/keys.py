"""The one way to name a value that is kept: by everything that it was made from.

    key_of(task, answer)    key_of(order.job, order.limits, image)    key_of(gold, most_rows, state_of(database))

A key is a digest of the parts, field by field and member by member, in the encoding in which they would go to a jail
(jail/plain.py). Nothing is shortened on the way, as `repr` does to arrays, and values that only compare equal (1, 1.0
and True) differ. What has no such encoding has no key: whatever depends on it is made anew.
"""

from __future__ import annotations

import hashlib
import json
import sys
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path

from rlvrlab.judge.jail import arrays, plain

WRITTEN = json.JSONEncoder(ensure_ascii=False, check_circular=False, separators=(",", ":"))
"""Texts as they are: escaped, two halves of a character would look like the whole one."""


def key_of(*parts: object) -> bytes:
    """The name of what is made from exactly these; `plain.NotPlain` where one of them cannot be written out."""
    if "numpy" in sys.modules:  # otherwise no part can hold one of its arrays
        arrays.learn()
    written = WRITTEN.encode(plain.encode(parts, _record))
    return hashlib.sha256(written.encode("utf-8", "surrogatepass")).digest()


def _record(value: object) -> plain.Encoded:
    """A record as its kind and its fields; plain data is never written like that."""
    kind = type(value)
    if not is_dataclass(kind):
        return plain.refuse(value)
    members = [plain.encode(getattr(value, name), _record) for name in _names(kind)]
    return ["record", [f"{kind.__module__}.{kind.__qualname__}", members]]


@cache
def _names(kind: type) -> tuple[str, ...]:
    assert is_dataclass(kind)
    return tuple([one.name for one in fields(kind)])


def state_of(path: str | Path) -> tuple[int, ...]:
    """What differs once a file has been changed or replaced: times of change, size and number; nothing if it is gone.

    It is also what tells two files apart that the same relative path names in two folders.
    """
    try:
        facts = Path(path).stat()
    except OSError:
        return ()
    return facts.st_mtime_ns, facts.st_ctime_ns, facts.st_size, facts.st_ino, facts.st_dev
