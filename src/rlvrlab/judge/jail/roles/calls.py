"""Calls of one function with given arguments; what it returns is reported, what was expected is not known here."""

from __future__ import annotations

from rlvrlab.judge.jail import plain
from rlvrlab.judge.jail.child import Job, Report
from rlvrlab.judge.jail.roles import solution


def run(job: Job, report: Report) -> None:
    """Make the calls in order and report what each returned or raised."""
    encode, decode, not_plain = plain.encode, plain.decode, plain.NotPlain
    function = solution.entry(solution.load(job["code"], report), job["entry_point"], report)
    report("loaded")
    for arguments, named in job["calls"]:
        try:
            report("value", encode(function(*decode(arguments), **decode(named))))
        except not_plain as error:
            report("opaque", str(error))
        except BaseException as error:
            report.failure(error)
