"""Is it a task? Every field of one is checked against its type here, before anything runs.

    {"kind": "tests", "entry_point": "f", "tests": ["assert f(1) == 2"], "inprocess": "no"}
    task.inprocess: 'no'; allowed: true or false

The types are those that tasks.py states, so a field that is added there is checked here. Task files, requests and tasks
that a caller has made in Python go the same way: what is malformed is the task's fault, never the machine's.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache, partial
from types import NoneType
from typing import Any, Literal, NoReturn, cast, get_args, get_origin, get_type_hints

from rlvrlab.errors import UserError
from rlvrlab.judge.compare import Comparison
from rlvrlab.judge.jail.limits import Limits
from rlvrlab.judge.modes.mathematics import MathTask
from rlvrlab.judge.modes.sql import SqlTask
from rlvrlab.judge.names import is_entry_point
from rlvrlab.judge.tasks import Call, CallsTask, StdioTask, SyntaxTask, Task, TestsTask
from rlvrlab.judge.written import call_parts

KINDS: dict[str, Any] = {"stdio": StdioTask, "calls": CallsTask, "tests": TestsTask, "syntax": SyntaxTask}
WORDS = {str: "a text", bool: "true or false", int: "a whole number", float: "a number", dict: "an object"}
LONGEST_SHOWN = 80
MOST_BITS_SHOWN = 64
LONGEST_ECHO = 300
CHECK_THEMSELVES = (Limits, Comparison)
"""Records that cannot be made of anything that their fields do not allow, nor be changed."""
PLAIN = "plain"
"""The only key of a call that is written exactly, as in jail/plain.py, instead of as JSON."""
LONGEST_NUMBER = 100_000
"""Characters of a number in such a call: making a range or a fraction of longer ones takes seconds or hours."""
NUMBERS, MAPPINGS = {"int", "float", "Decimal"}, {"dict", "Counter", "OrderedDict", "defaultdict"}
"""Tags of plain data whose content is one text, and of those whose content is pairs."""

Place = tuple[Any, ...]
"""Where a value stands: the place of what it is part of, then its name or number in there. Spelled in messages only."""
Reader = Callable[[Any, Place], Any]
"""Takes a value and its place; returns it as its type wants it, or raises UserError."""
TASK: Place = ("task",)


def task_of(form: Any) -> Task:
    """A task from JSON; UserError says which part is wrong, and what may stand there."""
    if not isinstance(form, dict):
        raise UserError(f"task: {shown(form)}; allowed: an object with a kind")
    kind = form.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise UserError(f"task.kind: {shown(kind)}; allowed: {', '.join(KINDS)}")
    return cast(Task, _reader(KINDS[kind])({key: value for key, value in form.items() if key != "kind"}, TASK))


def comparison_of(form: Any, where: str) -> Comparison:
    """A comparison from JSON; UserError says which part is wrong, and what may stand there."""
    return cast(Comparison, _reader(Comparison)(form, (where,)))


def check(task: Task | SqlTask | MathTask) -> None:
    """UserError where a task that was made in Python holds what its fields do not allow."""
    kind: Any = type(task)
    _reader(kind)(task, TASK)


def shown(value: Any) -> str:
    """For a message; not what is inside a container, which may be nested without end."""
    if isinstance(value, int) and value.bit_length() > MOST_BITS_SHOWN:
        return f"a whole number of {value.bit_length()} bits"
    kind = type(value).__name__
    return repr(value)[:LONGEST_SHOWN] if isinstance(value, str | int | float | None) else f"of type {kind}"


def _spelled(place: Place) -> str:
    above, *last = place
    if not last:
        return str(above)
    return _spelled(above) + (f"[{last[0]}]" if isinstance(last[0], int) else f".{str(last[0])[:LONGEST_SHOWN]}")


def _refuse(value: Any, allowed: str, place: Place) -> NoReturn:
    raise UserError(f"{_spelled(place)}: {shown(value)}; allowed: {allowed}")


@cache
def _reader(hint: Any) -> Reader:
    """What reads values of this type: JSON's lists become tuples, its objects records."""
    kind, inner = get_origin(hint) or hint, get_args(hint)
    if is_dataclass(hint):
        return partial(_record, hint)
    if NoneType in inner:
        other = _reader(next(one for one in inner if one is not NoneType))
        return lambda value, place: None if value is None else other(value, place)
    if kind is tuple:
        return partial(_endless, inner[0]) if inner[-1] is Ellipsis else partial(_fixed, tuple(map(_reader, inner)))
    if kind is Literal:
        return partial(_scalar, lambda value: isinstance(value, str) and value in inner, ", ".join(inner))
    if hint is Any:
        return lambda value, place: value
    return partial(_scalar, FITS[kind], WORDS[kind])


def _scalar(fits: Callable[[Any], bool], allowed: str, value: Any, place: Place) -> Any:
    return value if fits(value) else _refuse(value, allowed, place)


def _is_number(value: Any) -> bool:
    """Something that a float can hold."""
    if isinstance(value, int):
        return not isinstance(value, bool) and value.bit_length() < sys.float_info.max_exp
    return isinstance(value, float)


FITS: dict[Any, Callable[[Any], bool]] = {
    str: lambda value: isinstance(value, str),
    bool: lambda value: isinstance(value, bool),
    int: lambda value: isinstance(value, int) and not isinstance(value, bool),
    float: _is_number,
    dict: lambda value: isinstance(value, dict) and all(isinstance(key, str) for key in value),
}


RANGES: dict[tuple[type, str], tuple[float, float]] = {
    (SqlTask, "float_tolerance"): (0.0, 1.0),
    (SqlTask, "most_rows"): (1, 10_000_000),
    (SyntaxTask, "longest_line"): (1, 10_000_000),
}
"""The least and the most that a number may be, where not every one makes sense. Limits and comparisons check theirs."""


def _named(value: Any, place: Place) -> str:
    """A name that a program can define: one that no program has would make every answer wrong."""
    allowed = "a name that a program can define, as in solve or Solution.solve"
    return value if isinstance(value, str) and is_entry_point(value) else _refuse(value, allowed, place)


def _ranged(kind: Any, name: str, read: Reader) -> Reader:
    """What reads this field of a record and refuses numbers outside its range, and names that are none."""
    if name == "entry_point":
        return _named
    if (kind, name) not in RANGES:
        return read
    least, most = RANGES[kind, name]

    def within(value: Any, place: Place) -> Any:
        number = read(value, place)
        return (
            number
            if number is None or least <= number <= most
            else _refuse(number, f"from {least:,} to {most:,}", place)
        )

    return within


def _endless(hint: Any, value: Any, place: Place) -> tuple[Any, ...]:
    """`tuple[X, ...]`, of any length."""
    if not isinstance(value, list | tuple):
        _refuse(value, "a list", place)
    read = _reader(hint)
    return tuple(value) if hint is Any else tuple([read(item, (place, at)) for at, item in enumerate(value)])


def _fixed(readers: tuple[Reader, ...], value: Any, place: Place) -> tuple[Any, ...]:
    """`tuple[X, Y]`, of exactly that length."""
    if not isinstance(value, list | tuple) or len(value) != len(readers):
        _refuse(value, f"a list of {len(readers)}", place)
    pairs = zip(readers, value, strict=True)
    return tuple([read(item, (place, at)) for at, (read, item) in enumerate(pairs)])


def _record(kind: Any, value: Any, place: Place) -> Any:
    readers, needed = _fields(kind)
    if isinstance(value, kind):  # made in Python: nothing can be missing, and it was complete when it was made
        if kind in CHECK_THEMSELVES:  # and most of a task's fields are theirs, which every answer would pay for
            return value
        for name, read_field in readers.items():
            read_field(getattr(value, name), (place, name))
        return value
    given: Mapping[str, Any]
    if kind is Call and isinstance(value, dict) and PLAIN in value:
        given = _exact_call(value, place)
    elif isinstance(value, dict):
        given = value
    else:
        _refuse(value, "an object", place)
    unknown = [(name, "unknown") for name in given if name not in readers]
    for name, how in (*unknown, *((name, "missing") for name in readers if name in needed and name not in given)):
        raise UserError(f"{_spelled((place, str(name)))}: {how}; allowed: {', '.join(readers)}")
    read = {name: readers[name](part, (place, name)) for name, part in given.items()}
    try:
        return kind(**read)
    except (ArithmeticError, ValueError) as error:  # limits and comparisons know what they can be
        raise UserError(f"{_spelled(place)}: {str(error)[:LONGEST_ECHO]}") from None


def _exact_call(form: dict[str, Any], place: Place) -> dict[str, Any]:
    """A call as jail/plain.py writes it: (arguments, expected), or those and the named ones."""
    where = _spelled((place, PLAIN))
    longest = _longest_number(form[PLAIN])
    if longest > LONGEST_NUMBER:
        raise UserError(f"{where}: a number of {longest:,} characters; allowed: at most {LONGEST_NUMBER:,}")
    if len(form) > 1:
        raise UserError(f"{where}: {', '.join(map(shown, form))}; allowed: (arguments, expected, named), no other key")
    try:
        arguments, expected, named = call_parts(form[PLAIN])
    except Exception as error:
        words = f"{type(error).__name__}: {str(error)[:LONGEST_ECHO]}"
        raise UserError(f"{where}: {words}; allowed: plain data, (arguments, expected, named)") from None
    return {"arguments": arguments, "expected": expected, "named": named}


def _longest_number(form: Any) -> int:
    """Characters of the longest number in a value that is written exactly, before any of them is made."""
    longest, waiting = 0, [form]
    while waiting:
        match waiting.pop():
            case [str(tag), str(text)] if tag in NUMBERS:
                longest = max(longest, len(text))
            case ["complex", [str(real), str(imaginary)]]:
                longest = max(longest, len(real), len(imaginary))
            case [str(tag), list(pairs)] if tag in MAPPINGS:
                waiting += [part for pair in pairs if isinstance(pair, list) for part in pair if type(part) is list]
            case [str(), list(items)]:
                waiting += [item for item in items if type(item) is list]
    return longest


@cache
def _fields(kind: Any) -> tuple[dict[str, Reader], frozenset[str]]:
    """What reads each field of a record, and the names of those that have no default."""
    hints = get_type_hints(kind)
    needed = [one.name for one in fields(kind) if one.default is MISSING and one.default_factory is MISSING]
    readers = {one.name: _ranged(kind, one.name, _reader(hints[one.name])) for one in fields(kind)}
    return readers, frozenset(needed)
