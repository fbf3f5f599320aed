"""What a program does on each call of a task, statement by statement (jail/roles/trace.py). Nothing is scored by it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from rlvrlab.judge.finding import failure_of, records_of
from rlvrlab.judge.jail.limits import Limits
from rlvrlab.judge.jail.roles.trace import MOST_NAMES, MOST_STATES
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

OTHER_RECORDS = 2
"""That the program ended early, and with which exit status."""
MOST_LISTS = 2 + MOST_STATES * (3 + MOST_NAMES)
"""In the report of one call: itself, its states, and in each the state, its pairs, each pair and the end."""


async def trace_calls(
    worker: Worker, code: str, entry_point: str, calls: Sequence[tuple[Any, Any]], limits: Limits, above: int = 0
) -> tuple[Trace, ...]:
    """The calls that could be followed, from the first; `above` lines of the program are not the answer's own.

    Nothing is taken from a report with more calls or states than there can be, and such a report is not parsed.
    """
    job = {"role": "trace", "code": code, "entry_point": entry_point, "calls": list(calls)}
    ran = await worker.run(Order(job, limits))
    failure_of(ran, limits, ())  # raises where the machine failed
    if ran.report.count(b"[") > OTHER_RECORDS + MOST_LISTS * len(calls):
        return ()
    traces = []
    for record in records_of(ran, OTHER_RECORDS + len(calls)) or ():
        match record:
            case ["states", [*states]] if len(states) <= MOST_STATES:
                traces.append(tuple(seen for state in states if (seen := _seen(state, above)) is not None))
    return tuple(traces) if len(traces) <= len(calls) else ()


def _seen(state: Any, above: int) -> Seen | None:
    """A state as reported; None where it is none, for the program could write into the report."""
    match state:
        case [int(line), [*pairs]] if all(_is_sum(pair) for pair in pairs):
            return Seen(max(0, line - above), dict(pairs))
    return None


def _is_sum(pair: Any) -> bool:
    return type(pair) is list and len(pair) == 2 and type(pair[0]) is str and type(pair[1]) is int
