"""Each mode on small programs: what passes, what does not, and why."""

from __future__ import annotations

from fractions import Fraction

import pytest

from rlvrlab.judge.compare import Comparison
from rlvrlab.judge.jail.limits import Limits
from rlvrlab.judge.judge import Judge
from rlvrlab.judge.tasks import Call, CallsTask, StdioTask, SyntaxTask, TestsTask
from rlvrlab.types import ErrorKind

ADD = "def add(a, b):\n    return a + b\n"
QUICK = Limits(cpu_s=0.3, job_cpu_s=3.0, wall_s=1.0)


def test_calls_count_what_passed(judge: Judge) -> None:
    task = CallsTask("add", (Call((1, 2), 3), Call((2, 2), 5), Call((0, 0), 0)))
    verdict = judge.verify(task, ADD)
    assert (verdict.correct, verdict.passed, verdict.total, verdict.error) == (False, 2, 3, ErrorKind.WRONG)
    assert verdict.score == pytest.approx(2 / 3)
    assert verdict.isolation == "landlock"
    assert verdict.cost["cpu_s"] > 0 and verdict.cost["peak_mb"] > 1


def test_named_arguments_and_methods(judge: Judge) -> None:
    code = "class Solution:\n    def add(self, a, b=0):\n        return a + b\n"
    task = CallsTask("Solution.add", (Call((1,), 3, {"b": 2}),))
    assert judge.verify(task, code).correct is True


def test_every_plain_type_crosses_exactly(judge: Judge) -> None:
    values = [
        None,
        True,
        -0.0,
        2**70,
        "ä\ud800",
        b"\0",
        (1, [2]),
        {3, 4},
        {"k": (1.5,)},
        frozenset({1}),
        1 + 2j,
        range(3),
        range(10**5000),
        Fraction(1, 10**5000),
    ]
    task = CallsTask("same", tuple(Call((value,), value) for value in values))
    verdict = judge.verify(task, "def same(x): return x")
    assert (verdict.detail, verdict.passed) == ("accepted", len(values))


@pytest.mark.slow
def test_time_limit_is_per_call(judge: Judge) -> None:
    code = "from time import process_time as t\ndef f(x):\n    e = t() + x\n    while t() < e: pass\n    return x"
    fine = CallsTask("f", tuple(Call((0.1,), 0.1) for _ in range(4)), limits=QUICK)
    slow = CallsTask("f", (Call((0.01,), 0.01), Call((9,), 9)), limits=QUICK)
    assert judge.verify(fine, code).correct is True
    verdict = judge.verify(slow, code)
    assert (verdict.error, verdict.passed) == (ErrorKind.TIMEOUT, 1)


@pytest.mark.slow
def test_sleeping_is_a_time_limit_with_a_flag(judge: Judge) -> None:
    verdict = judge.verify(CallsTask("f", (Call((), 1),), limits=QUICK), "import time\ndef f(): time.sleep(60)")
    assert verdict.error is ErrorKind.TIMEOUT and verdict.flags == ("idle",)


def test_calls_after_an_exception_count(judge: Judge) -> None:
    task = CallsTask("f", (Call((0,), 1), Call((1,), 1), Call((2,), 2)))
    verdict = judge.verify(task, "def f(x): return x // x if x < 2 else x")
    assert (verdict.passed, verdict.error) == (2, ErrorKind.RUNTIME)


@pytest.mark.parametrize(
    ("comparison", "printed", "right"),
    [
        (Comparison("exact"), "1 2 \n", False),
        (Comparison("rstrip_lines"), "1 2 \n\n", True),
        (Comparison("rstrip_lines"), "1\n2\n", False),
        (Comparison("tokens"), "1\n  2", True),
        (Comparison("float", abs_tol=1e-6), "1 2", True),
        (Comparison("unordered"), "1 2", True),
    ],
)
def test_stdio_comparisons(judge: Judge, comparison: Comparison, printed: str, right: bool) -> None:
    verdict = judge.verify(StdioTask((("", "1 2\n"),), comparison), f"print({printed!r}, end='')")
    assert verdict.correct is right


def test_checker_program_decides(judge: Judge) -> None:
    checker = (
        "import json, sys\nq = json.load(sys.stdin)\nsys.exit(0 if int(q['output']) ** 2 == int(q['input']) else 1)"
    )
    task = StdioTask((("49", ""),), checker=checker)
    assert judge.verify(task, "print(-7)").correct is True
    assert judge.verify(task, "print(6)").correct is False
    broken = judge.verify(StdioTask((("49", ""),), checker="1 / 0"), "print(7)")
    assert broken.correct is None and "checker" in broken.detail


def test_many_inputs_one_program_each(judge: Judge) -> None:
    task = StdioTask(tuple((f"{i}\n", f"{i * i}\n") for i in range(6)))
    verdict = judge.verify(task, "seen = []\nn = int(input())\nseen.append(n)\nassert len(seen) == 1\nprint(n * n)")
    assert (verdict.correct, verdict.passed) == (True, 6)


def test_big_legal_output(judge: Judge) -> None:
    expected = "".join(f"{i}\n" for i in range(200_000))
    assert judge.verify(StdioTask((("", expected),)), "for i in range(200000): print(i)").correct is True


HUMAN_EVAL = TestsTask("add", ("def check(candidate):\n    assert candidate(1, 2) == 3\ncheck(candidate)",))


def test_assert_code(judge: Judge) -> None:
    assert judge.verify(HUMAN_EVAL, ADD).correct is True
    verdict = judge.verify(HUMAN_EVAL, "def add(a, b): return 4")
    assert (verdict.correct, verdict.error) == (False, ErrorKind.WRONG)


@pytest.mark.parametrize(
    ("test", "code", "right"),
    [
        ("assert f(1) == 1", "def f(x): return True", True),
        ("assert f(1) == 1", "def f(x): return 1.0", True),
        ("assert f(1) is True", "def f(x): return 1", False),
        ("assert f(1) == (1, 2)", "def f(x): return [1, 2]", False),
        ("assert f(1) == {1, 2}", "def f(x): return frozenset([2, 1])", True),
        ("assert f(1) == {'a': 1}", "from collections import Counter\ndef f(x): return Counter('a')", True),
        ("assert f(x=1) == 1, 'message'", "def f(x): return x", True),
        ("assert f(-1) == [[], {}]", "def f(x): return [[], {}]", True),
        ("assert f(1) == 2**70", "def f(x): return 1 << 70", True),
        ("assert f(1) == 1180591620717411303424", "def f(x): return 1 << 70", True),
        ("assert f(1) != 2", "def f(x): return 1", True),
        ("assert abs(f(1) - 1) < 1e-6", "def f(x): return 1.0000001", True),
        ("for i in range(3):\n    assert f(i) == i", "def f(x): return x", True),
        ("def check(c):\n    'doc'\n    assert True\n    assert c(1) == 1\ncheck(f)", "def f(x): return 1", True),
        ("def check(c):\n    assert c(1) == 1", "def f(x): return 2", None),
    ],
)
def test_asserts_mean_the_same_as_data_and_as_code(judge: Judge, test: str, code: str, right: bool | None) -> None:
    """`as data` is only a faster way to the same verdict: a tester must agree."""
    assert judge.verify(TestsTask("f", (test,)), code).correct is right
    assert judge.verify(TestsTask("f", (f"if True:\n    pass\n{test}",)), code).correct is right


def test_exceptions_cross_by_name(judge: Judge) -> None:
    test = "try:\n    f()\nexcept ValueError as e:\n    assert 'bad' in str(e)\nelse:\n    assert False"
    task = TestsTask("f", (test,))
    assert judge.verify(task, "def f(): raise ValueError('bad')").correct is True
    assert judge.verify(task, "def f(): raise TypeError('bad')").error is ErrorKind.RUNTIME
    assert judge.verify(task, "def f(): pass").error is ErrorKind.WRONG


def test_stop_iteration_does_not_end_a_loop_of_tests(judge: Judge) -> None:
    task = TestsTask("f", ("assert all(map(lambda x: f(x) == x, [1, 2, 3]))",))
    assert judge.verify(task, "def f(x): return x").correct is True
    assert judge.verify(task, "def f(x): raise StopIteration").correct is False


def test_a_gone_candidate_cannot_pass_by_silence(judge: Judge) -> None:
    task = TestsTask("f", ("try:\n    f()\nexcept:\n    pass", "pass"))
    assert judge.verify(task, "def f(): pass").correct is True
    verdict = judge.verify(task, "import os\ndef f(): os._exit(0)")
    assert verdict.correct is False and "early_exit" in verdict.flags


def test_handles_go_back_and_equal_nothing_plain(judge: Judge) -> None:
    code = "class Box:\n    def __eq__(s, o): return True\nbox = Box()\ndef f(x=0): return x is box if x else box"
    assert judge.verify(TestsTask("f", ("h = f()\nassert h == h\nassert f(h) is True",)), code).correct is True
    assert judge.verify(TestsTask("f", ("assert f() == 7",)), code).correct is False
    assert judge.verify(TestsTask("f", ("assert f()[0] == 7",)), code).correct is False


def test_trusted_setup_stays_with_the_tests(judge: Judge) -> None:
    task = TestsTask("root", ("assert abs(poly(root(4), 4)) < 1e-6",), setup="def poly(x, c): return x * x - c")
    assert judge.verify(task, "def root(c): return c ** 0.5").correct is True
    assert judge.verify(task, "def poly(x, c): return 0\ndef root(c): return 99").correct is False


def test_tests_never_reach_the_candidate(judge: Judge) -> None:
    spy = (
        "import gc, sys\ndef f(x):\n    text = ' '.join(o for o in gc.get_objects() if isinstance(o, str))\n"
        "    frames, frame = '', sys._getframe()\n    while frame:\n        frames += repr(frame.f_locals)[:100000]\n"
        "        frame = frame.f_back\n    return 'CANARY' + '_42' in text + frames\n"
    )
    assert judge.verify(TestsTask("f", ("CANARY_42 = 1\nassert f(1) is False",)), spy).correct is True


def test_classes_need_inprocess_and_are_labelled(judge: Judge) -> None:
    code = "class Stack:\n    items = []\n    def push(self, x):\n        self.items.append(x)\n        return self\n"
    tests = ("s = Stack().push(1)\nassert s.items == [1]",)
    split = judge.verify(TestsTask("Stack", tests), code)
    assert split.correct is False
    weak = judge.verify(TestsTask("Stack", tests, inprocess=True), code)
    assert weak.correct is True and weak.flags == ("integrity: weak",)


def test_unit_tests_run_inprocess(judge: Judge) -> None:
    tests = ("import unittest\nclass T(unittest.TestCase):\n    def test_add(self): self.assertEqual(add(1, 2), 3)",)
    task = TestsTask("add", tests, inprocess=True)
    assert judge.verify(task, ADD).correct is True
    assert judge.verify(task, "def add(a, b): return 0").correct is False
    assert judge.verify(task, "import os\ndef add(a, b): os._exit(0)").correct is False


def test_foreign_names_make_a_bad_task_not_a_bad_answer(judge: Judge) -> None:
    verdict = judge.verify(TestsTask("f", ("assert helper(f(1)) == 1",)), "def f(x): return x")
    assert verdict.correct is None and "in process" in verdict.detail
    verdict = judge.verify(TestsTask("f", ("assert f(lambda: 1) == 1",)), "def f(x): return x()")
    assert verdict.correct is None and "function" in verdict.detail
    assert judge.verify(TestsTask("f", ("assert f(1 ==",)), "def f(x): return x").correct is None


def test_syntax_and_shape(judge: Judge) -> None:
    good = 'def solve(xs, k):\n    """Do it."""\n    return xs[:k]\n'
    task = SyntaxTask(functions=("solve(xs, k)",), docstrings=True, longest_line=40, forbidden=("eval",))
    assert judge.verify(task, good).correct is True
    bad = judge.verify(task, "def solve(xs): return eval('x')" + " " * 40 + "# long")
    assert (bad.passed, bad.total) == (1, 5)
    assert judge.verify(task, "def solve(:").error is ErrorKind.SYNTAX
    folded = judge.verify(task, good + "".join(f"# {'x' * 15}{end}{'y' * 15}" for end in "\x0b\x0c\x1c\x85\u2028"))
    assert folded.correct is False and "a line of" in folded.detail


ELSEWHERE = {
    "nested": "def f():\n    def solve(xs, k): return xs",
    "in a class": "class A:\n    def solve(xs, k): return xs",
    "keyword only": "def solve(xs, *, k): return xs",
    "any number": "def solve(*xs, k=1): return xs",
    "further": "def solve(xs, k, **more): return xs",
    "in a class in a function": "def f():\n    class A:\n        def solve(xs, k): return xs",
    "a lambda": "solve = lambda xs, k: xs",
}
OFFERED = {
    "plain": "def solve(xs: list, /, k: int = 0): return xs",
    "async": "async def solve(xs, k): return xs",
    "conditional": "import sys\nif sys.version_info > (3,):\n    def solve(xs, k): return xs",
    "after a failed import": "try:\n    import numpy\nexcept ImportError:\n    def solve(xs, k): return xs",
    "in a case": "match 1:\n    case 1:\n        def solve(xs, k): return xs",
}


def test_a_function_counts_where_others_can_call_it_so(judge: Judge) -> None:
    task = SyntaxTask(functions=("solve(xs, k)",))
    assert [name for name, code in ELSEWHERE.items() if judge.verify(task, code).correct] == []
    assert [name for name, code in OFFERED.items() if not judge.verify(task, code).correct] == []
    written = "class A:\n    class B:\n        def f(self, *a, k, **o): pass\ndef g(x, *, y): pass"
    there = SyntaxTask(functions=("A.B.f(self, *a, k, **o)", "g(x, *, y)"))
    assert judge.verify(there, written).detail == "accepted"


@pytest.mark.parametrize("program", [
    "import builtins\nmatch builtins:\n    case object(eval=e): e('1')",
    "import builtins\nmatch [builtins]:\n    case [object(abs=a, eval=e)]: e('1')",
])  # fmt: skip
def test_a_pattern_uses_the_names_of_its_attributes(judge: Judge, program: str) -> None:
    assert judge.verify(SyntaxTask(forbidden=("eval",)), program).correct is False
    assert judge.verify(SyntaxTask(forbidden=("exec",)), program).correct is True


@pytest.mark.parametrize(
    ("text", "right"), [("", False), (" ", False), (" \n ", False), ("\u2003", False), ("x", True)]
)
def test_a_blank_docstring_is_none(judge: Judge, text: str, right: bool) -> None:
    assert judge.verify(SyntaxTask(docstrings=True), f'def f():\n    """{text}"""\n').correct is right


@pytest.mark.parametrize("code", ["", "  \n", "x = 1\n" * 400_000], ids=["empty", "blank", "large"])
def test_hopeless_programs_get_a_reason(judge: Judge, code: str) -> None:
    verdict = judge.verify(HUMAN_EVAL, code)
    assert verdict.correct is False and verdict.detail


def test_ten_megabytes_are_refused_before_any_work(judge: Judge) -> None:
    verdict = judge.verify(HUMAN_EVAL, "#" * (10 << 20))
    assert verdict.error is ErrorKind.SYNTAX and "at most" in verdict.detail


def test_random_numbers_do_not_vary(judge: Judge) -> None:
    code = "import random\ndef f(): return random.random()"
    task = CallsTask("f", (Call((), 0.8444218515250481),))
    assert judge.verify(task, code).correct is True


EXPECTS = "try:\n    f(1)\nexcept {kind} as error:\n    assert {about}\nelse:\n    assert False"


@pytest.mark.parametrize(
    ("kind", "about", "body", "right"),
    [
        ("ValueError", "True", "import json; json.loads('{')", True),
        ("ValueError", "True", "b'\\xff'.decode()", True),
        ("LookupError", "error.args == ('k',) and str(error) == repr('k')", "{}['k']", True),
        ("KeyError", "error.args[0] == (1, 2)", "{}[1, 2]", True),
        ("ValueError", "type(error).__name__ == 'Own' and str(error) == 'bad'", "raise Own('bad')", True),
        ("ValueError", "str(error) == 'other'", "raise Own('bad')", False),
        ("RuntimeError", "True", "raise Foreign('bad')", False),
        ("RuntimeError", "True", "raise SystemExit(0)", False),
        ("StopIteration", "True", "raise StopIteration", False),
        ("UnicodeError", "True", "raise UnicodeDecodeError('a', b'', -(10**6), 1 - 10**6, 'b')", True),
    ],
)
def test_exceptions_arrive_in_the_tests_as_the_kinds_they_are_of(
    judge: Judge, kind: str, about: str, body: str, right: bool
) -> None:
    """`except ValueError` catches what is derived from it, and nothing becomes a RuntimeError on its way."""
    code = f"class Own(ValueError): pass\nclass Foreign(Exception): pass\ndef f(x):\n    {body}"
    task = TestsTask("f", (EXPECTS.format(kind=kind, about=about),))
    verdict = judge.verify(task, code)
    assert verdict.correct is right, verdict


def test_pieces_that_are_left_after_an_end_share_their_names(judge: Judge) -> None:
    pieces = ("a = f(0)\nassert a == 0", "b = f(1)\nassert b == 1", "c = f(2)\nassert c == 2", "assert b + c == f(3)")
    verdict = judge.verify(TestsTask("f", pieces), "import os\ndef f(i): return i if i else os._exit(0)")
    assert (verdict.passed, verdict.total) == (3, 4), verdict
