"""Contest problems: the program runs once per test; exit status 0 and the right output are accepted.

Whether another test is started never depends on whether an output was right, and a checker runs after the last test:
a program that could leave a note for its next run would otherwise learn the hidden outputs one by one.
"""

from __future__ import annotations

import json

from rlvrlab.judge import compare
from rlvrlab.judge.finding import BadTask, Failure, Finding, failure_of, records_of, shown
from rlvrlab.judge.jail.limits import MEGABYTE
from rlvrlab.judge.modes.asserts import UNREAD
from rlvrlab.judge.modes.task_reader import TaskReader
from rlvrlab.judge.outcomes import WEAK, Outcome
from rlvrlab.judge.tasks import StdioTask, TestsTask
from rlvrlab.judge.workers.orders import Order
from rlvrlab.judge.workers.worker import Worker

CHECKER_REJECTS = 1
CHECKED = "output"
"""What a checker looks at. One that makes code of it (`eval(question["output"])`) says what the program says."""
ENDED = "exit status"
"""How a failure begins that is a checker's own word: it has ended with another status than it should."""
PLAIN_OUTPUT = "0\n"
"""What a checker is tried with where no output is known to be right."""
MOST_KEPT_MB = 64
"""All outputs of one program that wait for a checker."""
TEXT_KINDS = ("exact", "rstrip_lines", "tokens", "float", "unordered")


async def judge_stdio(worker: Worker, code: str, task: StdioTask, every_test: bool, reader: TaskReader) -> Finding:
    """Run the program once per test and compare what it prints."""
    if task.checker is None and task.comparison.kind not in TEXT_KINDS:
        raise BadTask(f"comparison {task.comparison.kind!r} is for values; for text: {', '.join(TEXT_KINDS)}")
    if any(no_output(given) or no_output(expected) for given, expected in task.tests):
        raise BadTask("a test holds half a character (a lone surrogate), which no program can read or print")
    finding = Finding(total=len(task.tests))
    limits = task.limits.of_one_test()
    waiting: dict[int, bytes] = {}
    for number, (given, expected) in enumerate(task.tests):
        job = {"role": "program", "code": code}
        ran = await worker.run(Order(job, limits, given.encode("utf-8", "surrogateescape")))
        finding.spent(ran)
        failure: Failure | None = None
        with finding.reading():
            failure = failure_of(ran, limits, records_of(ran))
            if failure is None and task.checker is None:
                _judge_output(finding, number, ran.stdout, compare.same_text(ran.stdout, expected, task.comparison))
        if failure is None and task.checker is not None:
            waiting[number] = ran.stdout
            if sum(map(len, waiting.values())) > MOST_KEPT_MB * MEGABYTE:
                failure = Outcome.OUTPUT_LIMIT, f"it wrote more than {MOST_KEPT_MB} MB on all tests together", ()
                del waiting[number]
        if failure:
            finding.fail(failure[0], f"{failure[1]} (test {number + 1} of {finding.total})", *failure[2])
            if failure[0] is Outcome.COMPILE_ERROR or finding.stops(failure[0], every_test, finding.total - number - 1):
                break
    for number, output in waiting.items():
        _judge_output(finding, number, output, await _accepted_by_checker(worker, task, number, finding, output))
    if task.checker is not None:
        read = await reader.read(worker, TestsTask(CHECKED, (task.checker,)))
        finding.flags += [WEAK] * read.weak + [UNREAD] * read.unread
    return finding


def no_output(text: str) -> bool:
    """Is it nothing that a program could read or print? Bytes that are no text may stand in it, escaped by Python."""
    if text.isascii():
        return False
    try:
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return True
    return False


def _judge_output(finding: Finding, number: int, output: bytes, right: bool) -> None:
    if right:
        finding.passed += 1
    else:
        finding.fail(Outcome.WRONG_ANSWER, f"test {number + 1} of {finding.total}: printed {shown(output)}")


async def _accepted_by_checker(worker: Worker, task: StdioTask, number: int, finding: Finding, output: bytes) -> bool:
    """The checker's word. Where it fails the output is wrong, unless it fails in the same way without this output.

    The expected output is the witness: a checker that does its work on it is sound, whatever it makes of others. Where
    there is none, one that only ends with a status of its own has not broken; it must break on another output and on
    no input at all as well, for on either of them alone a sound one may.
    """
    given, expected = task.tests[number]
    question = {"input": given, CHECKED: output.decode("utf-8", "surrogateescape"), "expected": expected}
    checked = await _checked(worker, task, finding, json.dumps(question))
    if isinstance(checked, bool):
        return checked
    known = bool(expected.strip())
    if not known and checked[1].startswith(ENDED):
        return False
    others = [json.dumps({**question, CHECKED: expected if known else PLAIN_OUTPUT}), *([] if known else [""])]
    for other in others:
        if await _checked(worker, task, finding, other) != checked:
            return False
    raise BadTask(f"the checker failed: {checked[1] or checked[0]}")


async def _checked(worker: Worker, task: StdioTask, finding: Finding, question: str) -> bool | tuple[Outcome, str]:
    """The checker's verdict, or how it failed. A rejection is an exit status 1 and nothing else.

    Its time is part of the verdict's cost, for the task's limits bound it as well (train/limits.py learns from costs).
    """
    job = {"role": "program", "code": task.checker}
    ran = await worker.run(Order(job, task.limits, question.encode(), scratch=False))
    finding.cpu_s += ran.cpu_s
    records = records_of(ran)
    failure = failure_of(ran, task.limits, records)
    if failure is None:
        return True
    if ran.exit == CHECKER_REJECTS and not ran.killed and all(record[0] == "exited" for record in records or ()):
        return False
    # How much of a limit was used differs from run to run.
    return failure[0], failure[1] if failure[0] in (Outcome.RUNTIME_ERROR, Outcome.COMPILE_ERROR) else ""
