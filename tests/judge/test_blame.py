"""No answer leaves itself unjudged: what it brings about in the tests is its own fault, what they do is theirs."""

from __future__ import annotations

import pytest

from rlvrlab.judge.jail.fed_back import feed_results_back
from rlvrlab.judge.judge import Judge
from rlvrlab.judge.tasks import TestsTask
from rlvrlab.types import ErrorKind

RAISES = 'def f(x): raise ImportError(f"x{x}")'
POOL = "from concurrent.futures import ThreadPoolExecutor\n"
HUGE = "from fractions import Fraction\ndef f(x): return Fraction(1 << 262143)"


@pytest.mark.parametrize(
    ("test", "program"),
    [
        (POOL + "with ThreadPoolExecutor(1) as ex: assert list(ex.map(candidate, [1, 2])) == [1, 2]", RAISES),
        (
            "try:\n    r = candidate(1)\nfinally:\n    try: candidate(2)\n    except ValueError: pass",
            "def f(x):\n    if x == 1: raise ImportError('no')\n    raise ValueError",
        ),
        ("assert __import__(candidate(1)).pi", "def f(x): return 'nothing_of_that_name'"),
        ("import importlib\nassert importlib.import_module(candidate(1)).pi", "def f(x): return 'nothing'"),
        (
            "assert eval(candidate(1)) == len('12')",
            "def f(x): return \"(_ for _ in ()).throw(NameError('x', name='len'))\"",
        ),
        ("assert candidate(candidate(3) * 2) == 12", HUGE),
        ("x = candidate(3) * 2\ny = [x]\nassert candidate(y[0]) == 12", HUGE),
        ("def twice(g, x): return g(g(x) * 2)\nassert twice(candidate, 3) == 12", HUGE),
        ("assert list(map(candidate, [x * 2 for x in map(candidate, [3])])) == [12]", HUGE),
        ("assert candidate(candidate(3).values) == 12", "def f(x): return {}"),
    ],
)
def test_what_an_answer_brings_about_is_its_own_fault(judge: Judge, test: str, program: str) -> None:
    verdict = judge.verify(TestsTask("f", (test,)), program)
    assert verdict.correct is False and verdict.error is not ErrorKind.BAD_TASK, verdict.detail


@pytest.mark.parametrize(
    "test",
    [
        "assert candidate(1) == 1\nimport nothing_of_that_name",
        "def late():\n    from math import nothing\nassert candidate(1) == 1\nlate()",
        "assert candidate(1) == 1\nassert helper(candidate(2)) == 2",
        "assert candidate(1) == 1\nassert candidate(lambda x: x) == 1",
        "from fractions import Fraction\nassert candidate(1) == 1\nassert candidate(Fraction(1 << 262144)) == 1",
        "big = object()\nassert candidate(1) == 1\nassert candidate(big) == 1",
    ],
)
def test_what_the_tests_do_wrong_stays_theirs(judge: Judge, test: str) -> None:
    verdict = judge.verify(TestsTask("f", (test,)), "def f(x): return x")
    assert verdict.error is ErrorKind.BAD_TASK, verdict.detail


@pytest.mark.parametrize(
    ("test", "back"),
    [
        ("assert f(f(1)) == 2", True),
        ("a = f(1)\nfor b in a: c = b\nassert f(c) == 2", True),
        ("seen = []\nseen.append(f(1))\nassert f(seen) == 2", True),
        ("with f(1) as box: f(box)", True),
        ("def g(x): return f(x)\nassert g(g(1)) == 2", True),
        ("if (y := f(1)): f(y)", True),
        ("def check(c):\n    r = c(1)\n    assert c(r) == 2\ncheck(f)", True),
        ("def check(c):\n    data = [1]\n    assert c(data) == 2\n    assert c(data + [1]) == 3\ncheck(f)", False),
        ("def ok(got, want): return got == want\nassert ok(f(1), 2) and ok(f(2), 3)", False),
        ("x = f(1)\nassert x == 2\ny = 3\nassert f(y) == 4", False),
    ],
)
def test_results_that_are_fed_back_are_seen(test: str, back: bool) -> None:
    assert feed_results_back((test,), "f") is back
