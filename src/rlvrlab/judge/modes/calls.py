"""Functions by their values: arguments go in, results come out, and only here are they compared."""

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
from rlvrlab.judge.workers.orders import Order
from rlvrlab.judge.workers.worker import Worker


@dataclass(frozen=True, slots=True)
class EncodedCall:
    """A call in plain.py's encoding."""

    arguments: plain.Encoded
    named: plain.Encoded
    expected: plain.Encoded
    policy: Comparison


async def judge_calls(worker: Worker, code: str, task: CallsTask, stop: bool) -> Finding:
    """Encode the task, then judge it."""
    if "numpy" in sys.modules:  # otherwise no argument or result can be one of numpy's
        arrays.learn()
    try:
        calls = [
            EncodedCall(
                plain.encode(call.arguments), plain.encode(call.named), plain.encode(call.expected), task.comparison
            )
            for call in task.calls
        ]
    except plain.NotPlain as error:
        raise BadTask(f"an argument or result is a {error}, which is not plain data") from None
    finding, right = await judge_encoded(worker, code, task.entry_point, calls, task.limits, stop)
    finding.passed = sum(right)
    return finding


async def judge_encoded(
    worker: Worker, code: str, entry_point: str, calls: Sequence[EncodedCall], limits: Limits, stop: bool
) -> tuple[Finding, list[bool]]:
    """All calls in one process; which of them returned the right thing."""
    finding = Finding(total=len(calls))
    pairs = [(call.arguments, call.named) for call in calls]
    job = {"role": "calls", "code": code, "entry_point": entry_point, "calls": pairs, "stop": stop}
    ran = await worker.run(Order(job, limits))
    finding.spent(ran)
    records = records_of(ran)
    failure = failure_of(ran, limits, records or ())
    if records is None:
        finding.fail(*(failure or (Outcome.TAMPERED, "it wrote into the judge's channel"))[:2])
        return finding, []
    results = [record for record in records if record[0] in ("value", "opaque", "raised", "memory")]
    right = [
        _is_right(finding, call, record, i) for i, (call, record) in enumerate(zip(calls, results, strict=False), 1)
    ]
    if len(results) > len(calls):
        finding.fail(Outcome.TAMPERED, "more results than calls")
    elif failure:
        finding.fail(*failure[:2], *failure[2])
    elif len(results) < len(calls):
        finding.fail(Outcome.RUNTIME_ERROR, f"it ended after {len(results)} of {len(calls)} calls", "early_exit")
    return finding, right


def _is_right(finding: Finding, call: EncodedCall, record: Sequence[Any], number: int) -> bool:
    where = f"call {number} of {finding.total}"
    if record[0] == "value" and len(record) == 2:
        if compare.same_form(record[1], call.expected, call.policy):
            return True
        finding.fail(Outcome.WRONG_ANSWER, f"{where}: returned {shown(json.dumps(record[1]).encode())}")
    elif record[0] == "opaque":
        finding.fail(Outcome.WRONG_ANSWER, f"{where}: returned a {word(record, 1)}", "nonplain_return")
    else:
        outcome, detail, flags = raised(record)
        finding.fail(outcome, f"{detail} ({where})", *flags)
    return False
