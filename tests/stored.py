"""Damage for stored files: one value exchanged or left out, bytes cut or put in, or something else altogether."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

STRANGE = (None, True, -1, 0.5, 10**30, "", "x", "../x", [], [None], [[]], {}, {"a": 1}, {"schema": 1})
ODD = (b"\0", b"\xff\xfe", b"\xed\xa0\x80", b"\n", b"{", b'"', b"NaN", b"[" * 2000)


def damaged(data: bytes, rng: random.Random) -> bytes:
    """A file of JSON, or of lines of JSON, that is not what was written."""
    kind = rng.randrange(8)
    if kind == 0:
        return data[: rng.randrange(len(data) + 1)]
    if kind == 1:
        place = rng.randrange(len(data) + 1)
        return data[:place] + rng.choice(ODD) + data[place:]
    if kind == 2:
        return json.dumps(rng.choice(STRANGE)).encode() + b"\n"
    try:
        return (json.dumps(changed(json.loads(data), rng)) + "\n").encode()
    except ValueError:  # lines, of which one is changed
        lines = data.decode().splitlines()
        number = rng.randrange(len(lines))
        lines[number] = json.dumps(changed(json.loads(lines[number]), rng))
        return "".join(f"{line}\n" for line in lines).encode()


def changed(value: Any, rng: random.Random) -> Any:
    """One value somewhere inside is exchanged for a strange one, or left out; those near the top as often as others."""
    value = copy.deepcopy(value)
    holders = [one for one in _holders(value) if len(one)]
    if not holders:
        return rng.choice(STRANGE)
    holder = holders[0] if rng.random() < 0.5 else rng.choice(holders)
    key = rng.choice(list(holder)) if isinstance(holder, dict) else rng.randrange(len(holder))
    if rng.random() < 0.3:
        del holder[key]
    else:
        holder[key] = rng.choice(STRANGE)
    return value


def _holders(value: Any) -> Iterator[Any]:
    if isinstance(value, dict | list):
        yield value
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _holders(inner)
