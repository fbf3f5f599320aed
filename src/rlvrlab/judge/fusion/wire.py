"""SandboxFusion's words for our facts.

RunCodeResponse {status: Success | Failed | SandboxError, message, files, run_result: {status: Finished |
TimeLimitExceeded | Error, execution_time, cpu_time, return_code, stdout, stderr}}; fields of ours are added too.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from rlvrlab.errors import InfrastructureError, UserError
from rlvrlab.judge.compare import Comparison
from rlvrlab.judge.finding import failure_of, records_of
from rlvrlab.judge.jail import plain
from rlvrlab.judge.jail.limits import LONGEST_S, Limits
from rlvrlab.judge.outcomes import Outcome
from rlvrlab.judge.tasks import Call, CallsTask, StdioTask, SyntaxTask, Task, TestsTask
from rlvrlab.judge.workers.orders import Ran
from rlvrlab.types import ErrorKind, Verdict

STDERR_SHOWN = 10_000
CLIENTS_WAIT_S = 8.0
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
    except (TypeError, ValueError) as error:
        raise UserError(f"compile_timeout: {error}") from None
    return limits.cpu_s + compiling + CLIENTS_WAIT_S


def run_code_response(ran: Ran, limits: Limits, isolation: str) -> dict[str, Any]:
    """What /run_code answers."""
    records = records_of(ran) or ()
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
        "files": {str(record[1]): str(record[2]) for record in records if record[0] == "file" and len(record) == 3},
        "verdict": str(outcome) if failure else "finished",
        "isolation": isolation,
        "max_rss_mb": ran.peak_mb,
    }


def task_to_wire(task: Task) -> dict[str, Any]:
    """A task as JSON for /judge; NotPlain where a value has no plain form."""
    kinds: dict[type[Any], str] = {StdioTask: "stdio", CallsTask: "calls", TestsTask: "tests", SyntaxTask: "syntax"}
    form = {"kind": kinds[type(task)], **asdict(task)}
    if isinstance(task, CallsTask):
        # JSON would turn a tuple into a list and a number that is a key into text: another task, and another verdict.
        form["calls"] = [{"plain": plain.encode((c.arguments, c.expected, c.named))} for c in task.calls]
    return form


def task_from_wire(form: dict[str, Any]) -> Task:
    """A task from JSON; UserError says which part is wrong."""
    try:
        form = dict(form)
        kind = form.pop("kind")
        if "limits" in form:
            form["limits"] = Limits(**form["limits"])
        if "comparison" in form:
            form["comparison"] = Comparison(**form["comparison"])
        match kind:
            case "stdio":
                return StdioTask(**{**form, "tests": tuple((given, wanted) for given, wanted in form["tests"])})
            case "calls":
                calls = (  # {arguments, expected, named} as JSON, or exactly, {plain: as in jail/plain.py}
                    Call(*plain.decode(one["plain"]))
                    if "plain" in one
                    else Call(**{**one, "arguments": tuple(one["arguments"])})
                    for one in form["calls"]
                )
                return CallsTask(**{**form, "calls": tuple(calls)})
            case "tests":
                return TestsTask(**{**form, "tests": tuple(form["tests"])})
            case "syntax":
                form |= {key: tuple(form[key]) for key in ("functions", "forbidden") if key in form}
                return SyntaxTask(**form)
    except (ArithmeticError, AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise UserError(f"task: {type(error).__name__}: {error}") from None
    raise UserError(f"task.kind: {kind!r}; allowed: stdio, calls, tests, syntax")


def verdict_to_wire(verdict: Verdict) -> dict[str, Any]:
    """A verdict as JSON."""
    return {**asdict(verdict), "error": str(verdict.error)}


def verdict_from_wire(form: dict[str, Any]) -> Verdict:
    """A verdict from JSON; InfrastructureError where it is none: nothing has been said about the answer then."""
    try:
        verdict = Verdict(**{**form, "error": ErrorKind(form["error"]), "flags": tuple(form["flags"])})
        if not isinstance(verdict.correct, bool | None) or not 0 <= verdict.score <= 1:
            raise ValueError(f"correct {verdict.correct!r}, score {verdict.score!r}")
    except (KeyError, TypeError, ValueError) as error:
        raise InfrastructureError(f"not a verdict ({type(error).__name__}: {error})") from None
    return replace(verdict, isolation=f"remote {verdict.isolation}")
