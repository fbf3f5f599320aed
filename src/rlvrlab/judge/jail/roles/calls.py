"""Calls of one function with given arguments; what it returns is reported, what was expected is not known here."""

from __future__ import annotations

from time import process_time

from rlvrlab.judge.jail import plain
from rlvrlab.judge.jail.child import Job, Report
from rlvrlab.judge.jail.roles import solution


def run(job: Job, report: Report) -> None:
    """Make the calls in order and report what each returned or raised."""
    encode, decode, not_plain = plain.encode, plain.decode, plain.NotPlain
    function = solution.entry(solution.load(job["code"], report, job["cpu_s"]), job["entry_point"], report)
    report("loaded")
    for arguments, named in job["calls"]:
        until = process_time() + job["cpu_s"]
        try:
            result = encode(function(*decode(arguments), **decode(named)))
            solution.spend(until)
            report("value", result)
        except not_plain as error:
            solution.spend(until)
            report("opaque", str(error))
        except BaseException as error:
            solution.spend(until)
            report.failure(error)
