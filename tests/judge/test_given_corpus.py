"""The 82 programs handed to us as examples of what a judge meets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rlvrlab.judge.jail.limits import Limits
from rlvrlab.judge.judge import Judge
from rlvrlab.judge.tasks import Call, CallsTask, StdioTask, Task
from rlvrlab.types import Verdict

pytestmark = pytest.mark.slow


def task_of(problem: dict[str, Any], limits: Limits) -> Task:
    if "entry_point" in problem:
        pairs = zip(problem["inputs"], problem["expected"], strict=True)
        return CallsTask(
            problem["entry_point"], tuple(Call(tuple(given), want) for given, want in pairs), limits=limits
        )
    outputs = [
        "".join(f"{i}\n" for i in range(200000)) if text == "@range(200000)" else text for text in problem["outputs"]
    ]
    return StdioTask(tuple(zip(problem["inputs"], outputs, strict=True)), limits=limits)


def their_words(verdict: Verdict) -> set[str]:
    word = verdict.detail.partition(":")[0]
    words = {word}
    if "blocked_syscall" in verdict.flags:
        words.add("security_violation")
    if "early_exit" in verdict.flags or word == "no_entry_point":
        words.add("no_result")
    return words


def test_all_82(judge: Judge, corpus: Path) -> None:
    problems = json.loads((corpus / "problem.json").read_text())
    given = problems.pop("limits")
    limits = Limits(
        cpu_s=given["cpu_s"], job_cpu_s=given["cpu_s"], wall_s=given["wall_s"], memory_mb=given["memory_mb"]
    )
    programs = [json.loads(line) for line in (corpus / "expected.jsonl").read_text().splitlines()]
    codes = [(corpus / program["file"]).read_bytes().decode("utf-8", "surrogateescape") for program in programs]
    items = [(task_of(problems[program["kind"]], limits), code) for program, code in zip(programs, codes, strict=True)]
    verdicts = judge.verify_many(items)
    wrong = [
        f"{program['id']}: {verdict.detail}"
        for program, verdict in zip(programs, verdicts, strict=True)
        if not their_words(verdict) & set(program["expected"])
    ]
    assert len(programs) == 82
    assert wrong == []
