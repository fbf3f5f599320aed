"""What the text of tests shows to fail for every answer, and what of it can be tried alone, is tried (blame.py)."""

from __future__ import annotations

from rlvrlab.judge.jail.blame import IN_PROCESS, Blame
from rlvrlab.judge.jail.child import Job, Report, message_of
from rlvrlab.judge.jail.roles import dataset_code
from rlvrlab.judge.jail.roles.tester import LONGEST_REASON

TOO_DEEP = (RecursionError, MemoryError)


def run(job: Job, report: Report) -> None:
    """Report the first such fault, or that there is none; of tests that are too deep to be read none is known."""
    try:
        fault = _fault(job)
    except TOO_DEEP:
        fault = ""
    report(*(("bad_test", fault[:LONGEST_REASON]) if fault else ("complete",)))


def _fault(job: Job) -> str:
    texts = (job["setup"], *job["tests"])
    try:
        for text in texts:
            dataset_code.compiled(text)
    except (SyntaxError, ValueError) as error:
        return _words(error)
    blame = Blame(texts, job["entry_point"], job["preamble"])
    for step in blame.imports():
        if problem := _problem(step):
            return _words(problem)
    if job["inprocess"]:  # all else may be the answer's doing
        return ""
    for step in blame.writes():
        if problem := _problem(step):
            return f"the tests write files; {IN_PROCESS}: {_words(problem)}"
    return blame.fault()


def _problem(step: str) -> BaseException | None:
    """Is there no such module, or no place to write to?"""
    try:
        exec(dataset_code.compiled(step), {"__name__": dataset_code.FILE})  # noqa: S102 - the data set's own words, in the jail
    except (ImportError, OSError) as error:
        return error
    except BaseException:
        return None
    return None


def _words(problem: BaseException) -> str:
    return f"{type(problem).__name__}: {message_of(problem)}"
