"""Functions by their values: arguments go in, results come out, and only here are they compared.

All calls are made whatever the function returns. A call that ends the process (a time limit, an exit) is charged to
itself: the calls after it are made in a new process.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rlvrlab.judge import compare
from rlvrlab.judge.compare import Comparison
from rlvrlab.judge.finding import BadTask, Finding, failure_of, raised, records_of, shown, word
from rlvrlab.judge.jail import arrays, plain
from rlvrlab.judge.jail.limits import Limits
from rlvrlab.judge.outcomes import Outcome
from rlvrlab.judge.tasks import CallsTask
from rlvrlab.judge.workers.orders import Order, Ran
from rlvrlab.judge.workers.worker import Worker

MOST_SHOWN = 10_000
"""Members of a wrong result that is still written out for a reader."""


@dataclass(frozen=True, slots=True)
class EncodedCall:
    """A call in plain.py's encoding."""

    arguments: plain.Encoded
    named: plain.Encoded
    expected: plain.Encoded
    policy: Comparison
    piece: int
    """Calls of one piece stand or fall together."""


async def judge_calls(worker: Worker, code: str, task: CallsTask, every_test: bool) -> Finding:
    """Encode the task, then judge it."""
    if "numpy" in sys.modules:  # otherwise no argument or result can be one of numpy's
        arrays.learn()
    try:
        encoded = [[plain.encode(part) for part in (one.arguments, one.named, one.expected)] for one in task.calls]
        calls = [
            EncodedCall(given, named, want, task.comparison, piece)
            for piece, (given, named, want) in enumerate(encoded)
        ]
    except plain.NotPlain as error:
        raise BadTask(f"an argument or result is a {error}, which is not plain data") from None
    if not all(type(name) is str for call in task.calls for name in call.named):
        raise BadTask("the name of an argument is no text")
    finding, right = await judge_encoded(worker, code, task.entry_point, calls, task.limits, every_test)
    finding.passed = sum(right)
    return finding


async def judge_encoded(
    worker: Worker, code: str, entry_point: str, calls: Sequence[EncodedCall], limits: Limits, every_test: bool
) -> tuple[Finding, list[bool]]:
    """Which of the calls returned the right thing; those that were never made did not."""
    finding = Finding(total=len(calls))
    right: list[bool] = []
    while len(right) < len(calls):
        done, end = len(right), finding.next_few(len(right))
        while end < len(calls) and calls[end].piece == calls[end - 1].piece:
            end += 1  # what ends a piece ends all its calls
        handed = calls[done:end]
        pairs = [(call.arguments, call.named) for call in handed]
        job = {"role": "calls", "code": code, "entry_point": entry_point, "calls": pairs}
        ran = await worker.run(Order(job, limits))
        finding.spent(ran)
        ended = None
        with finding.reading():
            ended = _read(finding, ran, handed, right, limits)
        given_up = ended is not None and finding.stops(ended, every_test, len(calls) - len(right))
        if given_up or (ended is None and len(right) < end):
            break
    return finding, right


def _read(
    finding: Finding, ran: Ran, calls: Sequence[EncodedCall], right: list[bool], limits: Limits
) -> Outcome | None:
    """Note what became of the calls; the outcome of one that ended the process, and with it its whole piece."""
    records = records_of(ran)
    failure = failure_of(ran, limits, records or ())
    if records is None:
        finding.fail(*(failure or (Outcome.TAMPERED, "it wrote into the judge's channel"))[:2])
        return None
    results = [record for record in records if record[0] in ("value", "opaque", "raised", "memory")]
    if len(results) > len(calls):
        finding.fail(Outcome.TAMPERED, "more results than calls")
        return None
    loaded = any(record[0] == "loaded" for record in records)
    for call, record in zip(calls, results if loaded else (), strict=False):
        right.append(_is_right(finding, call, record, len(right) + 1))
    if failure is None and len(results) < len(calls):
        failure = Outcome.RUNTIME_ERROR, f"it ended after {len(results)} of {len(calls)} calls", ("early_exit",)
    if failure:
        finding.fail(*failure[:2], *failure[2])
    if failure is None or not loaded or len(results) == len(calls):
        return None
    ended = calls[len(results)].piece
    right += [False for call in calls[len(results) :] if call.piece == ended]
    return failure[0]


def _is_right(finding: Finding, call: EncodedCall, record: Sequence[Any], number: int) -> bool:
    where = f"call {number} of {finding.total}"
    if record[0] == "value" and len(record) == 2:
        if compare.same_form(record[1], call.expected, call.policy):
            return True
        small = compare.bounded(record[1], MOST_SHOWN)
        told = shown(spelled(record[1]).encode()) if small else "something too large or too deep to be shown"
        finding.fail(Outcome.WRONG_ANSWER, f"{where}: returned {told}")
    elif record[0] == "opaque":
        finding.fail(Outcome.WRONG_ANSWER, f"{where}: returned a {word(record, 1)}", "nonplain_return")
    else:
        outcome, detail, flags = raised(record)
        finding.fail(outcome, f"{detail} ({where})", *flags)
    return False


def spelled(form: Any) -> str:
    """A result as Python writes it, for a reader: nothing is decoded, and what has no such form is shown as it came."""
    match form:
        case ["list" | "tuple" | "set" as tag, list(items)]:
            inner = ", ".join(map(spelled, items))
            if tag == "list":
                return f"[{inner}]"
            if tag == "tuple":
                return f"({inner},)" if len(items) == 1 else f"({inner})"
            return f"{{{inner}}}" if items else "set()"
        case ["dict", list(items)] if all(type(pair) is list and len(pair) == 2 for pair in items):
            return f"{{{', '.join(f'{spelled(key)}: {spelled(item)}' for key, item in items)}}}"
        case [str(tag), content] if tag in plain.DECODERS:
            return f"{tag}({spelled(content)})"
        case list() | dict():
            return json.dumps(form)
    return repr(form)
