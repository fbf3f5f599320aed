"""Suggests the key or value that was probably meant where one is unknown or missing."""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

from rlvrlab.recipe.schema import core_keys
from rlvrlab.registry import find, names

OTHER_NAMES = {
    "lr": "learning_rate",
    "bs": "batch_size",
    "num_steps": "steps",
    "max_steps": "steps",
    "group_size": "n",
    "num_generations": "n",
    "max_new_tokens": "max_tokens",
}
"""Names that other laboratories have for the last part of a key."""
MOST = 3
"""Keys that are named at most."""


RENAMED = {"credit.normalization_scale": "credit.examined"}
"""Keys of earlier versions, and what took their place."""


def nearest_key(key: str, known: Sequence[str]) -> str:
    """kl_coef -> kl.coef, rolout.n -> rollout.n, grpo.n -> rollout.n, and each phase's key for a bare one; otherwise
    what the table has."""
    everything = list(dict.fromkeys([*known, *core_keys()]))
    table, _, leaf = key.rpartition(".")
    beside = [candidate for candidate in everything if candidate.rpartition(".")[0] == table]
    # Loosely, only the last part counts: a shared table name makes any two keys look alike.
    leaves = {candidate.rpartition(".")[2]: candidate for candidate in beside}
    near = (
        [RENAMED[key] for key in (key,) if key in RENAMED]
        or [candidate for candidate in everything if leaf == candidate.replace(".", "_")][:1]
        or keys_meant(leaf, beside if table else everything)
        or difflib.get_close_matches(key, everything, n=1, cutoff=0.8)
        or keys_meant(leaf, everything)
        or [leaves[close] for close in difflib.get_close_matches(leaf, leaves, n=1, cutoff=0.6)]
    )
    if near:
        return f"; did you mean {either(map(repr, near))}?"
    return f"; allowed: {', '.join(beside or everything)}"


def keys_meant(name: str, known: Iterable[str]) -> list[str]:
    """Keys of any table whose last part is `name`, also as others spell it; of the phases, those that imitate last."""
    leaf = name.rpartition(".")[2].replace("-", "_")
    wanted = {leaf, OTHER_NAMES.get(leaf, leaf)}
    found = [key for key in dict.fromkeys(known) if key.rpartition(".")[2] in wanted]
    return sorted(found, key=_imitates)[:MOST]


def said_of(cls: type[Any] | None, key: str) -> str:
    """What a plug-in's source says of its key, the text below it; nothing where there is no source."""
    source = ""
    for base in cls.__mro__ if cls else ():  # keys that kin share stand in the class that they derive from
        with suppress(OSError, TypeError):
            source += inspect.getsource(base)
    leaf = re.escape(key.rpartition(".")[2])
    found = re.search(rf'^    {leaf}: [^\n]*\n    """(.+?)"""', source, re.MULTILINE | re.DOTALL)
    return f": {' '.join(found[1].split()).rstrip('.')}" if found else ""


def either(words: Iterable[str]) -> str:
    """`a`, `a or b`, `a, b or c`."""
    *others, last = words
    return f"{', '.join(others)} or {last}" if others else last


def _imitates(key: str) -> bool:
    phase = key.partition(".")[0]
    return phase in names("phase") and find("phase", phase).family == "imitation"
