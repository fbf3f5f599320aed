"""What a task brings along, run without any answer: what fails here is the task's fault, whatever is answered.

Above the answer: the preamble. Beside it, in a process of its own: the setup, and the tests up to their first use of
the candidate; once it is used, what they do may be the answer's doing. In the answer's process tests may look for it,
or for what it has left behind, in any way, so there only text that asks for nothing is run.
"""

from __future__ import annotations

import re
from time import process_time
from typing import Any

from rlvrlab.judge.jail.blame import IN_PROCESS
from rlvrlab.judge.jail.child import Job, Report, message_of
from rlvrlab.judge.jail.roles import dataset_code, solution
from rlvrlab.judge.jail.roles.tester import LONGEST_REASON, Remote, names_of

GOES_ON = re.compile(r"\b(?:except|finally)\b|__")
"""In text that could go on where a name has no value, or find its way to one."""
MENDED_BY_ANSWERS = (NameError, ImportError, RecursionError)
"""What text may raise alone and not beside an answer: one that defines the name, or allows more calls."""


class Used(BaseException):
    """The tests have come to the candidate. Not an Exception, so that no test hides it."""


class Silence:
    """Where the candidate's end of the conversation will be."""

    used = False

    def send(self, message: object) -> None:
        """Nobody hears it."""
        self.used = True
        raise Used

    def receive(self) -> Any:
        """Nobody answers."""
        raise Used


def run(job: Job, report: Report) -> None:
    """Report the first thing that fails by itself, or that nothing does."""
    parts = {"preamble": _run_preamble, "closed": _run_closed, "tests": _run_tests}
    try:
        parts[job["part"]](job, report)
    except BaseException as error:
        words = f"{type(error).__name__}: {message_of(error)}"
        if job["part"] == "preamble":
            words = f"the preamble fails: {words}"
        elif isinstance(error, NameError):
            words += f": the tests use other names of the solution; {IN_PROCESS}"
        report("bad_test", words[:LONGEST_REASON])
    else:
        report("complete")


def _run_preamble(job: Job, report: Report) -> None:
    """As the beginning of a program; one that breaks off in the midst of a statement needs the answer."""
    from codeop import PyCF_ALLOW_INCOMPLETE_INPUT  # type: ignore[attr-defined] # a library for this alone

    text = job["preamble"]
    try:
        compile(f"{text}\n", "preamble", "exec", PyCF_ALLOW_INCOMPLETE_INPUT, dont_inherit=True)
    except SyntaxError as error:
        if "incomplete input" in message_of(error):
            return
        raise
    code = compile(text.encode("utf-8", "surrogatepass"), solution.FILE_NAME, "exec", dont_inherit=True)
    solution.execute(code, solution.fresh_module("solution", text))
    solution.spend(job["cpu_s"])


def _run_tests(job: Job, report: Report) -> None:
    """Setup and pieces, up to the candidate."""
    module, silence = dataset_code.fresh_module(), Silence()
    _run_piece(job["setup"], module.__dict__, job["cpu_s"])
    report("done")  # a new budget, as each of them has beside an answer
    module.__dict__.update(names_of(job["entry_point"], Remote(silence, job["entry_point"])))
    for piece in job["tests"]:
        try:
            _run_piece(piece, module.__dict__, job["cpu_s"])
        except BaseException:
            if not silence.used:
                raise
        if silence.used:
            return
        report("done")


def _run_closed(job: Job, report: Report) -> None:
    """Pieces up to the first that asks for any name but the tests' own: an answer may define it, built in or not."""
    names: dict[str, object] = {"__builtins__": {}}
    for piece in (job["setup"], *job["tests"]):
        if GOES_ON.search(piece):
            return
        try:
            _run_piece(piece, names, job["cpu_s"])
        except MENDED_BY_ANSWERS:
            return
        report("done")


def _run_piece(text: str, names: dict[str, object], cpu_s: float) -> None:
    until = process_time() + cpu_s
    exec(dataset_code.compiled(text), names)  # noqa: S102 - the data set's own code, in the jail
    solution.spend(until)
