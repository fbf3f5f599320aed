"""SandboxFusion's words for our facts.

RunCodeResponse {status: Success | Failed | SandboxError, message, files, run_result: {status: Finished |
TimeLimitExceeded | Error, execution_time, cpu_time, return_code, stdout, stderr}}; fields of ours are added too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from rlvrlab.errors import UserError
from rlvrlab.http_client import BadAnswer
from rlvrlab.judge.finding import failure_of, records_of
from rlvrlab.judge.jail import plain
from rlvrlab.judge.jail.limits import LONGEST_S, Limits
from rlvrlab.judge.outcomes import Outcome
from rlvrlab.judge.task_forms import KINDS, PLAIN, shown
from rlvrlab.judge.tasks import CallsTask, Task
from rlvrlab.judge.workers.orders import Ran
from rlvrlab.types import ErrorKind, Verdict

STDERR_SHOWN = 10_000
CLIENTS_WAIT_S = 8.0
LARGEST = 1 << 53
"""No whole number of a verdict is larger: a float holds it exactly, and nobody has to write 400 digits."""
MARK = "x-rlvrlab-judge"
"""Header of our own servers: the version of their scorer."""


def limits_of(request: dict[str, Any]) -> Limits:
    """SandboxFusion counts wall time; here it bounds CPU time and the wall time while the program could run."""
    try:
        seconds = float(request.get("run_timeout") or 10)
        memory = int(request.get("memory_limit_MB") or -1)
        return Limits(cpu_s=seconds, job_cpu_s=seconds, wall_s=seconds, memory_mb=memory if memory > 0 else 1024)
    except (ArithmeticError, TypeError, ValueError) as error:
        raise UserError(f"run_timeout, memory_limit_MB: {error}") from None


def deadline_s(request: dict[str, Any], limits: Limits) -> float:
    """Seconds until /run_code answers, whatever happens: while its client still listens.

    Clients wait for both of their timeouts and longer (verl 10 s). Python compiles within its run time, so all the
    rest is time that a busy machine may take.
    """
    try:
        compiling = float(request.get("compile_timeout") or 10)
        if not 0 <= compiling <= LONGEST_S:
            raise ValueError(f"from 0 to {LONGEST_S} seconds, got {compiling:g}")
    except (ArithmeticError, TypeError, ValueError) as error:
        raise UserError(f"compile_timeout: {error}") from None
    return limits.cpu_s + compiling + CLIENTS_WAIT_S


def run_code_response(ran: Ran, limits: Limits, isolation: str, fetched: Sequence[str] = ()) -> dict[str, Any]:
    """What /run_code answers. Of the files, only those that were asked for: a program can report others of any name."""
    records = records_of(ran) or ()
    found = [record[1:] for record in records if record[0] == "file" and len(record) == 3]
    failure = failure_of(ran, limits, records)
    outcome = failure[0] if failure else Outcome.ACCEPTED
    stderr = ran.stderr.decode("utf-8", "replace")[:STDERR_SHOWN]
    return {
        "status": "Failed" if failure else "Success",
        "message": "",
        "compile_result": None,
        "run_result": {
            "status": "TimeLimitExceeded" if outcome is Outcome.TIME_LIMIT else "Finished",
            "execution_time": ran.wall_s,
            "cpu_time": ran.cpu_s,
            "return_code": None if outcome is Outcome.TIME_LIMIT else ran.exit or (1 if failure else 0),
            "stdout": ran.stdout.decode("utf-8", "replace"),
            "stderr": stderr + (f"{failure[1]}\n" if failure else ""),
        },
        "executor_pod_name": None,
        "files": {name: content for name, content in found if name in fetched and isinstance(content, str)},
        "verdict": str(outcome) if failure else "finished",
        "isolation": isolation,
        "max_rss_mb": ran.peak_mb,
    }


def task_to_wire(task: Task) -> dict[str, Any]:
    """A task as JSON for /judge; NotPlain where a value has no plain form."""
    kind = next(name for name, one in KINDS.items() if one is type(task))
    form = {"kind": kind, **asdict(task)}
    if isinstance(task, CallsTask):
        # JSON would turn a tuple into a list and a number that is a key into text: another task, and another verdict.
        form["calls"] = [{PLAIN: plain.encode((c.arguments, c.expected, c.named))} for c in task.calls]
    return form


def verdict_to_wire(verdict: Verdict) -> dict[str, Any]:
    """A verdict as JSON."""
    return {**asdict(verdict), "error": str(verdict.error)}


def verdict_from_wire(form: Any) -> Verdict:
    """A verdict from JSON; BadAnswer where it is none: nothing has been said about the answer then."""
    if not isinstance(form, dict) or form.keys() != VERDICT.keys():
        raise BadAnswer("not a verdict: other fields than a verdict has")
    wrong = [key for key, fits in VERDICT.items() if not fits(form[key])]
    if wrong:
        raise BadAnswer(f"not a verdict: {wrong[0]} is {shown(form[wrong[0]])}")
    right, error = form["correct"], ErrorKind(form["error"])
    if (right is True) != (error is ErrorKind.NONE) or (right is None) != (
        error in (ErrorKind.INFRA, ErrorKind.BAD_TASK)
    ):
        raise BadAnswer(f"not a verdict: correct is {right} and error is {error}")
    score, passed, total = form["score"], form["passed"], form["total"]
    fitting = {True: score == 1 and passed == total, False: score < 1 and passed < max(1, total)}
    if not fitting.get(right, score == passed == 0):
        raise BadAnswer(f"not a verdict: correct is {right}, score {score:g}, {passed} of {total} tests passed")
    isolation = f"remote {form['isolation']}"
    return Verdict(**{**form, "error": error, "flags": tuple(form["flags"]), "isolation": isolation})


def _number(value: Any) -> bool:
    if isinstance(value, int):
        return not isinstance(value, bool) and abs(value) <= LARGEST
    return isinstance(value, float) and math.isfinite(value)


def _count(value: Any) -> bool:
    return isinstance(value, int) and _number(value) and value >= 0


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _numbers(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_number, value.values()))


VERDICT: dict[str, Callable[[Any], bool]] = {
    "correct": lambda value: value is None or isinstance(value, bool),
    "score": lambda value: _number(value) and 0 <= value <= 1,
    "error": lambda value: isinstance(value, str) and value in set(ErrorKind),
    "parts": _numbers,
    "passed": _count,
    "total": _count,
    "answer": lambda value: value is None or isinstance(value, str),
    "detail": _text,
    "isolation": _text,
    "flags": lambda value: isinstance(value, list) and all(map(_text, value)),
    "cost": _numbers,
}
"""The fields of a verdict, all of them needed, and what each may hold."""


def checked_run(form: dict[str, Any]) -> dict[str, Any]:
    """An answer of /run_code that says how the program ended; BadAnswer where any part of it is missing or odd.

    A server's own failure (SandboxError, or a run with status Error) says nothing about the program either.
    """
    status, run = form.get("status"), form.get("run_result")
    if status not in ("Success", "Failed"):
        raise BadAnswer(f"status is {shown(status)}; Success or Failed is needed")
    if not isinstance(run, dict):
        raise BadAnswer(f"run_result is {shown(run)}; an object is needed")
    ended, code = run.get("status"), run.get("return_code")
    if ended == "TimeLimitExceeded" and status == "Failed":
        return form
    if ended != "Finished" or not isinstance(code, int) or isinstance(code, bool):
        raise BadAnswer(f"run_result has status {shown(ended)} and return_code {shown(code)}")
    if (code == 0) != (status == "Success"):
        raise BadAnswer(f"status is {status}, but return_code is {code}")
    if not isinstance(run.get("stdout"), str) or not isinstance(run.get("stderr"), str | None):
        raise BadAnswer("run_result has no text as stdout, or something else as stderr")
    return form
