"""Judging with a plain SandboxFusion, which runs a program and tells its output, and knows nothing of verdicts.

Contest problems are safe there: the expected output never leaves this machine. Assert code is not. Tests and answer
share one process, so an answer can read the tests, patch what they call or print what they would print. That is what
SandboxFusion's own graders do, and what published numbers were often measured with; here it has to be allowed
(`plain_sandbox`), and every such verdict is flagged `integrity: weak`. A random word that the tests print at their end
keeps an early exit from passing, no more.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Awaitable, Callable
from typing import Any

from rlvrlab.errors import JudgeLost
from rlvrlab.judge import compare
from rlvrlab.judge.finding import Finding
from rlvrlab.judge.outcomes import WEAK, Outcome
from rlvrlab.judge.tasks import StdioTask, SyntaxTask, Task, TestsTask
from rlvrlab.types import Verdict, bad_task

RunCode = Callable[..., Awaitable[dict[str, Any]]]
UNREADABLE = "\ufffd"
REMEDY = (
    "start `rlvr serve judge` in its place, or allow it with --plain-sandbox (RLVR_JUDGE_PLAIN=1, judge.plain_sandbox "
    "in a plan): answers can forge such verdicts, and each is flagged"
)
BROKEN_SYNTAX = ("SyntaxError", "IndentationError", "TabError")
HARNESS = """\
import json, sys, types
given = json.loads({given!r})
sys.modules["solution"] = types.ModuleType("solution")
space = vars(sys.modules["solution"])
for text in given["before"]:
    exec(compile(text, "solution", "exec"), space)
if given["name"]:
    space["candidate"] = space[given["name"]]
for number, text in enumerate(given["tests"]):
    try:
        exec(compile(text, "tests", "exec"), space)
    except Exception as error:
        print(given["word"], "failed", number, type(error).__name__, flush=True)
    else:
        print(given["word"], "passed", number, flush=True)
print(given["word"], "complete", flush=True)
"""
"""What is sent in place of an answer's program: the answer, then its tests, in one process."""


async def judge_plain(run_code: RunCode, code: str, task: Task, every_test: bool, allowed: bool) -> Verdict:
    """The verdict on one program; JudgeLost where such a server cannot be trusted with the task."""
    options = {"run_timeout": task.limits.wall_or_default_s, "memory_limit_MB": task.limits.memory_mb}
    if isinstance(task, StdioTask) and any(UNREADABLE in expected for _, expected in task.tests):
        return bad_task("an expected output holds U+FFFD, which this server also writes for bytes that are no text")
    if isinstance(task, StdioTask) and task.checker is None:
        return (await _stdio(run_code, code, task, every_test, options)).verdict("remote")
    if words := refusal(task, allowed):
        raise JudgeLost(words)
    if isinstance(task, TestsTask):
        return (await _tests(run_code, code, task, options)).verdict("remote")
    return (await _syntax(run_code, code, options)).verdict("remote")


def refusal(task: Task, allowed: bool) -> str:
    """Why such a server may not judge a task, in words with the remedy; empty where it may."""
    if isinstance(task, StdioTask) and task.checker is None:
        return ""
    kind = type(task).__name__.removesuffix("Task").lower()
    if isinstance(task, TestsTask | SyntaxTask) and not allowed:
        return f"a plain SandboxFusion cannot be trusted with {kind} tasks, only with stdio; {REMEDY}"
    if isinstance(task, TestsTask) or task == SyntaxTask(limits=task.limits):
        return ""
    return f"a plain SandboxFusion cannot judge {kind} tasks of this form; start `rlvr serve judge` instead"


async def _stdio(run_code: RunCode, code: str, task: StdioTask, every_test: bool, options: dict[str, Any]) -> Finding:
    finding = Finding(total=len(task.tests))
    for number, (given, expected) in enumerate(task.tests, 1):
        answer = await run_code(code, given, **options)
        run = answer["run_result"]
        if answer["status"] == "Success":
            if compare.same_text(run["stdout"].encode("utf-8", "surrogatepass"), expected, task.comparison):
                finding.passed += 1
            else:
                finding.fail(Outcome.WRONG_ANSWER, "another output")
            continue
        ended, told = _failure(run)
        finding.fail(ended, told)
        if finding.stops(ended, every_test, finding.total - number):
            break
    return finding


async def _tests(run_code: RunCode, code: str, task: TestsTask, options: dict[str, Any]) -> Finding:
    """Setup before the answer: HumanEval's holds the function's stub, which the answer takes the place of."""
    word = secrets.token_hex(16)
    before = [task.setup, f"{task.preamble}\n{code}" if task.preamble else code]
    given = {"before": before, "name": task.entry_point, "tests": task.tests, "word": word}
    answer = await run_code(HARNESS.format(given=json.dumps(given)), "", **options)
    run = answer["run_result"]
    lines = [line.split()[1:] for line in (run.get("stdout") or "").splitlines() if line.startswith(word)]
    finding = Finding(total=len(task.tests))
    finding.flags.append(WEAK)
    finding.passed = min(len(task.tests), len({tuple(line) for line in lines if line[:1] == ["passed"]}))
    if answer["status"] != "Success":
        finding.fail(*_failure(run))
    elif ["complete"] not in lines:
        finding.fail(Outcome.RUNTIME_ERROR, "it ended before its tests did", "early_exit")
    elif finding.passed < finding.total:
        raised = next((line[2] for line in lines if line[:1] == ["failed"] and len(line) > 2), "")
        wrong = raised in ("", "AssertionError")
        finding.fail(Outcome.WRONG_ANSWER if wrong else Outcome.RUNTIME_ERROR, raised or "a test failed")
    return finding


async def _syntax(run_code: RunCode, code: str, options: dict[str, Any]) -> Finding:
    answer = await run_code(f"compile({code!r}, 'solution', 'exec')", "", **options)
    finding = Finding(total=1, passed=int(answer["status"] == "Success"))
    if answer["status"] != "Success":
        finding.fail(*_failure(answer["run_result"]))
    return finding


def _failure(run: dict[str, Any]) -> tuple[Outcome, str]:
    """How a run that was no success ended."""
    if run.get("status") == "TimeLimitExceeded":
        return Outcome.TIME_LIMIT, "the server's time limit"
    words = (run.get("stderr") or "").strip()[-200:]
    last = words.splitlines()[-1] if words else ""
    return Outcome.COMPILE_ERROR if last.startswith(BROKEN_SYNTAX) else Outcome.RUNTIME_ERROR, words
