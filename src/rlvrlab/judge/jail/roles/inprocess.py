"""Tests beside the candidate, for classes and other objects that cannot cross. Integrity: weak.

The tests arrive only after the candidate's top level has run, and the exit status must come with the last line of the
report; but a function under test shares the process with its tests and could forge both.
"""

from __future__ import annotations

import sys
from time import process_time
from typing import Any

from rlvrlab.judge.jail.child import PEER, Job, Report
from rlvrlab.judge.jail.frames import Frames
from rlvrlab.judge.jail.roles import dataset_code, solution


def run(job: Job, report: Report) -> None:
    """Load the program, fetch the tests, run them in the same namespace."""
    module = solution.load(job["code"], report, job["cpu_s"])
    report("loaded")
    tests = Frames(PEER)
    tests.ask()
    pieces = tests.receive()
    module.__dict__.setdefault("candidate", getattr(module, job["entry_point"], None))
    for piece in pieces:
        until = process_time() + job["cpu_s"]
        problem: Exception | None = None
        try:
            exec(dataset_code.compiled(piece), module.__dict__)  # noqa: S102 - this is the jail
        except Exception as error:
            problem = error
        solution.spend(until)
        if isinstance(problem, AssertionError):
            report("failed", str(problem)[:200])
        elif problem:
            report.failure(problem)
        else:
            report("passed")
    until = process_time() + job["cpu_s"]
    failures = _unit_test_problems(module.__dict__)
    solution.spend(until)
    for failure in failures:
        report("failed", failure)
    report("complete")


def _unit_test_problems(namespace: dict[str, Any]) -> list[str]:
    unittest = sys.modules.get("unittest")
    if unittest is None:
        return []
    cases = [item for item in namespace.values() if isinstance(item, type) and issubclass(item, unittest.TestCase)]
    result = unittest.TestResult()
    for case in cases:
        unittest.defaultTestLoader.loadTestsFromTestCase(case).run(result)
    if cases and not result.testsRun:
        return ["no unit test was collected"]
    return [f"{test}: {text.strip().splitlines()[-1]}"[:200] for test, text in result.failures + result.errors]
