"""The judge against its own corpus: every program gets a verdict that is right for it, and nothing is left behind."""

from __future__ import annotations

import os
import time
from collections import Counter
from pathlib import Path

import pytest
from programs import BENIGN, CLASSIFIED, FORGERY, ISOLATION, PATHOLOGICAL, PROGRAMS, SPREAD_CALLS, SUM_TESTS, Program

from rlvrlab.judge.jail.limits import Limits
from rlvrlab.judge.jail.numbers import KEEPER
from rlvrlab.judge.jail.template import NAME as TEMPLATE
from rlvrlab.judge.judge import Judge
from rlvrlab.judge.tasks import Call, CallsTask, StdioTask, Task, TestsTask
from rlvrlab.types import Verdict

# job_cpu_s only postpones when a child is given up as starved: on a busy machine 0.4 s may take a while to get.
SHORT = Limits(cpu_s=0.4, job_cpu_s=2.0, wall_s=1.0, memory_mb=256)
AMPLE = Limits(cpu_s=20.0, job_cpu_s=20.0, memory_mb=256)


def limits_of(program: Program) -> Limits:
    """Short only where running out of time is right: on a slow machine it would hide every other outcome."""
    return SHORT if "time_limit" in program.outcomes else AMPLE


def task_of(program: Program) -> Task:
    if program.kind == "sum":
        return StdioTask(tuple(SUM_TESTS), limits=limits_of(program))
    calls = tuple(Call((xs,), expected) for xs, expected in SPREAD_CALLS)
    return CallsTask("spread", calls, limits=limits_of(program))


def outcome_of(verdict: Verdict) -> str:
    return verdict.detail.partition(":")[0]


def wrong_verdicts(judge: Judge, programs: list[Program]) -> list[str]:
    verdicts = judge.verify_many([(task_of(program), program.code) for program in programs])
    return [
        f"{program.name}: {verdict.detail}"
        for program, verdict in zip(programs, verdicts, strict=True)
        if outcome_of(verdict) not in program.outcomes
        or (verdict.correct is True) != (outcome_of(verdict) == "accepted")
    ]


def descendants() -> set[int]:
    """Every process below this one but templates and keepers of numbers, which live as long as their workers."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                name, _, rest = (entry / "stat").read_text().partition("(")[2].rpartition(")")
                if name.encode() not in (KEEPER, TEMPLATE):
                    parents[int(entry.name)] = int(rest.split()[1])
            except OSError:
                continue
    found = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {os.getpid()}


def test_corpus_is_large_and_named_once() -> None:
    assert len(PROGRAMS) >= 150
    assert len(BENIGN) >= 40
    assert [name for name, count in Counter(program.name for program in PROGRAMS).items() if count > 1] == []


@pytest.mark.parametrize(
    "group", [ISOLATION, FORGERY, CLASSIFIED, BENIGN], ids=["isolation", "forgery", "classified", "benign"]
)
def test_verdicts(judge: Judge, group: list[Program]) -> None:
    assert wrong_verdicts(judge, group) == []


@pytest.mark.slow
def test_pathological_programs_end_and_leave_nothing(judge: Judge) -> None:
    judge.verify(task_of(BENIGN[0]), BENIGN[0].code)
    before = descendants()
    assert wrong_verdicts(judge, PATHOLOGICAL) == []
    until = time.monotonic() + 30  # a killed process takes a moment to be gone
    while left := descendants() - before - {worker.process.pid for worker in judge.pools["code"]._workers}:
        assert time.monotonic() < until, left
        time.sleep(0.02)
    assert not [name for name in os.listdir("/tmp") if name.startswith("judge_attack")]


def test_the_attacks_would_work_without_walls(tmp_path: Path) -> None:
    """The corpus must be able to fail: outside the jail the file attacks succeed."""
    canary = tmp_path / "canary"
    canary.write_text("secret")
    opened = next(program for program in ISOLATION if program.name == "read_passwd")
    script = tmp_path / "attack.py"
    script.write_text(opened.code.replace("/etc/passwd", str(canary)) + "\nprint(spread([1, 3]))")
    import subprocess
    import sys

    assert subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True).stdout == "2\n"


FUNCTIONS = [program for program in FORGERY + BENIGN if program.kind == "spread"]


def test_split_tests_cannot_be_forged(judge: Judge) -> None:
    """The same forgeries against assert code, which runs in a process the candidate never enters."""
    asserts = tuple(f"assert spread({xs}) == {expected}" for xs, expected in SPREAD_CALLS)
    tasks = [TestsTask("spread", asserts, limits=limits_of(program)) for program in FUNCTIONS]
    verdicts = judge.verify_many([(task, one.code) for task, one in zip(tasks, FUNCTIONS, strict=True)])
    # Python's own `==` takes 6.0 and True for 6 and 1: assert code that compares so accepts them rightly.
    lenient = {"true_for_one", "float_for_int"}
    wrong = [
        f"{program.name}: {verdict.detail}"
        for program, verdict in zip(FUNCTIONS, verdicts, strict=True)
        if program.name not in lenient and (verdict.correct is True) != (program in BENIGN)
    ]
    assert wrong == []
