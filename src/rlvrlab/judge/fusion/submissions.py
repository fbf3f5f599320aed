"""/submit: a completion against rows the caller brings along (`provided_data`), in SandboxFusion's shapes.

test: [{"input": {"stdin": "1 2"}, "output": {"stdout": "3"}}]   a contest problem, one run per test
test: "def check(candidate): …", entry_point: "add"              HumanEval; judged split, not by exit status
test_list: ["assert add(1, 2) == 3"], entry_point: "add"         MBPP

Rows as SandboxFusion's own data sets have them (sandbox/datasets) keep some of it elsewhere: HumanEval is {task_id,
prompt, test, entry_point} or {id, content, test, labels: {entry_point}}, MBPP is {id, content, test_list, labels:
{test_setup_code}} without any entry_point; labels and test_list may be JSON in a string.

An answer that is wrong is `accepted: false`. A row that cannot be judged is a UserError (422), a machine that failed an
InfrastructureError (500): neither says anything about the answer.
"""

from __future__ import annotations

import builtins
import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable
from keyword import iskeyword
from typing import Any, NamedTuple

from rlvrlab.errors import InfrastructureError, UserError
from rlvrlab.judge.code import CodeJudge
from rlvrlab.judge.compare import RSTRIP_LINES, same_text
from rlvrlab.judge.extract import program_in
from rlvrlab.judge.fusion import wire
from rlvrlab.judge.fusion.datasets import Datasets
from rlvrlab.judge.modes.stdio import TEXT_KINDS, no_output
from rlvrlab.judge.task_forms import comparison_of, shown
from rlvrlab.judge.tasks import TestsTask
from rlvrlab.types import ErrorKind, Verdict

Form = dict[str, Any]
CALLED = re.compile(r"(?<![\w.])([A-Za-z_]\w*)[ \t]*\(")
BROUGHT = re.compile(r"^[ \t]*(?:def[ \t]+\w+|class[ \t]+\w+|(?:from|import)[ \t].*)", re.MULTILINE)
"""Lines that bind names, as far as the names go."""


class Executed(NamedTuple):
    """A program that has run."""

    stdout: bytes
    """What it wrote, before anything was replaced in it to make it text."""
    response: Form
    """As /run_code answers."""


Execute = Callable[[Form], Awaitable[Executed]]


class ContestTest(NamedTuple):
    """One run of a contest problem."""

    stdin: Any
    stdout: str
    """What the program must write."""
    row: Form
    """As the caller gave it."""


async def judge_submission(form: Form, execute: Execute, judge: CodeJudge, kept: Datasets) -> Form:
    """SandboxFusion's EvalResult, for a row that the caller brings along or one that the server keeps."""
    config, completion = _table(form, "config"), form.get("completion")
    if not isinstance(completion, str):  # a request that is broken, not an answer that is wrong
        raise UserError(f"completion: {shown(completion)}; a string is needed")
    if config.get("language") not in (None, "", "python", "python3"):
        raise UserError(f"config.language: {shown(config['language'])} is not supported; allowed: python")
    provided = config.get("provided_data")
    if provided is None:
        provided = kept.row(form)
    given = provided if isinstance(provided, list) else [provided]
    rows = [published(row) for row in given if isinstance(row, dict)]
    wanted = [row for row in rows if str(row.get("id")) == str(form.get("id"))]
    asked = wanted if len(given) > 1 else rows
    if not asked:
        raise UserError("config.provided_data: no row with this id")
    row = asked[0]
    task = _task_of(row, config)
    name, prompt = _text(row, "entry_point"), _text(row, "prompt")
    begun = prompt if isinstance(row.get("test"), str) and f"def {name}(" in prompt else ""
    found = program_in(completion, name, _text(row, "begun") or begun)
    kind = "empty" if found.code is None else "fenced" if "```" in completion else "heuristic"
    result: Form = {"id": form.get("id"), "extracted_code": found.code or "", "extracted_type": kind}
    if found.code is None:
        return {**result, "accepted": False, "tests": [], "extra": {"reason": found.reason}}
    if isinstance(task, TestsTask):
        tests, count = [_as_test(await judge.judge(found.code, task))], 1
    else:
        tests, count = await _contest(found.code, task, config, execute), len(task)
    return {**result, "accepted": len(tests) == count and all(test["passed"] for test in tests), "tests": tests}


def _task_of(row: Form, config: Form) -> TestsTask | list[ContestTest]:
    """What the row's tests are; a row that leaves open what is right is refused, whatever was answered."""
    if row.get("test") and row.get("test_list"):
        raise UserError("provided_data: both test and test_list; one of them would not be asked, so leave one out")
    if not isinstance(row.get("test"), list) or row.get("test_list"):
        return _assert_task(row, config)
    if not row["test"]:
        raise UserError("provided_data.test: it is empty, and everything would pass")
    return [_contest_test(test, f"provided_data.test[{number}]") for number, test in enumerate(row["test"])]


def _contest_test(test: Any, where: str) -> ContestTest:
    """What the program reads and must write. Anything else that a test asks for, files say, nobody here looks at."""
    parts = {"input": "stdin", "output": "stdout"}
    if not isinstance(test, dict):
        raise UserError(f"{where}: {shown(test)}; {{input: {{stdin}}, output: {{stdout}}}} is needed")
    unread = [key for key, value in test.items() if key not in parts and value]
    unread += [f"{p}.{key}" for p, name in parts.items() for key, v in _table(test, p).items() if key != name and v]
    if unread:
        raise UserError(f"{where}: {shown(unread[0])} is not judged here; allowed: input.stdin, output.stdout")
    wanted = _table(test, "output").get("stdout")
    if not isinstance(wanted, str):
        raise UserError(f"{where}: output.stdout: {shown(wanted)}; a string is needed")
    if no_output(wanted):
        raise UserError(f"{where}: output.stdout holds half a character (a lone surrogate)")
    return ContestTest(_table(test, "input").get("stdin", ""), wanted, test)


async def _contest(code: str, tests: list[ContestTest], config: Form, execute: Execute) -> list[Form]:
    extra = _table(config, "extra")
    policy = comparison_of(extra.get("comparison", RSTRIP_LINES), "config.extra.comparison")
    if policy.kind not in TEXT_KINDS:
        raise UserError(f"config.extra.comparison: {policy.kind!r} is for values; for text: {', '.join(TEXT_KINDS)}")
    done: list[Form] = []
    everything = bool(extra.get("run_all_cases"))
    for given, wanted, test in tests:
        request = {"code": code, "language": "python", "stdin": given, "run_timeout": config.get("run_timeout")}
        stdout, ran = await execute({**request, "memory_limit_MB": extra.get("memory_limit_MB")})
        right = ran["status"] == "Success" and same_text(stdout, wanted, policy)
        done.append({"passed": right, "exec_info": ran, "test_info": test if extra.get("return_full_case") else None})
        # A wrong output must not decide whether another test is started: the program could tell.
        if ran["status"] != "Success" and not everything:
            break
    told = len(done) if everything else next((i for i, one in enumerate(done, 1) if not one["passed"]), len(done))
    return done[:told]


def _table(form: Form, key: str) -> Form:
    """A part of a form that may be left out."""
    part = form.get(key) or {}
    if not isinstance(part, dict):
        raise UserError(f"{key}: an object is needed, not {part!r:.80}")
    return part


def _text(row: Form, key: str) -> str:
    """A text of a row that may be left out."""
    value = row.get(key)
    if value is not None and not isinstance(value, str):
        raise UserError(f"provided_data.{key}: {shown(value)}; a string is needed")
    return value or ""


def published(row: Form) -> Form:
    """The row with everything in its place: id, prompt, entry_point, test_setup_code, and JSON in strings as values."""
    labels, tests = _from_json(row, "labels", {}), _from_json(row, "test_list", None)
    named = labels if isinstance(labels, dict) else {}
    row = {**row, **({"test_list": tests} if tests is not None else {})}
    row.setdefault("id", row.get("task_id"))
    row.setdefault("prompt", row.get("content"))
    row.setdefault("test_setup_code", named.get("test_setup_code") or "")
    row.setdefault("entry_point", named.get("entry_point") or _function_tested(row))
    return row


def _from_json(row: Form, key: str, default: Any) -> Any:
    value = row.get(key, default)
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        raise UserError(f"provided_data.{key}: neither a value nor JSON ({error})") from None


def _function_tested(row: Form) -> str | None:
    """The function of the reference solution that the tests call; without a solution, the one they call most.

    What the tests or their setup import or define themselves is nobody's answer.
    """
    tests = row.get("test_list") if isinstance(row.get("test_list"), list) else [row.get("test")]
    text = "\n".join(one for one in tests or [] if isinstance(one, str))
    defined = set(re.findall(r"^def[ \t]+(\w+)", _text(row, "canonical_solution"), re.MULTILINE))
    brought = set(re.findall(r"\w+", " ".join(BROUGHT.findall(f"{_text(row, 'test_setup_code')}\n{text}"))))
    called = [name for name in CALLED.findall(text) if not (hasattr(builtins, name) or iskeyword(name))]
    known = [name for name in called if name in defined] or [name for name in called if name not in brought]
    return Counter(known).most_common(1)[0][0] if known else None


def _assert_task(row: Form, config: Form) -> TestsTask:
    name = _text(row, "entry_point")
    if not name:
        raise UserError("provided_data.entry_point: which function is tested? neither the row nor its tests name one")
    limits = wire.limits_of({"run_timeout": config.get("run_timeout")})
    if row.get("test_list") is not None and not row.get("test"):
        if not isinstance(row["test_list"], list):
            raise UserError("provided_data.test_list: a list of assert statements is needed")
        setup = _text(row, "test_setup_code")
        return TestsTask(name, tuple(row["test_list"]), setup=setup, preamble=setup, limits=limits)
    test = row.get("test")
    if not isinstance(test, str):
        raise UserError("provided_data.test: test code, or a list of {input: {stdin}, output: {stdout}}, is needed")
    call = "" if f"check({name})" in test or "def check(" not in test else "\ncheck(candidate)"
    return TestsTask(name, (test + call,), setup=_text(row, "prompt"), limits=limits)


def _as_test(verdict: Verdict) -> Form:
    if verdict.error is ErrorKind.BAD_TASK:
        raise UserError(f"provided_data: {verdict.detail}")
    if verdict.correct is None:
        raise InfrastructureError(verdict.detail)
    status = "Success" if verdict.correct else "Failed"
    run = {
        "status": "TimeLimitExceeded" if verdict.error is ErrorKind.TIMEOUT else "Finished",
        "execution_time": verdict.cost.get("wall_s"),
        "return_code": 0 if verdict.correct else 1,
        "stdout": "",
        "stderr": verdict.detail,
    }
    info = {"status": status, "message": verdict.detail, "run_result": run, "files": {}}
    told = {"verdict": wire.verdict_to_wire(verdict)}
    return {"passed": verdict.correct, "exec_info": info, "test_info": told}
