"""What a program does on each call of a task, statement by statement (jail/roles/trace.py). Nothing is scored by it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from rlvrlab.judge.finding import failure_of, records_of
from rlvrlab.judge.jail.limits import Limits
from rlvrlab.judge.workers.orders import Order
from rlvrlab.judge.workers.worker import Worker


class Seen(NamedTuple):
    """The state of a function after one statement."""

    line: int
    """Of the program, from 1; 0 is the beginning, with the arguments."""
    values: dict[str, int]
    """A check sum of each variable; `return` or `raise` where the function ended."""


Trace = tuple[Seen, ...]
"""One call, as far as it was followed."""


async def trace_calls(
    worker: Worker, code: str, entry_point: str, calls: Sequence[tuple[Any, Any]], limits: Limits, above: int = 0
) -> tuple[Trace, ...]:
    """The calls that could be followed, from the first; `above` lines of the program are not the answer's own."""
    job = {"role": "trace", "code": code, "entry_point": entry_point, "calls": list(calls)}
    ran = await worker.run(Order(job, limits))
    failure_of(ran, limits, ())  # raises where the machine failed
    traces = []
    for record in records_of(ran) or ():
        match record:
            case ["states", [*states]]:
                traces.append(tuple(seen for state in states if (seen := _seen(state, above)) is not None))
    return tuple(traces)


def _seen(state: Any, above: int) -> Seen | None:
    """A state as reported; None where it is none, for the program could write into the report."""
    match state:
        case [int(line), [*pairs]] if all(_is_sum(pair) for pair in pairs):
            return Seen(max(0, line - above), dict(pairs))
    return None


def _is_sum(pair: Any) -> bool:
    return type(pair) is list and len(pair) == 2 and type(pair[0]) is str and type(pair[1]) is int
