"""Contest problems: the program runs once per test; exit status 0 and the right output are accepted."""

from __future__ import annotations

import json
from dataclasses import replace

from rlvrlab.judge import compare
from rlvrlab.judge.finding import BadTask, Finding, failure_of, records_of, shown
from rlvrlab.judge.outcomes import Outcome
from rlvrlab.judge.tasks import StdioTask
from rlvrlab.judge.workers.orders import Order
from rlvrlab.judge.workers.worker import Worker

CHECKER_ACCEPTS, CHECKER_REJECTS = 0, 1


async def judge_stdio(worker: Worker, code: str, task: StdioTask, stop: bool) -> Finding:
    """Run the program once per test and compare what it prints."""
    finding = Finding(total=len(task.tests))
    limits = replace(task.limits, job_cpu_s=task.limits.cpu_s)
    for number, (given, expected) in enumerate(task.tests, 1):
        ran = await worker.run(Order({"role": "program", "code": code}, limits, given.encode("utf-8", "replace")))
        finding.spent(ran)
        where = f"test {number} of {finding.total}"
        if failure := failure_of(ran, limits, records_of(ran)):
            finding.fail(failure[0], f"{failure[1]} ({where})", *failure[2])
        elif await _right_output(worker, ran.stdout, given, expected, task):
            finding.passed += 1
        else:
            finding.fail(Outcome.WRONG_ANSWER, f"{where}: printed {shown(ran.stdout)}")
        if finding.outcome is not Outcome.ACCEPTED and (stop or finding.outcome is Outcome.COMPILE_ERROR):
            break
    return finding


async def _right_output(worker: Worker, got: bytes, given: str, expected: str, task: StdioTask) -> bool:
    if task.checker is None:
        return compare.same_text(got, expected, task.comparison)
    checked, words = await _checked(worker, task, given, got.decode("utf-8", "replace"), expected)
    if checked is None and (await _checked(worker, task, given, expected, expected))[0] is not True:
        raise BadTask(f"the checker failed: {words}")
    return checked is True


async def _checked(worker: Worker, task: StdioTask, given: str, got: str, expected: str) -> tuple[bool | None, str]:
    """The checker's verdict, None when it fails, and its words. Failing on this output alone makes the answer wrong."""
    job = {"role": "program", "code": task.checker}
    question = json.dumps({"input": given, "output": got, "expected": expected}).encode()
    ran = await worker.run(Order(job, task.limits, question, scratch=False))
    failed = ran.killed or ran.exit not in (CHECKER_ACCEPTS, CHECKER_REJECTS) or b'"raised"' in ran.report
    return None if failed else ran.exit == CHECKER_ACCEPTS, shown(ran.report or ran.stderr)
