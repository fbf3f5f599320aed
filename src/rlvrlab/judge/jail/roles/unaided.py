"""What a task brings along, run without any answer: what fails here is the task's fault, whatever is answered.

The preamble, the setup, and every piece of the tests up to its first use of the candidate.
"""

from __future__ import annotations

import types
from typing import Any

from rlvrlab.judge.jail.child import Job, Report, message_of
from rlvrlab.judge.jail.roles.tester import LONGEST_REASON

HOPELESS = (SyntaxError, ImportError, MemoryError)


class Used(BaseException):
    """The tests have come to the candidate. Not an Exception, so that no test hides it."""


class Nobody:
    """Stands where the candidate will."""

    def __init__(self) -> None:
        self.used = False

    def __call__(self, *_: object, **__: object) -> Any:
        """Nobody answers."""
        self.used = True
        raise Used


def run(job: Job, report: Report) -> None:
    """Report the first thing that fails by itself, or that nothing does."""
    if problem := _problem(job["preamble"], types.ModuleType("preamble")):
        report("bad_test", f"the preamble fails: {_words(problem)}")
        return
    report("done")  # a new budget, as each of them has beside an answer
    nobody, tests = Nobody(), types.ModuleType("tests")
    stands = {} if job["inprocess"] else {"candidate": nobody, job["entry_point"].rpartition(".")[2]: nobody}
    for piece in (job["setup"], *job["tests"]):
        tests.__dict__.update(stands)
        problem = _problem(piece, tests)
        nobody.used |= _asks_for_the_solution(problem)
        # Once the candidate is missing, only what no answer could mend counts.
        if problem and (not nobody.used or isinstance(problem, HOPELESS)) and not _asks_for_the_solution(problem):
            report("bad_test", _words(problem))
            return
        report("done")
    report("complete")


def _problem(text: str, module: types.ModuleType) -> BaseException | None:
    """What trusted code raises by itself."""
    try:
        exec(compile(text, "tests", "exec"), module.__dict__)  # noqa: S102 - the data set's own code, in the jail
    except Used:
        return None
    except BaseException as error:
        return error
    return None


def _asks_for_the_solution(problem: BaseException | None) -> bool:
    return isinstance(problem, NameError) or (isinstance(problem, ImportError) and problem.name == "solution")


def _words(problem: BaseException) -> str:
    return f"{type(problem).__name__}: {message_of(problem)}"[:LONGEST_REASON]
