"""Values of a task that stay as they are written: checked, but never made in the judge's own process.

A caller may write a set or a dict of numbers exactly (jail/plain.py). The hashes of numbers are known to everybody, so
a hundred thousand of them can be chosen that share theirs or meet in every place of a table, and making it would take
the judge for ever. Here each form is looked at once, in linear time: could it be decoded? Only the jail does so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from rlvrlab.judge.array_forms import MAPPINGS, SEQUENCES, SETS
from rlvrlab.judge.compare import WRITTEN, canonical, shortened, spelled_form
from rlvrlab.judge.jail import plain

MOST_ALIKE = 1000
"""Keys of one table that share a hash; a table of more could not be made in the jail either, in the time there is."""
LENGTHS = {**dict.fromkeys((*SETS, *MAPPINGS, "Categorical"), 2), "MultiIndex": 4}
"""Forms that make a table of hashes of their members, and how many parts they have."""
UNHASHABLE = {"list", "deque", "set", "bytearray", "ndarray", "Series", "DataFrame"} | MAPPINGS
NOT_A_NUMBER = '["float", "nan"]'
"""As a member of a set it may stand there twice: it equals nothing, not even itself."""


@dataclass(frozen=True, slots=True)
class Written:
    """A value in plain.py's encoding, which it is encoded to again."""

    form: plain.Encoded


plain.ENCODERS[Written] = lambda value, other, depth: value.form


def call_parts(form: plain.Encoded) -> tuple[tuple[Written, ...], Written, dict[str, Written]]:
    """Arguments, result and named arguments of ("tuple", [arguments, expected, named]); ValueError where it is none."""
    form = read(form).form
    match form:
        case ["tuple", [["tuple" | "list", [*arguments]], expected]]:
            pairs: Sequence[Any] = ()
        case ["tuple", [["tuple" | "list", [*arguments]], expected, ["dict", [*pairs]]]]:
            pass
        case _:
            raise ValueError("not (arguments, expected) nor (arguments, expected, named)")
    if not all(type(name) is str for name, _ in pairs):
        raise ValueError("the name of an argument is no text")
    return tuple(map(Written, arguments)), Written(expected), {name: Written(one) for name, one in pairs}


class Value(NamedTuple):
    """A value that was checked; what tells it from others is only known where it is a member of a set, or a key."""

    form: plain.Encoded
    """As our own encoder writes it, so that it compares: `["int", "0x1"]` is 1."""
    name: str = ""
    """Equal where Python calls the values equal."""
    hash: int | None = None
    """The same where their hashes are; None where it takes a table to know."""


def read(form: plain.Encoded, depth: int = 0, as_key: bool = False) -> Value:
    """ValueError, TypeError or the like where the jail could not decode it, or not use it as a key if `as_key`."""
    if type(form) is not list:
        return _scalar(form) if as_key or type(form) is dict else Value(form)
    tag, content = form
    if depth > plain.DEEPEST or (as_key and tag in UNHASHABLE):
        raise ValueError(f"nested deeper than {plain.DEEPEST}" if depth > plain.DEEPEST else f"a {tag} as a key")
    if tag in MAPPINGS:
        keys = _different([read(key, depth + 1, True) for key, _ in _listed(content)])
        items = [read(item, depth + 1).form for _, item in content]
        return Value([tag, [[key.form, item] for key, item in zip(keys, items, strict=True)]])
    if tag in SETS:
        members = _different([read(item, depth + 1, True) for item in _listed(content)])
        return Value([tag, [one.form for one in members]], _name("set", sorted(one.name for one in members)))
    if tag in SEQUENCES:
        values = [read(item, depth + 1, as_key) for item in _listed(content)]
        return _sequence(tag, values) if as_key else Value([tag, [one.form for one in values]])
    if _has_table(content):
        raise ValueError(f"a set or mapping inside a {tag}")
    value = plain.decode(form)
    form = plain.encode(value)
    return Value(form, spelled_form(canonical(form)), hash(value)) if as_key else Value(form)


def _listed(content: Any) -> list[Any]:
    if type(content) is not list:
        raise TypeError("no list where members belong")
    return content


def _scalar(value: Any) -> Value:
    if type(value) is dict:
        raise ValueError("an object, where a value is [tag, content]")
    return Value(value, spelled_form(value if type(value) in (int, str) else canonical(value)), hash(value))


def _sequence(tag: str, items: Sequence[Value]) -> Value:
    hashes = tuple(item.hash for item in items)
    name = _name(tag, [item.name for item in items])
    return Value([tag, [item.form for item in items]], name, None if None in hashes else hash(hashes))


def _name(tag: str, names: list[str]) -> str:
    return shortened(WRITTEN.encode([tag, names]))


def _different(keys: Sequence[Value]) -> Sequence[Value]:
    """The keys, where a table can have them: each once, and not too many with one hash."""
    hashes = sorted(key.hash for key in keys if key.hash is not None)
    if any(one == other for one, other in zip(hashes, hashes[MOST_ALIKE:], strict=False)):
        raise ValueError(f"more than {MOST_ALIKE} keys with the same hash")
    names = [key.name for key in keys if key.name != NOT_A_NUMBER]
    if len(set(names)) < len(names):
        raise ValueError("a key twice")
    return keys


def _has_table(form: Any) -> bool:
    """Is anything written in there that makes a table of hashes?"""
    waiting = [form]
    while waiting:
        one = waiting.pop()
        if type(one) is list:
            if len(one) == LENGTHS.get(one[0] if one and type(one[0]) is str else ""):
                return True
            waiting += [item for item in one if type(item) is list]
    return False
