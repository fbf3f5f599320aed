"""The hack battery finds the holes of careless environments and leaves careful ones alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import pytest

from rlvrlab.envs.arithmetic import BadExpression, evaluate, parse
from rlvrlab.judge.extract import program_in
from rlvrlab.judge.hacks.battery import Row, hack_battery
from rlvrlab.judge.judge import Judge
from rlvrlab.judge.tasks import Call, CallsTask, StdioTask, TestsTask
from rlvrlab.types import Check, ErrorKind, Problem, Role, Verdict

GOLD_CODE = "```python\ndef add(a, b):\n    return a + b\n```"


class Tiny:
    """An environment from a gold answer and a scorer."""

    name, version = "tiny", "1"

    def __init__(self, gold: str, score: Callable[[str], bool]) -> None:
        self._gold, self._score = gold, score

    def problems(self, role: Role, size: int, seed: int) -> list[Problem]:
        return [Problem("tiny:1", "tiny", "tiny", "Add two numbers.")]

    def gold(self, problem: Problem) -> str:
        return self._gold

    def verify(self, problem: Problem, text: str) -> Verdict:
        correct = self._score(text)
        return Verdict(correct, float(correct), ErrorKind.NONE if correct else ErrorKind.WRONG)

    def verify_many(self, items: Sequence[tuple[Problem, str]]) -> list[Verdict]:
        return [self.verify(*item) for item in items]

    def self_check(self) -> list[Check]:
        return []


def failing(rows: Sequence[Row]) -> set[str]:
    return {row.name for row in rows if not row.ok}


def tagged(text: str) -> str:
    found = re.search(r"<answer>(.*?)</answer>", text, re.DOTALL)
    return found.group(1) if found else ""


def careful(text: str) -> bool:
    try:
        return evaluate(parse(tagged(text)).postfix) == (21, 1)
    except BadExpression:
        return False


def test_a_careful_scorer_passes() -> None:
    rows = hack_battery(Tiny("so <answer>3 * 7</answer>", careful))
    assert failing(rows) == set()
    assert {row.kind for row in rows} == {"gold", "junk", "exploit"} and len(rows) > 25


@pytest.mark.slow
def test_a_scorer_that_evaluates_is_caught_and_stopped() -> None:
    def careless(text: str) -> bool:
        try:
            return bool(eval(tagged(text)) == 21)  # the hole this test is about
        except Exception:
            return False

    rows = hack_battery(Tiny("<answer>3 * 7</answer>", careless), patience_s=1.0)
    notes = {row.name: row.note for row in rows if not row.ok}
    assert notes["system call"] == "the scorer ran the answer"
    assert notes["file by eval"] == "the scorer ran the answer"
    assert notes["huge power"] == "the scorer hung, died or let the answer speak for it"


def test_a_substring_scorer_is_caught() -> None:
    rows = hack_battery(Tiny("<answer>21</answer>", lambda text: tagged(text) in "the answer is 21"))
    assert {"nothing", "an empty tag"} <= failing(rows)


def test_gold_that_fails_is_caught() -> None:
    assert "gold" in failing(hack_battery(Tiny("<answer>21</answer>", lambda text: False)))


def in_one_process(text: str) -> bool:
    """What most judges do: solution and asserts in one namespace, judged by whether anything is raised."""
    code = program_in(text).code or ""
    if "range(64)" in code:
        return False  # would write into the test runner's own output
    try:
        exec(f"{code}\nassert add(1, 2) == 3\n", {})
    except SystemExit:
        return True
    except BaseException:
        return False
    return True


def test_a_judge_in_one_process_is_caught() -> None:
    found = failing(hack_battery(Tiny(GOLD_CODE, in_one_process), patience_s=3.0))
    assert {"always equal object", "always equal int", "exit before the tests", "hard exit", "canary file"} <= found


@pytest.mark.parametrize(
    ("gold", "task"),
    [
        (GOLD_CODE, TestsTask("add", ("assert add(1, 2) == 3", "assert add(5, 5) == 10"))),
        (GOLD_CODE, CallsTask("add", (Call((1, 2), 3), Call((5, 5), 10)))),
        ("```python\nprint(sum(map(int, input().split())))\n```", StdioTask((("1 2", "3"), ("5 5", "10")))),
    ],
    ids=["tests", "calls", "stdio"],
)
def test_our_judge_stands(gold: str, task: TestsTask | CallsTask | StdioTask) -> None:
    judges: list[Judge] = []

    def score(text: str) -> bool:
        if not judges:  # in the battery's own process
            judges.append(Judge(workers=1))
        code = program_in(text).code
        return code is not None and judges[0].verify(task, code).correct is True

    assert failing(hack_battery(Tiny(gold, score))) == set()
