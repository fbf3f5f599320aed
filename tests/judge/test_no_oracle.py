"""What a program can see of its own judging is the same whether it answers right or wrong; and every test counts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from slow_cases import some_slow

from rlvrlab.judge.jail.limits import Limits
from rlvrlab.judge.judge import Judge
from rlvrlab.judge.tasks import Call, CallsTask, StdioTask, TestsTask
from rlvrlab.judge.workers.orders import Order, Ran
from rlvrlab.judge.workers.worker import NO_JOB, Child, Worker

CHECKER = "import json, sys\nq = json.load(sys.stdin)\nsys.exit(q['output'].strip() != q['expected'])"
PAIRS = tuple((str(i), str(i % 2)) for i in range(5))
LOOP = "def check(g):\n    for i in range(5): assert g(i) == i % 2\ncheck(f)"
EXPECTING = """
from contextlib import suppress
def check(g):
    for i in range(5):
        try:
            assert g(i) == i % 2
            with suppress(KeyError, ZeroDivisionError):
                assert g(i) == i % 2 if i < 0 else 1 / 0
        except (ValueError, TypeError):
            assert False
        finally:
            i += 1
check(f)
"""
PIECES = tuple(f"want = {i % 2}\nassert f({i}) == want" for i in range(5))
TASKS: dict[str, Any] = {
    "stdio": StdioTask(PAIRS),
    "stdio with a checker": StdioTask(PAIRS, checker=CHECKER),
    "calls": CallsTask("f", tuple(Call((i,), i % 2) for i in range(5))),
    "tests as data": TestsTask("f", tuple(f"assert f({i}) == {i % 2}" for i in range(5))),
    "tests in a loop": TestsTask("f", (LOOP,)),
    "tests in pieces": TestsTask("f", PIECES),
    "tests that expect an exception": TestsTask("f", (EXPECTING,)),
}
QUICK = Limits(cpu_s=0.3, job_cpu_s=3.0, wall_s=1.0)


def answering(task: Any, value: str) -> str:
    """A program that shows what reaches it and answers with this expression of i."""
    if isinstance(task, StdioTask):
        return f"i = int(input())\nimport sys\nprint(i, file=sys.stderr)\nprint({value})"
    return f"import sys\ndef f(i):\n    print(i, file=sys.stderr, flush=True)\n    return {value}"


@pytest.mark.parametrize("every_test", some_slow([True, False], {False}))
@pytest.mark.parametrize("name", TASKS)
def test_right_and_wrong_answers_see_the_same(monkeypatch: pytest.MonkeyPatch, name: str, every_test: bool) -> None:
    """Nothing is started, called or left out because of an answer, and checkers wait until the last test has run."""
    started: list[str] = []
    seen: list[bytes] = []
    start, collect = Worker.start, Child.collect

    def noted(self: Worker, order: Order) -> Child:
        if order is not NO_JOB:
            started.append("checker" if order.job.get("code") == CHECKER else str(order.job["role"]))
        return start(self, order)

    def looked(self: Child, ended: list[Any]) -> Ran:
        ran = collect(self, ended)
        seen.append(ran.stderr)
        return ran

    monkeypatch.setattr(Worker, "start", noted)
    monkeypatch.setattr(Child, "collect", looked)
    views = []
    with Judge(workers=1, every_test=every_test) as judge:
        for value, passed in (("i % 2", 5), ("1 - i % 2", 0), ("i % 2 if i else 7", 4)):
            started.clear()
            seen.clear()
            verdict = judge.verify(TASKS[name], answering(TASKS[name], value))
            assert verdict.passed == (passed if verdict.total > 1 else passed == 5) and verdict.flags == (), verdict
            views.append(([role for role in started if role not in ("asserts", "unaided", "faults")], b"".join(seen)))
    assert views[0] == views[1] == views[2]
    assert b"".join(views[0][1].split()) == b"01234"
    if "checker" in name:
        assert views[0][0] == ["program"] * 5 + ["checker"] * 5


@pytest.fixture(scope="module")
def hasty() -> Iterator[Judge]:
    with Judge(workers=1, every_test=False) as one:
        yield one


CRASHES = {
    "raise ValueError": True,
    "import os; os._exit(0)": False,  # a program that reads and prints may end like that
    "import os; os._exit(3)": True,
    "[0 for _ in iter(int, 1)]": True,
}


@pytest.mark.parametrize("how", [*list(CRASHES)[:3], pytest.param(list(CRASHES)[3], marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "name", [name for name in TASKS if name not in ("tests in a loop", "tests that expect an exception")]
)
def test_a_test_that_ends_the_program_is_one_failed_test(judge: Judge, hasty: Judge, name: str, how: str) -> None:
    task = replace(TASKS[name], limits=QUICK)
    if isinstance(task, StdioTask):
        code = f"i = int(input())\nif i == 1:\n    {how}\nprint(i % 2)"
    else:
        code = f"def f(i):\n    if i == 1:\n        {how}\n    return i % 2"
    verdict = judge.verify(task, code)
    assert (verdict.correct, verdict.passed, verdict.total) == (False, 4, 5), verdict
    assert "stopped_early" not in verdict.flags
    verdict = hasty.verify(task, code)
    stopped = CRASHES[how] if isinstance(task, StdioTask) else how != "raise ValueError"
    assert (verdict.passed, "stopped_early" in verdict.flags) == ((1, True) if stopped else (4, False)), verdict


@pytest.mark.parametrize("name", ["stdio", "calls", "tests in pieces"])
@pytest.mark.slow
def test_an_endless_program_is_given_up_and_says_so(judge: Judge, name: str) -> None:
    code = "def f(i):\n    while True: pass\nif __name__ == '__main__': f(1)"
    verdict = judge.verify(replace(TASKS[name], limits=QUICK), code)
    assert (verdict.correct, verdict.passed, "stopped_early" in verdict.flags) == (False, 0, True)


def test_a_program_cannot_claim_more_than_all_tests(judge: Judge) -> None:
    forged = "import os\nos.write(3, b'[\"passed\"]\\n' * 50)\nos._exit(1)"
    verdict = judge.verify(TestsTask("f", PIECES, inprocess=True), forged)
    assert verdict.correct is False and verdict.passed <= verdict.total and verdict.score <= 1.0


CATCHING = {
    "try:\n    assert f(0) == 0\nexcept {what}:\n    assert f(1) == 1": (
        "AssertionError",
        "Exception",
        "BaseException",
        "(KeyError, Exception)",
        "f",
    ),
    "import contextlib\nwith contextlib.suppress({what}):\n    assert f(0) == 0": ("AssertionError", "Exception"),
    "import unittest\nwith unittest.TestCase().assertRaises({what}):\n    assert f(0) == 99": (
        "AssertionError",
        "expected_exception=AssertionError",
    ),
    "import unittest\ndef g():\n    assert f(0) == 99\nunittest.TestCase().assertRaises({what}, g)": (
        "AssertionError",
    ),
    "from concurrent.futures import ThreadPoolExecutor as Pool\ndef g():\n    assert f(0) == 99\n"
    "assert Pool(1).submit(g).{what}": ("exception()",),
    "import asyncio\nasync def g():\n    assert f(0) == 99\nasync def h():\n"
    "    return await asyncio.gather(g(), {what})\nassert asyncio.run(h())[0]": ("return_exceptions=True",),
    "def g():\n    try:\n        assert f(0) == 0\n    finally:\n        {what}\ng()": ("return",),
}


@pytest.mark.parametrize("test", [text.format(what=what) for text, names in CATCHING.items() for what in names])
def test_tests_that_may_catch_a_failed_assert_run_as_they_are_and_it_is_said(judge: Judge, test: str) -> None:
    """The failure means something to them: a wrong first answer is not the end."""
    right = judge.verify(TestsTask("f", (test,)), "def f(i): return i")
    assert (right.correct, right.flags) == (True, ("stops_at_failure",)), right
    caught = judge.verify(TestsTask("f", (test,)), "def f(i): return 1")
    assert caught.correct is ("except f" not in test), caught


def test_tests_that_cannot_be_rewritten_run_as_they_are_and_it_is_said(judge: Judge) -> None:
    """A sum of six hundred terms is nested too deeply for a tree to be written as text again."""
    task = TestsTask("f", (f"assert f(0) == 0\nassert f(600) == {' + '.join(['1'] * 600)}",))
    verdict = judge.verify(task, "def f(i): return i")
    assert (verdict.correct, verdict.flags) == (True, ("stops_at_failure",)), verdict


STEERED = {
    "and": "assert f(1) == 1 and f(2) == 4",
    "all": "assert all(f(i) == i * i for i in range(5))",
    "chain": "assert f(1) == 1 == f(1)",
    "either": "assert f(2) == 4 if f(1) == 1 else False",
    "raise": "if f(1) != 1:\n    raise ValueError('bad')\nassert f(2) == 4",
    "exit": "import sys\nif f(1) != 1:\n    sys.exit(1)\nassert f(2) == 4",
    "while": "i = 0\nwhile i < 5 and f(i) == i * i:\n    i += 1\nassert i == 5",
    "return": "def g(c):\n for i in range(5):\n  if c(i) != i * i:\n   return False\n return True\nassert g(f)",
    "unittest": "import unittest\nt = unittest.TestCase()\nt.assertEqual(f(1), 1)\nt.assertEqual(f(2), 4)",
}  # fmt: skip
UNSTEERED = {
    "loop": "for i in range(5):\n    if i % 2 == 0:\n        assert f(i) == i * i",
    "helper": "def same(a, b):\n if b and isinstance(b, float):\n  b = round(b)\n assert a == b\nsame(f(2), 4.0)",
    "list": "assert all([f(i) == i * i for i in range(3)])",
}  # fmt: skip


@pytest.mark.parametrize("test", [*STEERED.values(), *UNSTEERED.values()], ids=[*STEERED, *UNSTEERED])
def test_tests_that_call_less_after_a_wrong_answer_are_flagged(judge: Judge, test: str) -> None:
    """A program counts the calls that reach it: here it can tell that an answer was wrong, and the verdict says so."""
    verdict = judge.verify(TestsTask("f", (test,)), "def f(x): return x * x")
    flags = ("stops_at_failure",) if test in STEERED.values() else ()
    assert (verdict.correct, verdict.flags) == (True, flags), verdict


@pytest.mark.parametrize(
    "task",
    [
        CallsTask("f", tuple(Call((i,), i) for i in range(60))),
        TestsTask("f", tuple(f"a = f({i})\nassert a + 0 == {i}" for i in range(60))),
    ],
)
def test_a_program_that_ends_at_every_test_is_not_handed_all_that_are_left_each_time(
    monkeypatch: pytest.MonkeyPatch, task: CallsTask | TestsTask
) -> None:
    handed: list[int] = []
    start = Worker.start

    def noted(self: Worker, order: Order) -> Child:
        if order is not NO_JOB and order.job["role"] in ("calls", "tester"):
            handed.append(len(order.job.get("calls", order.job.get("tests"))))
        return start(self, order)

    monkeypatch.setattr(Worker, "start", noted)
    with Judge(workers=1) as judge:
        ending = judge.verify(task, "import os\ndef f(x): os._exit(0)")
        assert (ending.correct, ending.passed, len(handed)) == (False, 0, 60)
        assert handed[0] == 60 and max(handed[1:]) == 8
        handed.clear()
        once = judge.verify(task, "import os\ndef f(x):\n    if x == 1: os._exit(0)\n    return x")
        assert (once.correct, once.passed, handed) == (False, 59, [60, 8, 16, 32, 2])
